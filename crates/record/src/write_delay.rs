//! The time for which bytes wait before they are written, to save system calls.

use std::time::{Duration, Instant};

/// So many bytes are written at once.
const ENOUGH: usize = 256 << 10;

/// The bytes that wait to be written.
#[derive(Debug)]
pub(crate) struct WriteDelay {
    longest: Duration,
    since: Option<Instant>,
}

impl WriteDelay {
    /// Returns the state without waiting bytes. They wait at most `longest`.
    pub(crate) const fn new(longest: Duration) -> Self {
        Self {
            longest,
            since: None,
        }
    }

    /// Whether the waiting bytes are to be written now.
    pub(crate) fn is_due(&mut self, bytes: usize, now: Instant) -> bool {
        if bytes == 0 {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        bytes >= ENOUGH || now.saturating_duration_since(since) >= self.longest
    }

    /// Notes that all bytes were written.
    pub(crate) fn clear(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_written_when_it_is_time_or_much() {
        let mut held = WriteDelay::new(Duration::from_millis(700));
        let start = Instant::now();
        let mut is_due = |bytes, millis| held.is_due(bytes, start + Duration::from_millis(millis));
        // Nothing is never due, and later bytes wait from their own time on.
        assert!(!is_due(0, 0) && !is_due(0, 5_000));
        assert!(!is_due(10, 5_000) && !is_due(20, 5_500));
        assert!(is_due(30, 5_700) && is_due(ENOUGH, 5_701));
        held.clear();
        assert!(!held.is_due(10, start + Duration::from_millis(6_000)));
        assert!(WriteDelay::new(Duration::ZERO).is_due(1, start));
    }
}
