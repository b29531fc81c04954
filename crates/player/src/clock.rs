//! A file's times on the clocks of this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A player that is this late goes on from its position instead of catching up.
const LATE: Duration = Duration::from_secs(1);

/// Maps a file's times to the clocks of this machine.
pub(crate) struct Clock {
    start: Instant,
    wall: Duration,
    /// The time for which the file was held. RTP timestamps go on meanwhile.
    held: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            wall: wall.unwrap_or_default(),
            held: Duration::ZERO,
        }
    }

    /// Delays everything that is to come.
    pub(crate) fn stood_still(&mut self, time: Duration) {
        self.start += time;
        self.wall = self.wall.saturating_add(time);
        self.held = self.held.saturating_add(time);
    }

    /// Returns the held time in units of an RTP clock, which wrap.
    pub(crate) fn held_ticks(&self, rate: u32) -> u32 {
        let ticks = self.held.as_nanos().saturating_mul(rate.into()) / 1_000_000_000;
        // The upper bits are cut off by wrapping.
        (ticks & u128::from(u32::MAX)) as u32
    }

    /// Returns when the file's time `at` is due.
    pub(crate) fn due(&mut self, at: Duration) -> Instant {
        let (due, now) = (self.start + at, Instant::now());
        match now.checked_duration_since(due) {
            Some(late) if late > LATE => {
                self.start += late;
                self.wall += late;
                now
            }
            _ => due,
        }
    }

    /// Returns the file's time `at` as NTP time (32.32 bits since 1900).
    pub(crate) fn ntp(&self, at: Duration) -> u64 {
        const FROM_1900_TO_1970: u64 = 2_208_988_800;
        let since = self.wall.saturating_add(at);
        let seconds = since.as_secs().wrapping_add(FROM_1900_TO_1970);
        let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
        (seconds << 32) | fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_stopped_does_not_hurry() {
        let mut clock = Clock::start();
        let start = Instant::now();
        assert_eq!(
            clock.due(Duration::from_secs(1)),
            start + Duration::from_secs(1)
        );
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(clock.due(Duration::from_secs(2)), Instant::now());
        let next = clock.due(Duration::from_secs(3));
        assert_eq!(next, Instant::now() + Duration::from_secs(1));
        let apart = clock.ntp(Duration::from_millis(1_500)) - clock.ntp(Duration::ZERO);
        assert!(apart.abs_diff(3 << 31) < 8);
    }
}
