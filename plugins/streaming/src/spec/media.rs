//! A stream of a mountpoint: an entry of `media`.

use std::net::Ipv4Addr;

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Mid, Object};
use portunus_resources::{Options, check_keys, place};
use serde_json::{Map, Value};

use super::codec::codec;
use super::values::{Read, ignored, multicast, multicast_text, optional_port, payload_type, port};
use super::{Origin, SpecProblem, StreamCodec};

/// The limit of streams of a mountpoint. An offer of all of them stays within the clients' limit of
/// m-lines.
const MAX_STREAMS: usize = 511;

/// The kind of media of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MediaKind {
    Audio,
    Video,
    Data,
}

impl MediaKind {
    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
            MediaKind::Data => "data",
        }
    }
}

impl From<MediaKind> for Kind {
    fn from(kind: MediaKind) -> Self {
        match kind {
            MediaKind::Audio => Kind::Audio,
            MediaKind::Video => Kind::Video,
            MediaKind::Data => Kind::Data,
        }
    }
}

/// The type of messages of a data stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DataType {
    #[default]
    Text,
    Binary,
}

impl DataType {
    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Text => "text",
            DataType::Binary => "binary",
        }
    }
}

impl From<DataType> for Value {
    fn from(datatype: DataType) -> Self {
        datatype.name().into()
    }
}

/// The specification of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaSpec {
    /// The kind of media.
    pub kind: MediaKind,
    /// The m-line's identification towards viewers.
    pub mid: Mid,
    /// For people.
    pub label: String,
    /// The stream and track in offers.
    pub msid: Option<(String, String)>,
    /// The UDP port. 0 means any of the range.
    pub port: u16,
    /// The ports of simulcast encodings 1 and 2.
    pub more_ports: Vec<u16>,
    /// Multicast group to join.
    pub mcast: Option<Ipv4Addr>,
    /// Interface or address to bind.
    pub iface: Option<String>,
    /// The RTCP port. 0 means any of the range.
    pub rtcpport: Option<u16>,
    /// The payload type for viewers. `None` means the codec's usual one.
    pub pt: Option<u8>,
    /// None with data, and where the publisher chooses.
    pub codec: Option<StreamCodec>,
    /// Format parameters in offers.
    pub fmtp: Option<String>,
    /// Compensate for the source's clock.
    pub skew: bool,
    /// The ports are simulcast encodings.
    pub simulcast: bool,
    /// VP9 with spatial layers.
    pub svc: bool,
    /// H.264 parameter sets, `base64,base64`.
    pub h264sps: Option<String>,
    /// The type of data messages.
    pub datatype: DataType,
    /// Repeat the last message to each new viewer.
    pub buffermsg: bool,
}

/// Whether streams have ports, and name their codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    Ports,
    Publisher,
}

/// Reads the list `media` of a request or section with the members `root`.
pub(super) fn read_list(
    root: Fields<'_>,
    origin: Origin,
    feed: Feed,
) -> Result<Vec<MediaSpec>, SpecProblem> {
    let list = match root.0.get("media") {
        None => return Err(SpecProblem::missing("media")),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(SpecProblem::element("media", "expected a list of streams")),
    };
    if list.is_empty() {
        return Err(SpecProblem::cannot_create("media", "there is no media"));
    }
    if list.len() > MAX_STREAMS {
        let reason = format!(
            "there are {} streams, and {MAX_STREAMS} at most",
            list.len()
        );
        return Err(SpecProblem::cannot_create("media", reason));
    }
    let mut media: Vec<MediaSpec> = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        let spec = MediaSpec::read(root, entry, origin, feed)
            .and_then(|spec| match media.iter().any(|m| m.mid == spec.mid) {
                true => Err(SpecProblem::cannot_create(
                    "mid",
                    format!("mid {} is there twice", spec.mid.as_str()),
                )),
                false => Ok(spec),
            })
            .map_err(|problem| problem.in_media(index))?;
        media.push(spec);
    }
    Ok(media)
}

impl MediaSpec {
    /// Returns the specification with defaults.
    pub(crate) fn new(kind: MediaKind, mid: Mid) -> Self {
        MediaSpec {
            kind,
            mid,
            label: kind.name().to_owned(),
            msid: None,
            port: 0,
            more_ports: Vec::new(),
            mcast: None,
            iface: None,
            rtcpport: None,
            pt: None,
            codec: None,
            fmtp: None,
            skew: false,
            simulcast: false,
            svc: false,
            h264sps: None,
            datatype: DataType::Text,
            buffermsg: false,
        }
    }

    fn read(
        root: Fields<'_>,
        entry: &Value,
        origin: Origin,
        feed: Feed,
    ) -> Result<Self, SpecProblem> {
        let entry = entry
            .as_object()
            .ok_or_else(|| SpecProblem::element("media", "expected an object for each stream"))?;
        let fields = Fields(entry);
        let kind = match fields.required("type")? {
            "audio" => MediaKind::Audio,
            "video" => MediaKind::Video,
            "data" if feed == Feed::Ports => MediaKind::Data,
            other => {
                let reason = format!("there is no media of type {other}");
                return Err(SpecProblem::cannot_create("type", reason));
            }
        };
        if origin == Origin::Configuration {
            let known = ["type", "mid", "bufferkf"].into_iter().chain(HEAD.keys());
            let known = known.chain(LISTED.keys(MediaKind::Video));
            check_keys(entry, &known.chain(LISTED.data.keys()).collect::<Vec<_>>())?;
        }
        let mid = Mid::new(fields.required("mid")?)
            .ok_or_else(|| SpecProblem::element("mid", "expected 1 to 16 visible characters"))?;
        let mut spec = MediaSpec::new(kind, mid);
        HEAD.read_into(&mut spec, fields)?;
        let mut tables = LISTED.of(kind, feed);
        tables.try_for_each(|table| table.read_into(&mut spec, fields))?;
        if kind == MediaKind::Data {
            // Janus looks for these two at the root of a request.
            if !fields.has("datatype") {
                spec.datatype = data_type(root, "datatype")?.unwrap_or_default();
            }
            spec.buffermsg |= root.member("buffermsg") == Ok(Some(true));
        }
        if feed == Feed::Ports {
            spec.check()?;
        }
        Ok(spec)
    }

    /// Returns its entry in `media`.
    pub(super) fn to_section(&self, feed: Feed) -> Value {
        let default = MediaSpec::new(self.kind, self.mid);
        let head = Object::new()
            .with("type", self.kind.name())
            .with("mid", self.mid.as_str());
        let tables = LISTED.of(self.kind, feed);
        let written = tables.flat_map(|table| table.written(self, &default));
        let head = head.with_all(HEAD.written(self, &default));
        head.with_all(written.collect::<Map<_, _>>()).into()
    }

    /// Checks the options of a stream with ports.
    pub(super) fn check(&mut self) -> Result<(), SpecProblem> {
        if self.kind != MediaKind::Data && self.codec.is_none() {
            let reason = format!("the codec of {} is missing", self.mid.as_str());
            return Err(SpecProblem::cannot_create("codec", reason));
        }
        if self.mcast.is_some() && self.port == 0 {
            let reason = "a multicast group needs a port other than 0";
            return Err(SpecProblem::cannot_create("port", reason));
        }
        let codec = self.codec.map(StreamCodec::name);
        if self.svc && codec != Some("vp9") {
            tracing::warn!(mid = self.mid.as_str(), "svc is for VP9 only: ignored");
            self.svc = false;
        }
        if self.h264sps.is_some() && codec != Some("h264") {
            tracing::warn!(
                mid = self.mid.as_str(),
                "h264sps is for H.264 only: ignored"
            );
            self.h264sps = None;
        }
        Ok(())
    }
}

/// Reads two tokens of at most 64 characters each. Other text counts as absent.
fn msid(fields: Fields<'_>, name: &str) -> Read<Option<(String, String)>> {
    let good = |token: &&str| {
        (1..=64).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let msid = fields.text(name)?.and_then(|text| text.split_once(' '));
    let msid = msid.filter(|(stream, track)| good(stream) && good(track));
    Ok(Some(msid.map(|(stream, track)| {
        (stream.to_owned(), track.to_owned())
    })))
}

fn msid_text(msid: &Option<(String, String)>) -> Value {
    let text = msid
        .as_ref()
        .map(|(stream, track)| format!("{stream} {track}"));
    text.into()
}

fn data_type(fields: Fields<'_>, name: &str) -> Read<DataType> {
    match fields.member(name)? {
        None => Ok(None),
        Some("text") => Ok(Some(DataType::Text)),
        Some("binary") => Ok(Some(DataType::Binary)),
        Some(_) => Err(SpecProblem::element(name, "expected text or binary")),
    }
}

/// Reads a flag that has another name as well.
fn buffermsg(fields: Fields<'_>, name: &str) -> Read<bool> {
    match fields.member(name)? {
        Some(true) => Ok(Some(true)),
        Some(false) | None => Ok(fields.member("databuffermsg")?),
    }
}

pub(super) type Table = Options<MediaSpec, SpecProblem>;
type Opt = portunus_resources::Opt<MediaSpec, SpecProblem>;
type Place = portunus_resources::Place<MediaSpec, SpecProblem>;

/// The options of streams, by the streams that have them.
pub(super) struct Tables {
    ports: Table,
    rtcp: Table,
    rtp: Table,
    video: Table,
    more_ports: Table,
    data: Table,
}

impl Tables {
    /// Returns the options of a stream of this kind.
    pub(super) fn of(
        &'static self,
        kind: MediaKind,
        feed: Feed,
    ) -> impl Iterator<Item = &'static Table> {
        let has_ports = feed == Feed::Ports;
        let (is_data, is_video) = (kind == MediaKind::Data, kind == MediaKind::Video);
        let all = [
            (&self.ports, has_ports),
            (&self.rtcp, has_ports && !is_data),
            (&self.rtp, !is_data),
            (&self.data, is_data),
            (&self.video, is_video),
            (&self.more_ports, has_ports && is_video),
        ];
        all.into_iter()
            .filter(|(_, has)| *has)
            .map(|(table, _)| table)
    }

    /// Returns the names of the options of a stream of this kind.
    pub(super) fn keys(&'static self, kind: MediaKind) -> impl Iterator<Item = &'static str> {
        self.of(kind, Feed::Ports).flat_map(Options::keys)
    }
}

/// The options that only an entry of `media` has.
const HEAD: Table = Options(&[
    Opt::new("label", place!(label)),
    Opt::new("msid", place!(msid, msid, msid_text)),
]);

/// Makes the tables of options. Most names have the prefix `$kind`.
macro_rules! tables {
    ($kind:literal $(, pt: $required:ident)?) => {
        Tables {
            ports: Options(&[
                Opt::new(concat!($kind, "port"), place!(port, port)).required(),
                Opt::new(concat!($kind, "mcast"), place!(mcast, multicast, multicast_text)),
                Opt::new(concat!($kind, "iface"), place!(iface)),
            ]),
            rtcp: Options(&[Opt::new(concat!($kind, "rtcpport"), place!(rtcpport, optional_port))]),
            rtp: Options(&[
                Opt::new(concat!($kind, "fmtp"), place!(fmtp)),
                Opt::new(concat!($kind, "pt"), place!(pt, payload_type))$(.$required())?,
                Opt::new(concat!($kind, "codec"), CODEC),
                Opt::new(concat!($kind, "rtpmap"), ignored()),
                Opt::new(concat!($kind, "skew"), place!(skew)),
            ]),
            video: Options(&[
                Opt::new(concat!($kind, "simulcast"), place!(simulcast)),
                Opt::new(concat!($kind, "svc"), place!(svc)),
                Opt::new("h264sps", place!(h264sps)),
            ]),
            more_ports: Options(&[
                Opt::new(concat!($kind, "port2"), PORT2),
                Opt::new(concat!($kind, "port3"), PORT3),
            ]),
            data: Options(&[
                Opt::new("datatype", place!(datatype, data_type)),
                Opt::new("buffermsg", place!(buffermsg, buffermsg)),
                Opt::new("databuffermsg", ignored()),
            ]),
        }
    };
}

/// The options of an entry of `media`.
static LISTED: Tables = tables!("");
/// The options of the older form, where each kind has at most one stream, and its options are in
/// the request itself.
pub(super) static AUDIO: Tables = tables!("audio", pt: required);
pub(super) static VIDEO: Tables = tables!("video", pt: required);
pub(super) static DATA: Tables = tables!("data");

const CODEC: Place = Place {
    read: |stream, fields, name| {
        if let Some(codec) = codec(fields, name, stream.kind.into())? {
            stream.codec = codec;
        }
        Ok(())
    },
    write: |stream| stream.codec.into(),
};
/// The port of simulcast encoding 1.
const PORT2: Place = Place {
    read: |stream, fields, name| {
        if stream.simulcast {
            stream.more_ports.extend(port(fields, name)?);
        }
        Ok(())
    },
    write: |stream| stream.more_ports.first().copied().into(),
};
/// That of encoding 2.
const PORT3: Place = Place {
    write: |stream| stream.more_ports.get(1).copied().into(),
    ..PORT2
};
