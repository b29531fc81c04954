//! What a worker does.

use std::time::Duration;

/// What one worker did in the last seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerStats {
    /// Its number.
    pub index: usize,
    /// Peers that live on it.
    pub peers: usize,
    /// How late its turns began after what was due: the median of the last seconds.
    pub lag_median: Duration,
    /// The most of the last seconds.
    pub lag_max: Duration,
    /// How long ago its last turn ended. It has one each second, even with nothing to do: much more than that says that it is
    /// stuck.
    pub silent: Duration,
    /// The number that the kernel has for its thread; 0 in its first second.
    pub thread: u32,
    /// The share of a core that its thread used in the last second, 0.0 to 1.0.
    pub core_share: f64,
    /// Datagrams a second that came by UDP.
    pub received_packets: u64,
    /// What came by UDP, in bit/s.
    pub received_bits: u64,
    /// Datagrams a second that left by UDP.
    pub sent_packets: u64,
    /// What left by UDP, in bit/s.
    pub sent_bits: u64,
}

impl WorkerStats {
    /// A worker that was silent for so long is stuck.
    pub const STUCK: Duration = Duration::from_secs(5);

    /// Whether the worker is stuck: nothing flows to and from its peers.
    pub fn is_stuck(&self) -> bool {
        self.silent >= Self::STUCK
    }
}
