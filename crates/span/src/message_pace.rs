//! The rate at which messages of data channels cross to other nodes.

use std::time::{Duration, Instant};

/// The time over which messages are counted.
const WINDOW: Duration = Duration::from_millis(100);
/// The most messages of a source in that time. Further ones are dropped, since a control connection
/// with 1,000 messages that wait is reset.
const MOST: u32 = 50;
/// The most bytes of them in that time.
const MOST_BYTES: usize = 256 << 10;

/// Limits the messages of one source: to 50 and 256 KiB in 100 ms.
#[derive(Debug)]
pub struct MessagePace {
    since: Instant,
    count: u32,
    bytes: usize,
}

impl MessagePace {
    /// The messages that may wait for the way to other nodes.
    pub const WAITING: usize = 64;

    /// Returns the pace of a source that begins now.
    pub fn new(now: Instant) -> Self {
        MessagePace {
            since: now,
            count: 0,
            bytes: 0,
        }
    }

    /// Counts a message of `size` bytes. Returns whether it crosses.
    pub fn admits(&mut self, size: usize, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = MessagePace::new(now);
        }
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        self.count <= MOST && self.bytes <= MOST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_pace_is_dropped_until_the_next_window() {
        let start = Instant::now();
        let mut pace = MessagePace::new(start);
        let crossed = (0..100).filter(|_| pace.admits(1, start)).count();
        assert_eq!(crossed, 50);
        let later = start + WINDOW;
        assert!(pace.admits(MOST_BYTES, later));
        assert!(!pace.admits(1, later));
        assert!(pace.admits(1, later + WINDOW));
    }
}
