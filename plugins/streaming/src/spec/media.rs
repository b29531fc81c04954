//! One media stream of a mountpoint: an entry of `media`.

use std::net::Ipv4Addr;

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Mid};
use serde_json::{Map, Value};

use super::payload_types::is_payload_type;
use super::problem::refuse_unknown;
use super::{Origin, SpecProblem, StreamCodec};
use crate::refusal::Refusal;

/// The most streams of a mountpoint: an offer of all of them has not more m-lines than clients read.
const MAX_STREAMS: usize = 511;

/// What a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MediaKind {
    Audio,
    Video,
    Data,
}

impl MediaKind {
    /// Its name in the API.
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

/// What messages of a data stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum DataType {
    #[default]
    Text,
    Binary,
}

impl DataType {
    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Text => "text",
            DataType::Binary => "binary",
        }
    }

    pub(super) fn read(fields: Fields<'_>, key: &str) -> Result<Option<Self>, SpecProblem> {
        match fields.string(key).map_err(SpecProblem::field)? {
            None => Ok(None),
            Some("text") => Ok(Some(DataType::Text)),
            Some("binary") => Ok(Some(DataType::Binary)),
            Some(_) => Err(SpecProblem::element(key, "expected text or binary")),
        }
    }
}

/// One media stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaSpec {
    /// What it carries.
    pub kind: MediaKind,
    /// The m-line's identification towards viewers.
    pub mid: Mid,
    /// For people.
    pub label: String,
    /// The stream and track in offers.
    pub msid: Option<(String, String)>,
    /// UDP port; 0: picked from the range.
    pub port: u16,
    /// The ports of simulcast encodings 1 and 2.
    pub more_ports: Vec<u16>,
    /// Multicast group to join.
    pub mcast: Option<Ipv4Addr>,
    /// Interface or address to bind.
    pub iface: Option<String>,
    /// RTCP port; 0: picked.
    pub rtcpport: Option<u16>,
    /// Payload type towards viewers; the codec's usual one if none.
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
    /// What data messages are.
    pub datatype: DataType,
    /// Repeat the last message to each new viewer.
    pub buffermsg: bool,
}

const KNOWN: [&str; 22] = [
    "type",
    "mid",
    "label",
    "msid",
    "port",
    "port2",
    "port3",
    "mcast",
    "iface",
    "rtcpport",
    "pt",
    "codec",
    "rtpmap",
    "fmtp",
    "skew",
    "simulcast",
    "svc",
    "h264sps",
    "bufferkf",
    "datatype",
    "buffermsg",
    "databuffermsg",
];

/// Whether streams have ports, and name their codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    Ports,
    Publisher,
}

/// Reads the list `media` of `members`.
pub(super) fn read_list(
    members: &Map<String, Value>,
    origin: Origin,
    feed: Feed,
) -> Result<Vec<MediaSpec>, SpecProblem> {
    let list = match members.get("media") {
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
        let spec = MediaSpec::read(members, entry, origin, feed)
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
    /// A stream of which only this much is known.
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
        members: &Map<String, Value>,
        entry: &Value,
        origin: Origin,
        feed: Feed,
    ) -> Result<Self, SpecProblem> {
        let entry = entry
            .as_object()
            .ok_or_else(|| SpecProblem::element("media", "expected an object for each stream"))?;
        let fields = Fields(entry);
        let kind = match fields.required_string("type").map_err(SpecProblem::field)? {
            "audio" => MediaKind::Audio,
            "video" => MediaKind::Video,
            "data" if feed == Feed::Ports => MediaKind::Data,
            other => {
                let reason = format!("there is no media of type {other}");
                return Err(SpecProblem::cannot_create("type", reason));
            }
        };
        if origin == Origin::Configuration {
            refuse_unknown(entry, &KNOWN)?;
        }
        let mid = fields.required_string("mid").map_err(SpecProblem::field)?;
        let mid = Mid::new(mid)
            .ok_or_else(|| SpecProblem::element("mid", "expected 1 to 16 visible characters"))?;
        let mut spec = MediaSpec::new(kind, mid);
        let text = |name| optional_text(fields, name);
        if let Some(label) = text("label")? {
            spec.label = label;
        }
        spec.msid = text("msid")?.and_then(|msid| read_msid(&msid));
        if feed == Feed::Ports {
            spec.read_ports(fields)?;
        }
        spec.fmtp = text("fmtp")?;
        let flag = |name| -> Result<bool, SpecProblem> {
            let flag = fields.boolean(name).map_err(SpecProblem::field)?;
            Ok(flag.unwrap_or(false))
        };
        match kind {
            MediaKind::Audio | MediaKind::Video => {
                spec.pt = payload_type(fields, "pt")?;
                spec.codec = StreamCodec::read(fields, kind.into(), ("codec", "rtpmap"))?;
                spec.skew = flag("skew")?;
            }
            MediaKind::Data => {
                // Janus looks for these two at the root of a request.
                let root = Fields(members);
                let datatype = DataType::read(fields, "datatype")?;
                spec.datatype = match datatype {
                    Some(datatype) => datatype,
                    None => DataType::read(root, "datatype")?.unwrap_or_default(),
                };
                let at_root = matches!(root.boolean("buffermsg"), Ok(Some(true)));
                spec.buffermsg = flag("buffermsg")? || flag("databuffermsg")? || at_root;
            }
        }
        if kind == MediaKind::Video {
            spec.simulcast = flag("simulcast")?;
            spec.svc = flag("svc")?;
            spec.h264sps = text("h264sps")?;
        }
        if feed == Feed::Ports {
            if spec.simulcast {
                spec.more_ports = more_ports(fields, ["port2", "port3"])?;
            }
            spec.check()?;
        }
        Ok(spec)
    }

    fn read_ports(&mut self, fields: Fields<'_>) -> Result<(), SpecProblem> {
        self.port = port(fields, "port")?.ok_or_else(|| SpecProblem::missing("port"))?;
        self.mcast = multicast(fields, "mcast")?;
        self.iface = optional_text(fields, "iface")?;
        if self.kind != MediaKind::Data {
            self.rtcpport = port(fields, "rtcpport")?;
        }
        Ok(())
    }

    /// What must hold for any stream with ports.
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

pub(super) fn optional_text(fields: Fields<'_>, name: &str) -> Result<Option<String>, SpecProblem> {
    let text = fields.text(name).map_err(SpecProblem::field)?;
    Ok(text.map(str::to_owned))
}

pub(super) fn port(fields: Fields<'_>, name: &str) -> Result<Option<u16>, SpecProblem> {
    let port = fields.positive(name).map_err(SpecProblem::field)?;
    port.map(|port| {
        u16::try_from(port)
            .map_err(|_| SpecProblem::element(name, format!("expected 0 to 65535, got {port}")))
    })
    .transpose()
}

/// The ports of simulcast encodings 1 and 2, as far as there are any.
pub(super) fn more_ports(fields: Fields<'_>, names: [&str; 2]) -> Result<Vec<u16>, SpecProblem> {
    let mut ports = Vec::new();
    for name in names {
        ports.extend(port(fields, name)?);
    }
    Ok(ports)
}

pub(super) fn payload_type(fields: Fields<'_>, name: &str) -> Result<Option<u8>, SpecProblem> {
    let pt = fields.positive(name).map_err(SpecProblem::field)?;
    pt.map(|pt| {
        let good = u8::try_from(pt).ok().filter(|pt| is_payload_type(*pt));
        let reason = || format!("expected 0 to 63 or 96 to 127, got {pt}");
        good.ok_or_else(|| SpecProblem::element(name, reason()))
    })
    .transpose()
}

pub(super) fn multicast(fields: Fields<'_>, name: &str) -> Result<Option<Ipv4Addr>, SpecProblem> {
    let Some(text) = optional_text(fields, name)? else {
        return Ok(None);
    };
    match text.parse::<Ipv4Addr>() {
        Ok(group) if group.is_multicast() => Ok(Some(group)),
        Ok(_) | Err(_) => Err(SpecProblem::new(
            name,
            Refusal::CannotCreate(format!("{text} is not an IPv4 multicast group")),
        )),
    }
}

/// Two tokens of at most 64 characters each; else nothing.
fn read_msid(text: &str) -> Option<(String, String)> {
    let (stream, track) = text.split_once(' ')?;
    let good = |token: &str| {
        (1..=64).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    (good(stream) && good(track)).then(|| (stream.to_owned(), track.to_owned()))
}
