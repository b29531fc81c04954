//! The waits between attempts.

use std::time::Duration;

/// Before the second try.
const FIRST: Duration = Duration::from_millis(250);

/// At most.
const LAST: Duration = Duration::from_secs(8);

/// Each wait is twice as long as the last one, until a connection lasts.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Backoff(FIRST)
    }
}

impl Backoff {
    /// Returns the next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = wait.saturating_mul(2).min(LAST);
        wait
    }

    /// Notes for how long a connection lasted. After a short one the waits continue to grow.
    pub(crate) fn lasted(&mut self, time: Duration) {
        if time >= LAST {
            *self = Backoff::default();
        }
    }

    /// Returns the wait after this number of attempts.
    pub(crate) fn after(tries: usize) -> Duration {
        let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2_u32.saturating_pow(doublings);
        FIRST.saturating_mul(factor).min(LAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..7).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        let after: Vec<_> = (1..8).map(|n| Backoff::after(n).as_millis()).collect();
        assert_eq!(waits, after);
        assert_eq!(Backoff::after(usize::MAX), LAST);
        backoff.lasted(FIRST);
        assert_eq!(backoff.next(), LAST);
        backoff.lasted(LAST);
        assert_eq!(backoff.next(), FIRST);
    }
}
