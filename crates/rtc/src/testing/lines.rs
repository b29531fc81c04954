//! m-lines of two peers that have agreed, without SDP.

use portunus_rtp::{ExtensionKind, ExtensionMap, Mid, Pt, Rid, Ssrc};
use portunus_sdp::negotiated::{Codec, Feedback, Kind, NegotiatedMedia, Payload};

/// The payload type of Opus.
pub const AUDIO_PT: Pt = Pt(111);
/// The payload type of VP8.
pub const VIDEO_PT: Pt = Pt(96);
/// The payload type that repairs VP8.
pub const RTX_PT: Pt = Pt(97);

/// The difference between the SSRCs of a mirrored m-line and the original.
const OTHER_SIDE: u32 = 0x8000_0000;

/// Makes an m-line with Opus both ways.
pub fn audio(mid: &str, ssrc: u32) -> NegotiatedMedia {
    let payload = Payload {
        pt: AUDIO_PT,
        codec: Codec::Opus,
        clock_rate: 48_000,
        rtx: None,
        feedback: Feedback {
            transport_cc: true,
            ..Feedback::default()
        },
    };
    line(mid, Kind::Audio, vec![payload], Ssrc(ssrc), None)
}

/// Makes an m-line with VP8 both ways, NACK, and a repair stream (RFC 4588) with the next SSRC.
pub fn video(mid: &str, ssrc: u32) -> NegotiatedMedia {
    let payload = Payload {
        pt: VIDEO_PT,
        codec: Codec::Vp8,
        clock_rate: 90_000,
        rtx: Some(RTX_PT),
        feedback: Feedback {
            nack: true,
            pli: true,
            fir: true,
            remb: true,
            transport_cc: true,
        },
    };
    let rtx = Some(Ssrc(ssrc + 1));
    line(mid, Kind::Video, vec![payload], Ssrc(ssrc), rtx)
}

/// Makes an m-line with VP8 of which the peer sends these encodings, the lowest first.
pub fn simulcast(mid: &str, ssrc: u32, rids: &[&str]) -> NegotiatedMedia {
    NegotiatedMedia {
        rids: rids.iter().filter_map(|rid| Rid::new(rid)).collect(),
        ..video(mid, ssrc)
    }
}

/// Makes an m-line for data channels.
pub fn data(mid: &str) -> NegotiatedMedia {
    NegotiatedMedia {
        sctp_port: 5_000,
        max_message_size: 262_144,
        ..line(mid, Kind::Data, Vec::new(), Ssrc(0), None)
    }
}

/// Returns the m-line as seen by the other side. Its SSRCs differ, and neither side declares any:
/// they are learnt from the packets.
pub fn mirrored(line: &NegotiatedMedia) -> NegotiatedMedia {
    let other = |ssrc: Ssrc| Ssrc(ssrc.0 ^ OTHER_SIDE);
    NegotiatedMedia {
        send: line.recv,
        recv: line.send,
        rids: Vec::new(),
        local_ssrc: other(line.local_ssrc),
        local_rtx_ssrc: line.local_rtx_ssrc.map(other),
        ..line.clone()
    }
}

/// Removes transport-wide numbers, so that the receiver reports by REMB what arrives.
pub fn without_numbers(line: &mut NegotiatedMedia) {
    let mut extensions = ExtensionMap::default();
    for (kind, id) in line.extensions.iter() {
        if kind != ExtensionKind::TransportCc {
            extensions.set(kind, id);
        }
    }
    line.extensions = extensions;
    for payload in &mut line.payloads {
        payload.feedback.transport_cc = false;
    }
}

/// Removes all feedback but NACK, so that the link is unknown.
pub fn without_feedback(line: &mut NegotiatedMedia) {
    without_numbers(line);
    for payload in &mut line.payloads {
        payload.feedback.remb = false;
    }
}

fn line(
    mid: &str,
    kind: Kind,
    payloads: Vec<Payload>,
    local_ssrc: Ssrc,
    local_rtx_ssrc: Option<Ssrc>,
) -> NegotiatedMedia {
    let mut extensions = ExtensionMap::default();
    if kind != Kind::Data {
        let kinds = [
            ExtensionKind::Mid,
            ExtensionKind::Rid,
            ExtensionKind::RepairedRid,
            ExtensionKind::TransportCc,
        ];
        for (id, kind) in (1..).zip(kinds) {
            extensions.set(kind, id);
        }
    }
    #[expect(
        clippy::unwrap_used,
        reason = "a test with an impossible mid cannot go on"
    )]
    NegotiatedMedia {
        mid: Mid::new(mid).unwrap(),
        kind,
        disabled: false,
        send: true,
        recv: true,
        payloads,
        extensions,
        remote_ssrcs: Vec::new(),
        rids: Vec::new(),
        local_ssrc,
        local_rtx_ssrc,
        sctp_port: 0,
        max_message_size: 0,
    }
}
