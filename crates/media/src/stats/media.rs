//! The m-lines of a peer.

use std::time::Duration;

use portunus_rtp::{Mid, Pt, Rid, Ssrc};
use portunus_sdp::negotiated::{Codec, Kind};

use super::Traffic;

/// Figures of one m-line.
#[derive(Debug, Clone)]
pub struct MediaStats {
    /// Its identification.
    pub mid: Mid,
    /// Its place among the m-lines.
    pub index: usize,
    /// What it carries.
    pub kind: Kind,
    /// We send.
    pub send: bool,
    /// The peer sends.
    pub receive: bool,
    /// The payload types that were agreed, most preferred first.
    pub payloads: Vec<PayloadStats>,
    /// Whether retransmissions are asked for and sent (NACK).
    pub nacks: bool,
    /// For how long what is sent can be sent again.
    pub nack_queue: Duration,
    /// The rids of the peer's encodings, lowest first; empty without simulcast by rid.
    pub rids: Vec<Rid>,
    /// What comes in, an entry an encoding, lowest first.
    pub received: Vec<StreamStats>,
    /// What goes out.
    pub sent: StreamStats,
    /// Which layers go out, if that follows the link.
    pub layers: Option<LayerStats>,
    /// What came and left on data channels; none for audio and video.
    pub messages: Option<MessageStats>,
}

/// A payload type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadStats {
    /// Its number.
    pub pt: Pt,
    /// What it means.
    pub codec: Codec,
    /// RTP clock in Hz.
    pub clock_rate: u32,
    /// The number of its retransmissions (RFC 4588).
    pub rtx: Option<Pt>,
}

/// Messages of data channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageStats {
    /// Those that came.
    pub received: Traffic,
    /// Those that were given to SCTP.
    pub sent: Traffic,
    /// Channels that are open.
    pub channels: usize,
}

/// The layers that were chosen for an m-line, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerStats {
    /// The simulcast encoding; none, as with the others, if nothing is to be relayed.
    pub substream: Option<u8>,
    /// The SVC spatial layer.
    pub spatial: Option<u8>,
    /// The temporal layer.
    pub temporal: Option<u8>,
    /// What that takes, in bit/s.
    pub bitrate: u64,
    /// Why, as docs/bandwidth.md has it: `best`, `bandwidth`, `client-bound` and so on.
    pub reason: &'static str,
    /// What a publisher of a single layer may send for this viewer, in bit/s, if it is too much now.
    pub asked_of_publisher: Option<u64>,
}

/// Figures of one RTP stream.
#[derive(Debug, Clone, Default)]
pub struct StreamStats {
    /// Its SSRC, once known.
    pub ssrc: Option<Ssrc>,
    /// The SSRC that repairs it.
    pub rtx_ssrc: Option<Ssrc>,
    /// RTP packets, retransmissions excluded.
    pub packets: u64,
    /// RTP payload bytes.
    pub bytes: u64,
    /// Payload bytes of the last second.
    pub bytes_last_second: u64,
    /// Packets that never came (received) or were reported lost by the receiver (sent).
    pub lost: u64,
    /// The same of the last second.
    pub lost_last_second: u64,
    /// Interarrival jitter (RFC 3550 section 6.4.1): ours (received) or as the receiver reports it (sent).
    pub jitter: Duration,
    /// Sequence numbers asked for again by NACK: by us (received) or by the peer (sent).
    pub nacks: u64,
    /// Retransmitted packets: those that came and helped (received), or those that left (sent).
    pub retransmissions: u64,
    /// Keyframe requests (PLI, FIR): ours (received) or the peer's (sent).
    pub keyframe_requests: u64,
    /// How long ago the last keyframe came: of this encoding (received), or of what is relayed (sent). None came, or nobody
    /// could tell, as what is relayed to nobody is not looked at.
    pub keyframe_age: Option<Duration>,
    /// Round trip by SR/RR; only of what is sent.
    pub rtt: Option<Duration>,
    /// The times that this was computed from.
    pub rtt_times: Option<ReportTimes>,
    /// How long ago the last packet came or left.
    pub last_packet_age: Option<Duration>,
    /// Of the packets of the last seconds, those that were not lost on their way, in hundredths.
    pub link_quality: u8,
    /// The same with those that were repaired by retransmission.
    pub media_link_quality: u8,
}

/// What a round trip was computed from (RFC 3550 section 6.4.1): all three are the middle 32 bits of NTP time, or 1/65,536 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportTimes {
    /// When the receiver's report came.
    pub ntp: u32,
    /// The sender report that it answers.
    pub last_sr: u32,
    /// How long the receiver had that.
    pub delay: u32,
}
