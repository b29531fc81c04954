//! From the SDP library's model to the media lines of plugins.

use portunus_rtp::{Mid, Pt};
use sdp_types::Session as Sdp;

use crate::codecs::CodecSpec;
use crate::description::{Attribute, Bandwidth, Direction, Extmap, Media};
use crate::error::SdpError;
use crate::negotiated::{Codec, Kind};

/// The header extension that contains encrypted ones, which is not supported (RFC 6904).
const ENCRYPTED_EXTENSION: &str = "urn:ietf:params:rtp-hdrext:encrypt";

/// The most feedback of a codec. More is ignored, since a line of a few bytes may apply to all
/// codecs.
const MAX_FEEDBACK: usize = 32;

/// Attributes that the core handles, or that have no meaning once the core has read them.
const HIDDEN: &[&str] = &[
    "bundle-only",
    "candidate",
    "connection",
    "crypto",
    "end-of-candidates",
    "extmap-allow-mixed",
    "fingerprint",
    "group",
    "identity",
    "ice-lite",
    "ice-mismatch",
    "ice-options",
    "ice-pacing",
    "ice-pwd",
    "ice-ufrag",
    "max-message-size",
    "mid",
    "msid",
    "msid-semantic",
    "remote-candidates",
    "rid",
    "rtcp",
    "rtcp-mux",
    "rtcp-mux-only",
    "rtcp-rsize",
    "setup",
    "simulcast",
    "ssrc",
    "ssrc-group",
    "tls-id",
];

/// Returns the first attribute `name`: its value, if it has one.
pub(crate) fn find<'a>(
    attributes: &'a [sdp_types::Attribute],
    name: &str,
) -> Option<Option<&'a str>> {
    let found = attributes
        .iter()
        .find(|a| a.attribute.eq_ignore_ascii_case(name))?;
    Some(found.value.as_deref())
}

/// Returns the values of all attributes `name`.
pub(crate) fn values<'a>(
    attributes: &'a [sdp_types::Attribute],
    name: &str,
) -> impl Iterator<Item = &'a str> {
    attributes
        .iter()
        .filter(move |a| a.attribute.eq_ignore_ascii_case(name))
        .filter_map(|a| a.value.as_deref())
}

/// Returns the kind of an m-line.
pub(crate) fn kind(line: &sdp_types::Media) -> Option<Kind> {
    match line.media.as_str() {
        "audio" => Some(Kind::Audio),
        "video" => Some(Kind::Video),
        "application" => Some(Kind::Data),
        _ => None,
    }
}

/// Reads a payload type of 7 bits.
pub(crate) fn payload_type(text: &str) -> Option<Pt> {
    text.parse::<u8>().ok().filter(|pt| *pt < 128).map(Pt)
}

/// Splits a value that starts with a payload type, such as that of `rtpmap`.
pub(crate) fn payload_value(value: &str) -> Option<(Pt, &str)> {
    let (pt, rest) = value.split_once(' ')?;
    Some((payload_type(pt)?, rest.trim()))
}

/// Returns the attributes without a meaning here.
pub(crate) fn passed_on(attributes: &[sdp_types::Attribute]) -> impl Iterator<Item = Attribute> {
    attributes.iter().filter_map(|attribute| {
        let name = attribute.attribute.to_ascii_lowercase();
        let hidden = HIDDEN.contains(&name.as_str()) || name.starts_with("sctp");
        let read = matches!(name.as_str(), "rtpmap" | "fmtp" | "rtcp-fb" | "extmap");
        (!hidden && !read && Direction::from_name(&name).is_none()).then(|| Attribute {
            name: attribute.attribute.clone(),
            value: attribute.value.clone(),
        })
    })
}

/// A set of payload types.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PtSet(u128);

impl PtSet {
    pub(crate) fn contains(self, pt: Pt) -> bool {
        self.0 & Self::bit(pt) != 0
    }

    pub(crate) fn insert(&mut self, pt: Pt) {
        self.0 |= Self::bit(pt);
    }

    fn bit(pt: Pt) -> u128 {
        1_u128.checked_shl(u32::from(pt.0)).unwrap_or(0)
    }
}

impl FromIterator<Pt> for PtSet {
    fn from_iter<I: IntoIterator<Item = Pt>>(pts: I) -> Self {
        let mut set = PtSet::default();
        pts.into_iter().for_each(|pt| set.insert(pt));
        set
    }
}

/// Returns the payload types of codecs on all m-lines, without RTX, FEC and the like.
pub(crate) fn payload_types(sdp: &Sdp) -> PtSet {
    sdp.medias
        .iter()
        .flat_map(codecs)
        .map(|codec| codec.pt)
        .collect()
}

/// Returns the RTX payload types of an m-line.
pub(crate) fn rtx_payload_types(line: &sdp_types::Media) -> PtSet {
    values(&line.attributes, "rtpmap")
        .filter_map(payload_value)
        .filter(|(_, map)| encoding(map).eq_ignore_ascii_case("rtx"))
        .map(|(pt, _)| pt)
        .collect()
}

/// Reads the m-line at `index`, without its msid.
pub(crate) fn media(
    line: &sdp_types::Media,
    index: usize,
    mid: Mid,
    session: &[sdp_types::Attribute],
) -> Result<Media, SdpError> {
    let kind = kind(line).ok_or_else(|| SdpError::InvalidLine {
        key: 'm',
        line: format!("m={} {} {} {}", line.media, line.port, line.proto, line.fmt),
    })?;
    // Bundled m-lines may have port 0 in offers. The first one counts as active if it has a
    // transport.
    let port_zero_is_fine = find(&line.attributes, "bundle-only").is_some()
        || (index == 0 && find(&line.attributes, "ice-ufrag").is_some());
    let unsupported = kind == Kind::Data && !line.proto.to_ascii_uppercase().contains("DTLS/SCTP");
    let directions = [&*line.attributes, session].into_iter().flatten();
    let direction = directions
        .filter(|a| a.value.is_none())
        .find_map(|a| Direction::from_name(&a.attribute));
    Ok(Media {
        kind,
        mid,
        rejected: (line.port == 0 && !port_zero_is_fine) || unsupported,
        direction: direction.unwrap_or_default(),
        proto: line.proto.clone(),
        format: line.fmt.clone(),
        codecs: if kind == Kind::Data {
            Vec::new()
        } else {
            codecs(line)
        },
        extensions: values(&line.attributes, "extmap")
            .filter_map(extmap)
            .collect(),
        msid: None,
        bandwidth: line.bandwidths.first().map(|b| Bandwidth {
            modifier: b.bwtype.clone(),
            value: b.bandwidth,
        }),
        attributes: passed_on(&line.attributes).collect(),
    })
}

/// `ID[/direction] URI [attributes]`
fn extmap(value: &str) -> Option<Extmap> {
    let (number, uri) = value.split_once(' ')?;
    let (id, direction) = match number.split_once('/') {
        Some((id, direction)) => (id, Direction::from_name(direction)),
        None => (number, None),
    };
    let id = id.parse::<u8>().ok().filter(|id| *id != 0)?;
    let uri = uri.trim();
    (!uri.is_empty() && !uri.starts_with(ENCRYPTED_EXTENSION)).then(|| Extmap {
        id,
        direction,
        uri: uri.to_owned(),
    })
}

/// Returns the codecs of an m-line in order, without RTX and FEC.
fn codecs(line: &sdp_types::Media) -> Vec<CodecSpec> {
    if kind(line) == Some(Kind::Data) {
        return Vec::new();
    }
    let mut codecs: Vec<CodecSpec> = Vec::new();
    for pt in line.fmt.split(' ').filter_map(payload_type) {
        if !codecs.iter().any(|codec| codec.pt == pt) {
            codecs.extend(codec_of(line, pt));
        }
    }
    fit_events(line, &mut codecs);
    for (name, value) in line
        .attributes
        .iter()
        .filter_map(|a| Some((&a.attribute, a.value.as_ref()?)))
    {
        let feedback = name.eq_ignore_ascii_case("rtcp-fb");
        if feedback && let Some(("*", feedback)) = value.split_once(' ') {
            codecs
                .iter_mut()
                .for_each(|codec| add_feedback(codec, feedback.trim()));
        }
        if !feedback && !name.eq_ignore_ascii_case("fmtp") {
            continue;
        }
        let Some((pt, value)) = payload_value(value) else {
            continue;
        };
        let Some(codec) = codecs.iter_mut().find(|codec| codec.pt == pt) else {
            continue;
        };
        if feedback {
            add_feedback(codec, value);
        } else if codec.fmtp.is_none() && !value.is_empty() {
            codec.fmtp = Some(value.to_owned());
        }
    }
    codecs
}

/// Sets the clock rate of telephone events whose payload type has several to that of a codec of the
/// m-line, since they share its timestamps (RFC 4733 section 2.1).
fn fit_events(line: &sdp_types::Media, codecs: &mut [CodecSpec]) {
    let (events, others): (Vec<_>, Vec<_>) = codecs
        .iter_mut()
        .partition(|codec| codec.codec() == Some(Codec::TelephoneEvent));
    for event in events {
        let clocks: Vec<u32> = maps(line, event.pt).filter_map(clock_rate).collect();
        let fitting = others
            .iter()
            .find(|codec| clocks.contains(&codec.clock_rate));
        if let Some(codec) = fitting {
            event.clock_rate = codec.clock_rate;
        }
    }
}

fn add_feedback(codec: &mut CodecSpec, feedback: &str) {
    if codec.feedback.len() < MAX_FEEDBACK {
        codec.feedback.push(feedback.to_owned());
    }
}

/// Returns the codec of `pt` on this m-line. Returns `None` if it is RTX or FEC, undefined, or
/// ambiguous.
fn codec_of(line: &sdp_types::Media, pt: Pt) -> Option<CodecSpec> {
    let mut maps = maps(line, pt);
    let Some(map) = maps.next() else {
        return static_codec(pt);
    };
    let unique = maps.all(|other| encoding(other).eq_ignore_ascii_case(encoding(map)));
    let (name, clock_rate) = (encoding(map), clock_rate(map)?);
    let channels = match map.split('/').nth(2).map(str::trim) {
        None | Some("") => 0,
        Some(channels) => channels.parse().ok()?,
    };
    (unique && !name.is_empty() && clock_rate > 0 && !is_repair(name, clock_rate)).then(|| {
        CodecSpec {
            pt,
            name: name.to_owned(),
            clock_rate,
            channels,
            fmtp: None,
            feedback: Vec::new(),
        }
    })
}

/// Returns the `rtpmap`s of a payload type.
fn maps(line: &sdp_types::Media, pt: Pt) -> impl Iterator<Item = &str> {
    values(&line.attributes, "rtpmap")
        .filter_map(payload_value)
        .filter(move |(number, _)| *number == pt)
        .map(|(_, map)| map)
}

fn clock_rate(map: &str) -> Option<u32> {
    map.split('/').nth(1)?.trim().parse().ok()
}

fn encoding(map: &str) -> &str {
    map.split('/').next().unwrap_or_default().trim()
}

/// Returns whether it is RTX or FEC, which the core handles or which is not supported. RED is FEC
/// with video, and redundancy with audio.
fn is_repair(name: &str, clock_rate: u32) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "rtx" | "ulpfec" => true,
        "red" => clock_rate == 90_000,
        name => name.starts_with("flexfec"),
    }
}

/// Returns the codec of a payload type without `rtpmap` (RFC 3551 section 6).
fn static_codec(pt: Pt) -> Option<CodecSpec> {
    let name = match pt {
        Pt(0) => "PCMU",
        Pt(8) => "PCMA",
        Pt(9) => "G722",
        _ => return None,
    };
    let name = name.to_owned();
    Some(CodecSpec {
        pt,
        name,
        clock_rate: 8_000,
        channels: 0,
        fmtp: None,
        feedback: Vec::new(),
    })
}
