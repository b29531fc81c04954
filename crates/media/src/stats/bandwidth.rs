//! Statistics of the link to a peer and of the pacer.

use std::time::Duration;

/// What the link to a peer carries, if that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandwidthStats {
    /// The estimate, in bit/s.
    pub estimate: u64,
    /// The bitrate that may be sent at present, in bit/s: below the estimate while a queue drains.
    pub budget: u64,
    /// The origin of the estimate: `start`, `delay`, `loss`, `probe`, `receiver` or `no-feedback`.
    pub set_by: &'static str,
    /// The delay of packets in queues on the way.
    pub queue: Duration,
    /// The share of packets lost lately, 0.0 to 1.0.
    pub loss: f64,
    /// The time from sending a packet to the feedback on it.
    pub round_trip: Duration,
    /// Whether a probe is being sent.
    pub probing: bool,
}

/// The packets in the pacer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacerStats {
    /// The number of packets.
    pub packets: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// The rate at which they leave, in bit/s. `None` means that nothing is delayed any more.
    pub rate: Option<u64>,
}
