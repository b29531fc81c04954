//! The last minute of a peer, second by second.

use std::time::Duration;

/// One second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// How long ago it ended.
    pub age: Duration,
    /// RTP payload received, in bit/s.
    pub received: u64,
    /// RTP payload sent, in bit/s.
    pub sent: u64,
    /// The share of the peer's packets that were lost, 0.0 to 1.0, including those repaired later.
    pub received_lost: f64,
    /// The share of our packets that the peer reported lost.
    pub sent_lost: f64,
    /// The round trip, if known.
    pub round_trip: Option<Duration>,
    /// The estimate of what the link to the peer carries, in bit/s.
    pub estimate: Option<u64>,
    /// The layers of the first video that was sent.
    pub layers: SampledLayers,
    /// Keyframes requested of the peer.
    pub keyframes_asked: u8,
    /// Keyframes requested by the peer.
    pub keyframes_wanted: u8,
}

/// The relayed layers. `None` where the stream has no such layers, or nothing was relayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledLayers {
    /// The simulcast encoding.
    pub substream: Option<u8>,
    /// The SVC spatial layer.
    pub spatial: Option<u8>,
    /// The temporal layer.
    pub temporal: Option<u8>,
}
