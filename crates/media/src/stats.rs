//! Figures of a peer, as the admin API and the pages show them.

use std::time::Duration;

use portunus_rtc::Path;
use portunus_rtp::{Mid, Ssrc};

use crate::{DtlsState, IceState};

/// Figures of one peer at one moment.
#[derive(Debug, Clone, Default)]
pub struct PeerStats {
    /// ICE state.
    pub ice: Option<IceState>,
    /// Between which addresses media travels, and by what, once a pair is selected.
    pub selected_pair: Option<Path>,
    /// DTLS state.
    pub dtls: Option<DtlsState>,
    /// SRTP profile by its OpenSSL name.
    pub srtp_profile: Option<&'static str>,
    /// Round trip of the last STUN check.
    pub rtt: Option<Duration>,
    /// One entry an m-line.
    pub media: Vec<MediaStats>,
    /// What the link to the peer carries, if anything that is sent to it can be adapted to that.
    pub bandwidth: Option<BandwidthStats>,
    /// Datagrams that were refused: malformed, unauthenticated, replayed or unexpected.
    pub refused: u64,
}

/// Figures of one m-line.
#[derive(Debug, Clone)]
pub struct MediaStats {
    /// Its identification.
    pub mid: Mid,
    /// What comes in, an entry an encoding, lowest first.
    pub received: Vec<StreamStats>,
    /// What goes out.
    pub sent: StreamStats,
    /// Which layers go out, if that follows the link.
    pub layers: Option<LayerStats>,
}

/// What the link to a peer carries, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandwidthStats {
    /// In bit/s.
    pub estimate: u64,
    /// What may be sent at present, in bit/s: less than the estimate while a queue is emptied.
    pub budget: u64,
    /// What set the estimate: `start`, `delay`, `loss`, `probe`, `receiver` or `no-feedback`.
    pub set_by: &'static str,
    /// How long packets wait on the way.
    pub queue: Duration,
    /// The share of packets lost lately, 0.0 to 1.0.
    pub loss: f64,
    /// From the sending of a packet to the news of its arrival.
    pub round_trip: Duration,
    /// Whether a probe is under way.
    pub probing: bool,
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
    /// Packets that never came (received) or were reported lost (sent).
    pub lost: u64,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    pub jitter: Duration,
    /// Sequence numbers asked for again by NACK.
    pub nacks: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Keyframe requests (PLI, FIR).
    pub keyframe_requests: u64,
    /// Round trip by SR/RR.
    pub rtt: Option<Duration>,
}
