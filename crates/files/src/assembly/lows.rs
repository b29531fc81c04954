//! The recent lowest delay.

use super::Nanos;

/// The number of buckets, each of a second.
const BUCKETS: usize = 10;
const SECOND: Nanos = 1_000_000_000;

/// The lowest delay in the last ten seconds with delays.
#[derive(Debug)]
pub(super) struct Lows {
    buckets: [Nanos; BUCKETS],
    /// The second of the current bucket.
    second: i64,
    low: Nanos,
    since: Option<Nanos>,
    last: Nanos,
}

impl Default for Lows {
    fn default() -> Self {
        Self {
            buckets: [Nanos::MAX; BUCKETS],
            second: 0,
            low: Nanos::MAX,
            since: None,
            last: 0,
        }
    }
}

impl Lows {
    /// Takes a delay seen at `now`.
    pub(super) fn add(&mut self, now: Nanos, delay: Nanos) {
        let second = now.div_euclid(SECOND);
        self.since.get_or_insert(now);
        self.last = self.last.max(now);
        if second > self.second {
            let passed = second.saturating_sub(self.second);
            self.second = second;
            for back in 0..passed.min(BUCKETS as i64) {
                if let Some(bucket) = self.bucket(second.saturating_sub(back)) {
                    *bucket = Nanos::MAX;
                }
            }
            self.low = self.buckets.iter().copied().min().unwrap_or(Nanos::MAX);
        }
        // Time never goes back; if it seems to, it counts as the current second.
        if let Some(bucket) = self.bucket(self.second) {
            *bucket = delay.min(*bucket);
        }
        self.low = self.low.min(delay);
    }

    fn bucket(&mut self, second: i64) -> Option<&mut Nanos> {
        let index = usize::try_from(second.rem_euclid(BUCKETS as i64)).ok()?;
        self.buckets.get_mut(index)
    }

    /// Returns the lowest delay, if there is one.
    pub(super) fn low(&self) -> Option<Nanos> {
        self.since.map(|_| self.low)
    }

    /// Returns the time since the first delay.
    pub(super) fn span(&self) -> Nanos {
        self.since
            .map_or(0, |since| self.last.saturating_sub(since))
    }

    /// Returns the time of the last delay.
    pub(super) fn last(&self) -> Option<Nanos> {
        self.since.map(|_| self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_ten_seconds_does_not_count() {
        let mut lows = Lows::default();
        assert_eq!(lows.low(), None);
        for (second, delay, low) in [
            (0, 50, 50),
            (1, 70, 50),
            (9, 60, 50),
            (10, 80, 60),
            (18, 90, 60),
            (19, 95, 80),
            (60, 99, 99),
            (3, 98, 98),
        ] {
            lows.add(second * SECOND + 5, delay);
            assert_eq!(lows.low(), Some(low), "{second}");
        }
        assert_eq!(lows.span(), 60 * SECOND);
    }
}
