//! Statistics of m-lines.

use std::time::Duration;

use portunus_rtp::{Mid, Pt, Rid, Ssrc};
use portunus_sdp::negotiated::{Codec, Kind};

use super::Traffic;

/// Statistics of one m-line.
#[derive(Debug, Clone)]
pub struct MediaStats {
    /// Its identification.
    pub mid: Mid,
    /// The index of the m-line.
    pub index: usize,
    /// The kind of media.
    pub kind: Kind,
    /// The server sends.
    pub send: bool,
    /// The peer sends.
    pub receive: bool,
    /// The agreed payload types, the most preferred first.
    pub payloads: Vec<PayloadStats>,
    /// Whether retransmissions were agreed (NACK).
    pub nacks: bool,
    /// How long packets can be retransmitted.
    pub nack_queue: Duration,
    /// The rids of the peer's encodings, lowest first. Empty without simulcast by rid.
    pub rids: Vec<Rid>,
    /// What is received, one entry for each encoding, lowest first.
    pub received: Vec<StreamStats>,
    /// What is sent.
    pub sent: StreamStats,
    /// The chosen layers, if they follow the link.
    pub layers: Option<LayerStats>,
    /// The messages of data channels. `None` for audio and video.
    pub messages: Option<MessageStats>,
}

/// A payload type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadStats {
    /// The payload type.
    pub pt: Pt,
    /// The codec.
    pub codec: Codec,
    /// The RTP clock, in Hz.
    pub clock_rate: u32,
    /// The payload type of its retransmissions (RFC 4588).
    pub rtx: Option<Pt>,
}

/// Messages of data channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageStats {
    /// Received messages.
    pub received: Traffic,
    /// Messages passed to SCTP.
    pub sent: Traffic,
    /// Open channels.
    pub channels: usize,
}

/// The layers chosen for an m-line, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerStats {
    /// The simulcast encoding. `None` for all three if nothing is relayed.
    pub substream: Option<u8>,
    /// The SVC spatial layer.
    pub spatial: Option<u8>,
    /// The temporal layer.
    pub temporal: Option<u8>,
    /// The bitrate of these layers, in bit/s.
    pub bitrate: u64,
    /// The reason, as in docs/bandwidth.md: `best`, `bandwidth`, `client-bound` and so on.
    pub reason: &'static str,
    /// The limit for a publisher of a single layer because of this viewer, in bit/s, if it sends
    /// more.
    pub asked_of_publisher: Option<u64>,
}

/// Statistics of one RTP stream.
#[derive(Debug, Clone, Default)]
pub struct StreamStats {
    /// The SSRC, once known.
    pub ssrc: Option<Ssrc>,
    /// The SSRC of retransmissions.
    pub rtx_ssrc: Option<Ssrc>,
    /// RTP packets without retransmissions.
    pub packets: u64,
    /// RTP payload bytes.
    pub bytes: u64,
    /// Payload bytes of the last second.
    pub bytes_last_second: u64,
    /// Packets that never arrived (received), or that the receiver reported lost (sent).
    pub lost: u64,
    /// The same in the last second.
    pub lost_last_second: u64,
    /// The interarrival jitter (RFC 3550 section 6.4.1): measured (received) or reported by the
    /// receiver (sent).
    pub jitter: Duration,
    /// Sequence numbers in NACKs of the server (received) or of the peer (sent).
    pub nacks: u64,
    /// Retransmitted packets that arrived and helped (received), or that were sent (sent).
    pub retransmissions: u64,
    /// Keyframe requests (PLI, FIR) of the server (received) or of the peer (sent).
    pub keyframe_requests: u64,
    /// The time since the last keyframe of this encoding (received), or of what is relayed (sent).
    /// `None` if there was none, or it was not recognized, as without receivers.
    pub keyframe_age: Option<Duration>,
    /// The round trip by SR/RR, only of what is sent.
    pub rtt: Option<Duration>,
    /// The times that it was computed from.
    pub rtt_times: Option<ReportTimes>,
    /// The time since the last packet.
    pub last_packet_age: Option<Duration>,
    /// The share of the packets of the last seconds that were not lost, in percent.
    pub link_quality: u8,
    /// The same, with packets that were repaired by retransmission.
    pub media_link_quality: u8,
}

/// The times that a round trip was computed from (RFC 3550 section 6.4.1), as the middle 32 bits of
/// NTP time, in 1/65,536 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportTimes {
    /// When the receiver's report arrived.
    pub ntp: u32,
    /// The sender report that it answers.
    pub last_sr: u32,
    /// How long the receiver took to answer.
    pub delay: u32,
}
