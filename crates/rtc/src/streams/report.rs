//! The clocks of sender reports (RFC 3550 section 6.4).

use std::time::{Duration, Instant};

/// Converts instants to NTP time, 32.32 fixed point.
#[derive(Debug, Clone, Copy)]
pub struct NtpClock {
    at: Instant,
    ntp: u64,
}

impl NtpClock {
    /// The seconds from 1900 to 1970.
    pub const UNIX_EPOCH: u64 = 2_208_988_800;

    /// Makes a clock that is `since_epoch` after 1970 at `at`.
    pub fn new(at: Instant, since_epoch: Duration) -> Self {
        let ntp = fixed(since_epoch).wrapping_add(Self::UNIX_EPOCH << 32);
        Self { at, ntp }
    }

    /// Returns the NTP time of `instant`.
    pub fn ntp(&self, instant: Instant) -> u64 {
        match instant.checked_duration_since(self.at) {
            Some(later) => self.ntp.wrapping_add(fixed(later)),
            None => self
                .ntp
                .wrapping_sub(fixed(self.at.saturating_duration_since(instant))),
        }
    }

    /// Returns the time since 1900 as a duration.
    pub fn since_1900(&self, instant: Instant) -> Duration {
        let ntp = self.ntp(instant);
        Duration::new(ntp >> 32, 0)
            + Duration::from_nanos(((ntp & 0xffff_ffff) * 1_000_000_000) >> 32)
    }
}

/// Converts a duration to 32.32 fixed point.
fn fixed(duration: Duration) -> u64 {
    let fraction = (u64::from(duration.subsec_nanos()) << 32) / 1_000_000_000;
    (duration.as_secs() << 32).wrapping_add(fraction)
}

/// The relation of a stream's timestamps to its sender's clock, from the last sender report.
/// Relaying it keeps audio and video of one sender in sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderClock {
    /// The sender's NTP time.
    pub ntp: u64,
    /// The timestamp at that time.
    pub timestamp: u32,
    /// The arrival of the report.
    pub at: Instant,
}

impl SenderClock {
    /// Returns the sender's NTP time and timestamp at `now`.
    pub fn at(&self, now: Instant, clock_rate: u32) -> (u64, u32) {
        let since = now.saturating_duration_since(self.at);
        let ticks = since.as_nanos() * u128::from(clock_rate) / 1_000_000_000;
        (
            self.ntp.wrapping_add(fixed(since)),
            self.timestamp.wrapping_add(ticks as u32),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_time_runs_with_the_instants() {
        let start = Instant::now();
        let clock = NtpClock::new(start, Duration::from_secs(10));
        let later = clock.ntp(start + Duration::from_millis(500));
        assert_eq!(later, ((NtpClock::UNIX_EPOCH + 10) << 32) + (1 << 31));
    }

    #[test]
    fn a_sender_clock_runs_on() {
        let at = Instant::now();
        let clock = SenderClock {
            ntp: 5 << 32,
            timestamp: 100,
            at,
        };
        assert_eq!(
            clock.at(at + Duration::from_secs(2), 90_000),
            (7 << 32, 180_100)
        );
    }
}
