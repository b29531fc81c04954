//! What the link to a peer carries, and what waits for it.

use std::time::Duration;

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

/// Packets that wait until the link has room for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacerStats {
    /// Packets that wait.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The rate at which they leave, in bit/s; none: nothing is held back any more.
    pub rate: Option<u64>,
}
