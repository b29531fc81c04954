//! The last minute of a peer.

use std::time::Duration;

/// What one second was like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// How long ago it ended.
    pub age: Duration,
    /// RTP payload that came, in bit/s.
    pub received: u64,
    /// RTP payload that left, in bit/s.
    pub sent: u64,
    /// The share of the peer's packets that were lost on their way to us, 0.0 to 1.0, those repaired included.
    pub received_lost: f64,
    /// The share of our packets that the peer reported lost.
    pub sent_lost: f64,
    /// Round trip, if known.
    pub round_trip: Option<Duration>,
    /// What the link to the peer was believed to carry, in bit/s.
    pub estimate: Option<u64>,
    /// The layers of the first video that was sent.
    pub layers: SampledLayers,
    /// Keyframes that we asked the peer for.
    pub keyframes_asked: u8,
    /// Keyframes that the peer asked us for.
    pub keyframes_wanted: u8,
}

/// The layers that were relayed; none where the stream has no such layers, or nothing was relayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledLayers {
    /// The simulcast encoding.
    pub substream: Option<u8>,
    /// The SVC spatial layer.
    pub spatial: Option<u8>,
    /// The temporal layer.
    pub temporal: Option<u8>,
}
