//! Statistics of workers.

use std::time::Duration;

/// What one worker did in the last seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerStats {
    /// Its index.
    pub index: usize,
    /// The number of its peers.
    pub peers: usize,
    /// The median delay of its turns after what was due, in the last seconds.
    pub lag_median: Duration,
    /// The maximum of that.
    pub lag_max: Duration,
    /// The time since its last turn. There is one each second even without work, so much more than
    /// that means that the worker is stuck.
    pub silent: Duration,
    /// The kernel's id of its thread. 0 in the first second.
    pub thread: u32,
    /// The share of a core that its thread used in the last second, 0.0 to 1.0.
    pub core_share: f64,
    /// UDP datagrams received per second.
    pub received_packets: u64,
    /// UDP bitrate received, in bit/s.
    pub received_bits: u64,
    /// UDP datagrams sent per second.
    pub sent_packets: u64,
    /// UDP bitrate sent, in bit/s.
    pub sent_bits: u64,
}

impl WorkerStats {
    /// A worker without a turn for this time is stuck.
    pub const STUCK: Duration = Duration::from_secs(5);

    /// Whether the worker is stuck, so that nothing reaches its peers.
    pub fn is_stuck(&self) -> bool {
        self.silent >= Self::STUCK
    }
}
