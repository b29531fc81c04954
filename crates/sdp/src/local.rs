//! Writing the server's descriptions: the media lines of a plugin with the transport lines of the
//! core.

use std::net::IpAddr;

use portunus_rtp::{Pt, Ssrc};
use sdp_types::{Attribute, Connection, Media as Line, Session as Sdp};

use crate::codecs::CodecSpec;
use crate::description::{Attribute as PassedOn, Direction, Media, Origin};
use crate::negotiated::{Fingerprint, FingerprintHash, IceCredentials, Kind};
use crate::simulcast::{self, OfferedRid, SimulcastForm};

/// The default `s=` line.
const NAME: &str = "Portunus";
/// The port of active m-lines. Candidates have the real ports (RFC 8840 section 4.1.3).
const PORT: u16 = 9;
/// The SCTP port of the server.
const SCTP_PORT: u16 = 5_000;
/// The largest message that the server accepts, in bytes.
const MAX_MESSAGE_SIZE: u32 = 262_144;

/// This side's transport, the same for all m-lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTransport {
    /// The ICE credentials.
    pub ice: IceCredentials,
    /// The fingerprint of the server's certificate.
    pub fingerprint: Fingerprint,
    /// The candidates, as the text after `a=`. They are written unless `full_trickle`.
    pub candidates: Vec<String>,
    /// Whether candidates are sent through the API, not in SDP.
    pub full_trickle: bool,
    /// Whether this side is ICE-lite.
    pub ice_lite: bool,
    /// The address in `o=` and `c=`.
    pub address: IpAddr,
    /// The id in the `o=` line of offers for which a plugin sets none, such as a clock's
    /// microseconds.
    pub session_id: u64,
}

/// A description for writing.
pub(crate) struct Text<'a> {
    pub origin: &'a Origin,
    pub name: &'a str,
    pub attributes: &'a [PassedOn],
    pub setup: &'static str,
    pub lines: Vec<MediaText<'a>>,
}

/// An m-line for writing.
pub(crate) struct MediaText<'a> {
    pub media: &'a Media,
    /// RTX payload types: of the media, of the repair.
    pub rtx: Vec<(Pt, Pt)>,
    pub ssrc: Ssrc,
    /// The SSRC of the server's retransmissions, if it is declared.
    pub rtx_ssrc: Option<Ssrc>,
    /// The accepted rids.
    pub rids: &'a [OfferedRid],
    pub simulcast_form: Option<SimulcastForm>,
}

/// Writes a description.
pub(crate) fn write(text: &Text<'_>, local: &LocalTransport) -> String {
    let mut origin = sdp_types::Origin::with_ip_addr(
        &text.origin.session_id,
        text.origin.version,
        local.address,
    );
    if !text.origin.username.is_empty() {
        origin.username = Some(text.origin.username.clone());
    }
    let mut sdp = Sdp::new(
        origin,
        if text.name.is_empty() {
            NAME
        } else {
            text.name
        },
    );
    let mids: Vec<&str> = text
        .lines
        .iter()
        .filter(|l| !l.media.rejected)
        .map(|l| l.media.mid.as_str())
        .collect();
    let attributes = &mut sdp.attributes;
    if !mids.is_empty() {
        with(attributes, "group", format!("BUNDLE {}", mids.join(" ")));
    }
    with(attributes, "ice-options", "trickle");
    with(attributes, "fingerprint", fingerprint(&local.fingerprint));
    flag(attributes, "extmap-allow-mixed");
    with(attributes, "msid-semantic", " WMS *");
    if local.ice_lite {
        flag(attributes, "ice-lite");
    }
    pass_on(attributes, text.attributes);
    sdp.medias = text
        .lines
        .iter()
        .map(|line| media(line, text.setup, local))
        .collect();
    sdp.to_string()
}

fn media(text: &MediaText<'_>, setup: &str, local: &LocalTransport) -> Line {
    let media = text.media;
    let kind = match media.kind {
        Kind::Audio => "audio",
        Kind::Video => "video",
        Kind::Data => "application",
    };
    let mut line = Line {
        media: kind.to_owned(),
        port: if media.rejected { 0 } else { PORT },
        num_ports: None,
        proto: media.proto.clone(),
        fmt: formats(media, &text.rtx),
        media_title: None,
        connections: vec![Connection::from_ip_addr(local.address)],
        bandwidths: Vec::new(),
        key: None,
        attributes: Vec::new(),
    };
    let attributes = &mut line.attributes;
    if media.rejected {
        flag(attributes, Direction::Inactive.as_str());
        with(attributes, "mid", media.mid);
        return line;
    }
    if let Some(limit) = &media.bandwidth {
        let (bwtype, bandwidth) = (limit.modifier.clone(), limit.value);
        line.bandwidths
            .push(sdp_types::Bandwidth { bwtype, bandwidth });
    }
    flag(attributes, media.direction.as_str());
    with(attributes, "mid", media.mid);
    match media.kind {
        Kind::Audio | Kind::Video => flag(attributes, "rtcp-mux"),
        Kind::Data if media.proto.to_ascii_uppercase().starts_with("DTLS/") => {
            with(
                attributes,
                "sctpmap",
                format!("{SCTP_PORT} webrtc-datachannel 16"),
            );
        }
        Kind::Data => {
            with(attributes, "sctp-port", SCTP_PORT);
            with(attributes, "max-message-size", MAX_MESSAGE_SIZE);
        }
    }
    with(attributes, "ice-ufrag", &local.ice.ufrag);
    with(attributes, "ice-pwd", &local.ice.pwd);
    with(attributes, "ice-options", "trickle");
    with(attributes, "setup", setup);
    if media.kind != Kind::Data {
        rtp(attributes, text);
    } else {
        pass_on(attributes, &media.attributes);
    }
    if !local.full_trickle {
        for candidate in &local.candidates {
            let value = candidate.strip_prefix("candidate:").unwrap_or(candidate);
            with(attributes, "candidate", value);
        }
        flag(attributes, "end-of-candidates");
    }
    line
}

fn rtp(attributes: &mut Vec<Attribute>, text: &MediaText<'_>) {
    let media = text.media;
    for codec in &media.codecs {
        with(attributes, "rtpmap", rtpmap(codec));
        if let Some(fmtp) = &codec.fmtp {
            with(attributes, "fmtp", format!("{} {fmtp}", codec.pt.0));
        }
        for feedback in &codec.feedback {
            with(attributes, "rtcp-fb", format!("{} {feedback}", codec.pt.0));
        }
    }
    for extmap in &media.extensions {
        let direction = extmap
            .direction
            .map(|d| format!("/{d}"))
            .unwrap_or_default();
        with(
            attributes,
            "extmap",
            format!("{}{direction} {}", extmap.id, extmap.uri),
        );
    }
    pass_on(attributes, &media.attributes);
    for (codec, rtx) in &text.rtx {
        with(attributes, "rtpmap", format!("{} rtx/90000", rtx.0));
        with(attributes, "fmtp", format!("{} apt={}", rtx.0, codec.0));
    }
    if let Some(rtx) = text.rtx_ssrc {
        with(
            attributes,
            "ssrc-group",
            format!("FID {} {}", text.ssrc.0, rtx.0),
        );
    }
    if media.direction != Direction::Inactive {
        match &media.msid {
            Some(msid) => with(
                attributes,
                "msid",
                format!("{} {}", msid.stream, msid.track),
            ),
            None => with(attributes, "msid", format!("janus janus{}", media.mid)),
        }
    }
    for ssrc in [Some(text.ssrc), text.rtx_ssrc].into_iter().flatten() {
        with(attributes, "ssrc", format!("{} cname:janus", ssrc.0));
    }
    let (rids, simulcast) = simulcast::accept_lines(text.rids, text.simulcast_form);
    rids.into_iter()
        .for_each(|rid| with(attributes, "rid", rid));
    simulcast
        .into_iter()
        .for_each(|simulcast| with(attributes, "simulcast", simulcast));
}

/// Returns the text after the protocol in the m-line.
fn formats(media: &Media, rtx: &[(Pt, Pt)]) -> String {
    let codecs = media.codecs.iter().map(|codec| codec.pt);
    let all: Vec<String> = codecs
        .chain(rtx.iter().map(|(_, rtx)| *rtx))
        .map(|pt| pt.0.to_string())
        .collect();
    match media.kind {
        Kind::Audio | Kind::Video if !media.rejected => all.join(" "),
        Kind::Audio | Kind::Video => "0".to_owned(),
        Kind::Data => media.format.clone(),
    }
}

pub(crate) fn rtpmap(codec: &CodecSpec) -> String {
    let CodecSpec {
        pt,
        name,
        clock_rate,
        channels,
        ..
    } = codec;
    match channels {
        0 => format!("{} {name}/{clock_rate}", pt.0),
        _ => format!("{} {name}/{clock_rate}/{channels}", pt.0),
    }
}

fn fingerprint(fingerprint: &Fingerprint) -> String {
    let hash = match fingerprint.hash {
        FingerprintHash::Sha1 => "sha-1",
        FingerprintHash::Sha256 => "sha-256",
    };
    let digest: Vec<String> = fingerprint
        .digest
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("{hash} {}", digest.join(":"))
}

pub(crate) fn with(attributes: &mut Vec<Attribute>, name: &str, value: impl ToString) {
    attributes.push(Attribute {
        attribute: name.to_owned(),
        value: Some(value.to_string()),
    });
}

pub(crate) fn flag(attributes: &mut Vec<Attribute>, name: &str) {
    attributes.push(Attribute {
        attribute: name.to_owned(),
        value: None,
    });
}

fn pass_on(attributes: &mut Vec<Attribute>, others: &[PassedOn]) {
    attributes.extend(others.iter().map(|other| Attribute {
        attribute: other.name.clone(),
        value: other.value.clone(),
    }));
}
