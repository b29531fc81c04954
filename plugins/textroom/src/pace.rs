//! Rate limits: a burst, and a rate from then on.

use std::time::Duration;

use tokio::time::Instant;

/// The limit of messages or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The rate per second. 0 means no limit.
    pub(crate) rate: u32,
    /// At once, before the rate counts.
    pub(crate) burst: u32,
}

/// The use of a [`Rate`] by one sender. Its only state is the time when the use so far is used up
/// at that rate.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The cost of a message or byte. `None` means no limit.
    cost: Option<Duration>,
    /// The greatest lead over the rate.
    ahead: Duration,
    made_up: Instant,
}

impl Pace {
    pub(crate) fn new(Rate { rate, burst }: Rate, now: Instant) -> Self {
        let cost = (rate > 0).then(|| Duration::from_secs(1) / rate.max(1));
        Pace {
            cost,
            ahead: cost.unwrap_or_default().saturating_mul(burst.max(1)),
            made_up: now,
        }
    }

    /// Returns whether `amount` may be sent now.
    pub(crate) fn fits(&self, amount: usize, now: Instant) -> bool {
        self.after(amount, now)
            .is_none_or(|next| next.saturating_duration_since(now) <= self.ahead)
    }

    /// Counts `amount` as sent.
    pub(crate) fn take(&mut self, amount: usize, now: Instant) {
        if let Some(next) = self.after(amount, now) {
            self.made_up = next;
        }
    }

    /// Returns when the use with `amount` more is used up. `None` means no limit.
    fn after(&self, amount: usize, now: Instant) -> Option<Instant> {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        let cost = self.cost?.saturating_mul(amount);
        let from = self.made_up.max(now);
        Some(from.checked_add(cost).unwrap_or(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pace: &mut Pace, amount: usize, tries: usize, now: Instant) -> usize {
        let mut sent = 0;
        for _ in 0..tries {
            if pace.fits(amount, now) {
                pace.take(amount, now);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn there_is_a_burst_and_then_a_rate() {
        let start = Instant::now();
        let rate = Rate {
            rate: 10,
            burst: 30,
        };
        let mut pace = Pace::new(rate, start);
        assert_eq!(sent(&mut pace, 1, 100, start), 30);
        let later = start + Duration::from_secs(1);
        assert_eq!(sent(&mut pace, 1, 100, later), 10);
        let long_after = later + Duration::from_secs(3_600);
        assert_eq!(sent(&mut pace, 10, 100, long_after), 3);
    }

    #[test]
    fn what_is_more_than_the_burst_never_fits() {
        let start = Instant::now();
        let mut pace = Pace::new(
            Rate {
                rate: 10,
                burst: 30,
            },
            start,
        );
        assert!(!pace.fits(31, start));
        assert!(!pace.fits(usize::MAX, start + Duration::from_secs(3_600)));
        pace.take(30, start);
        assert!(!pace.fits(1, start));
    }

    #[test]
    fn without_a_rate_everything_fits() {
        let start = Instant::now();
        let mut pace = Pace::new(Rate { rate: 0, burst: 0 }, start);
        assert_eq!(sent(&mut pace, usize::MAX, 1_000, start), 1_000);
    }
}
