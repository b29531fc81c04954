//! SDP text for a far end.

use std::net::IpAddr;

use sdp_types::{Attribute, Connection, Media as Line, Session as Sdp};

use crate::codecs::CodecSpec;
use crate::description::{Bandwidth, Direction, Extmap, Origin};
use crate::local::{flag, rtpmap, with};
use crate::negotiated::Kind;

use super::crypto::SdesKey;
use super::ends::LocalPorts;
use super::error::kind_name;

/// The feedback that is passed on: keyframe requests.
const FEEDBACK: &str = "nack pli";

/// A description for writing.
pub(super) struct Text<'a> {
    pub(super) origin: &'a Origin,
    pub(super) name: &'a str,
    /// The address where media is received.
    pub(super) address: IpAddr,
    pub(super) lines: Vec<LineText>,
}

/// An m-line for writing.
pub(super) enum LineText {
    /// Inactive.
    Refused {
        media: String,
        proto: String,
        formats: String,
    },
    /// Active.
    Active(Box<ActiveText>),
}

/// An active m-line.
#[derive(Debug)]
pub(super) struct ActiveText {
    pub(super) kind: Kind,
    pub(super) ports: LocalPorts,
    pub(super) proto: String,
    pub(super) direction: Direction,
    pub(super) codecs: Vec<CodecSpec>,
    pub(super) extensions: Vec<Extmap>,
    pub(super) bandwidth: Option<Bandwidth>,
    pub(super) attributes: Vec<crate::description::Attribute>,
    pub(super) key: Option<(u32, SdesKey)>,
    pub(super) rtcp_mux: bool,
}

impl LineText {
    /// Makes an inactive m-line of this type, which is withdrawn or not offered yet.
    pub(super) fn unused(media: &str) -> Self {
        let (proto, formats) = match media {
            "audio" | "video" => ("RTP/AVP", "0"),
            "image" => ("udptl", "t38"),
            _ => ("RTP/AVP", "0"),
        };
        LineText::Refused {
            media: media.to_owned(),
            proto: proto.to_owned(),
            formats: formats.to_owned(),
        }
    }
}

/// Writes the description with this version.
pub(super) fn write(text: &Text<'_>, version: u64) -> String {
    let mut origin =
        sdp_types::Origin::with_ip_addr(&text.origin.session_id, version, text.address);
    if !text.origin.username.is_empty() {
        origin.username = Some(text.origin.username.clone());
    }
    let mut sdp = Sdp::new(origin, text.name);
    let address = text.address;
    sdp.medias = text.lines.iter().map(|line| media(line, address)).collect();
    sdp.to_string()
}

fn media(line: &LineText, address: IpAddr) -> Line {
    let new = |media: &str, port, proto: &str, fmt: String| Line {
        media: media.to_owned(),
        port,
        num_ports: None,
        proto: proto.to_owned(),
        fmt,
        media_title: None,
        connections: vec![Connection::from_ip_addr(address)],
        bandwidths: Vec::new(),
        key: None,
        attributes: Vec::new(),
    };
    match line {
        LineText::Refused {
            media,
            proto,
            formats,
        } => new(media, 0, proto, formats.clone()),
        LineText::Active(active) => {
            let formats: Vec<String> = active
                .codecs
                .iter()
                .map(|codec| codec.pt.0.to_string())
                .collect();
            let kind = kind_name(active.kind);
            let mut line = new(kind, active.ports.rtp, &active.proto, formats.join(" "));
            if let Some(limit) = &active.bandwidth {
                line.bandwidths.push(sdp_types::Bandwidth {
                    bwtype: limit.modifier.clone(),
                    bandwidth: limit.value,
                });
            }
            attributes(&mut line.attributes, active);
            line
        }
    }
}

fn attributes(to: &mut Vec<Attribute>, line: &ActiveText) {
    let LocalPorts { rtp, rtcp } = line.ports;
    if rtp.checked_add(1) != Some(rtcp) {
        with(to, "rtcp", rtcp);
    }
    if line.rtcp_mux {
        flag(to, "rtcp-mux");
    }
    flag(to, line.direction.as_str());
    if let Some((tag, key)) = &line.key {
        with(to, "crypto", key.line(*tag));
    }
    for codec in &line.codecs {
        with(to, "rtpmap", rtpmap(codec));
        if let Some(fmtp) = &codec.fmtp {
            with(to, "fmtp", format!("{} {fmtp}", codec.pt.0));
        }
        if codec.has_feedback(FEEDBACK) {
            with(to, "rtcp-fb", format!("{} {FEEDBACK}", codec.pt.0));
        }
    }
    for extmap in &line.extensions {
        let direction = extmap.direction.map(|it| format!("/{it}"));
        let direction = direction.unwrap_or_default();
        with(
            to,
            "extmap",
            format!("{}{direction} {}", extmap.id, extmap.uri),
        );
    }
    for attribute in &line.attributes {
        to.push(Attribute {
            attribute: attribute.name.clone(),
            value: attribute.value.clone(),
        });
    }
}
