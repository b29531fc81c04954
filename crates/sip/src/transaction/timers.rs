//! The timers of transactions.

use std::time::Duration;

/// The timers of RFC 3261 (table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// T1: an estimate of the round trip.
    pub t1: Duration,
    /// T2: the longest interval between repetitions.
    pub t2: Duration,
    /// T4: the longest time of a message in the network.
    pub t4: Duration,
    /// 64*T1: the time that a transaction waits for a response, and a 2xx for its ACK.
    pub timeout: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            t1: Duration::from_millis(500),
            t2: Duration::from_secs(4),
            t4: Duration::from_secs(5),
            timeout: Duration::from_secs(32),
        }
    }
}

impl Timers {
    /// Returns timer D: the time that a refused INVITE stays, so that its ACK can be repeated.
    pub(super) fn completed(&self) -> Duration {
        self.timeout.max(Duration::from_secs(32))
    }
}
