//! When the next frame is due.

use std::time::{Duration, Instant};

/// Frames that are due for longer than this are left out: the machine was too busy to send them.
const MOST_LATE: Duration = Duration::from_millis(500);

/// Something that is due again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: Instant,
    period: Duration,
}

impl Due {
    /// Due at `first`, and then each `period`.
    pub(crate) fn new(first: Instant, period: Duration) -> Self {
        Self { at: first, period }
    }

    /// When it is due.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Whether it is due at `now`; if so, the next time is set.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if now < self.at {
            return false;
        }
        self.at += self.period;
        if self.at + MOST_LATE < now {
            self.at = now;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_made_up_for_unless_they_are_long() {
        let start = Instant::now();
        let ms = |n| start + Duration::from_millis(n);
        let mut due = Due::new(start, Duration::from_millis(20));
        assert!(due.take(start) && !due.take(ms(19)));
        assert!(due.take(ms(45)) && due.take(ms(45)) && !due.take(ms(45)));
        assert!(due.take(ms(1_000)));
        assert_eq!(due.at(), ms(1_000));
    }
}
