//! The pace of frames.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Frames that are overdue for longer are omitted, since the machine was too busy to send them.
const MOST_LATE: Duration = Duration::from_millis(500);

/// A recurring deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: Instant,
    period: Duration,
}

impl Due {
    /// Creates a deadline at `first`, and then each `period`, which must not be 0.
    pub(crate) fn new(first: Instant, period: Duration) -> Self {
        Self { at: first, period }
    }

    /// Creates a deadline each `period`, shifted by `phase` (0 to 1) of it after `epoch`. The first
    /// one is after `now`.
    pub(crate) fn in_phase(epoch: Instant, phase: f64, period: Duration, now: Instant) -> Self {
        let mut due = Self::new(epoch + period.mul_f64(phase.clamp(0.0, 1.0)), period);
        due.skip(now);
        due
    }

    /// Returns the time between two deadlines.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// Returns the next deadline.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Returns for how long it has been due at `now`, or `None` before it is due. Then the next
    /// deadline is set.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Duration> {
        let late = now.checked_duration_since(self.at)?;
        self.at += self.period;
        if self.at + MOST_LATE < now {
            self.skip(now);
        }
        Some(late)
    }

    /// Skips deadlines before `now`. The phase remains, so that sources that were held up together
    /// do not send together afterwards.
    fn skip(&mut self, now: Instant) {
        let behind = now.saturating_duration_since(self.at).as_nanos();
        let periods = behind.div_ceil(self.period.as_nanos().max(1));
        self.at += self.period * u32::try_from(periods).unwrap_or(u32::MAX);
    }
}

/// The factor by which delayed packets are sent faster than they are due, ...
const CATCH_UP: f64 = 1.25;
/// ... as long as more than this many are behind.
const BEHIND: u32 = 3;

/// The least time between what many sources send while they are behind.
///
/// The sources of one thread are delayed together when its core is taken away. Sources on machines
/// of their own are not, and so do not meet afterwards.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    gap: Duration,
    free: Option<Instant>,
}

impl Spacing {
    /// Creates the spacing for deadlines with these `periods`, which must not be 0.
    pub(crate) fn of(periods: impl Iterator<Item = Duration>) -> Self {
        let per_s: f64 = periods.map(|period| period.as_secs_f64().recip()).sum();
        let gap = Duration::try_from_secs_f64((per_s * CATCH_UP).recip());
        Self {
            gap: gap.unwrap_or_default(),
            free: None,
        }
    }

    /// Returns when a packet that is due `at` may be sent.
    pub(crate) fn not_before(&self, at: Instant, now: Instant) -> Instant {
        let is_behind = now.saturating_duration_since(at) > self.gap * BEHIND;
        self.free
            .filter(|_| is_behind)
            .map_or(at, |free| free.max(at))
    }

    /// Records that a packet was sent for which [`Self::not_before`] returned `at`.
    pub(crate) fn sent(&mut self, at: Instant, now: Instant) {
        // The excess of a short sleep is made up for at once.
        let from = at.max(now.checked_sub(self.gap).unwrap_or(now));
        self.free = Some(from + self.gap);
    }
}

/// The delays with which frames were passed to the kernel after they were due.
#[derive(Debug, Default)]
pub struct Lateness(Mutex<Vec<f64>>);

impl Lateness {
    /// Records a frame.
    pub fn note(&self, late: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(late.as_secs_f64() * 1e6);
    }

    /// Returns the delays since the last call, in microseconds.
    pub fn take_us(&self) -> Vec<f64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the `n`-th of numbers from 0 to 1 that are evenly spread however many are taken,
/// starting with 0: multiples of the golden ratio.
pub(crate) fn spread(n: u64) -> f64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    n.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_made_up_for_unless_they_are_long() {
        let start = Instant::now();
        let ms = |n| start + Duration::from_millis(n);
        let mut due = Due::new(start, Duration::from_millis(20));
        assert!(due.take(start).is_some() && due.take(ms(19)).is_none());
        assert_eq!(due.take(ms(45)), Some(Duration::from_millis(25)));
        assert!(due.take(ms(45)).is_some() && due.take(ms(45)).is_none());
        assert!(due.take(ms(1_003)).is_some());
        assert_eq!(due.at(), ms(1_020), "in the phase that it had");
    }

    /// Returns when each of `due` is sent, in ms, by a thread that stalls from 100 to 300 ms.
    fn sent_ms(due: &[u64], mut spacing: Spacing) -> Vec<u128> {
        let start = Instant::now();
        let mut now = start;
        let mut send = |due: &u64| {
            let at = start + Duration::from_millis(*due);
            loop {
                let next = spacing.not_before(at, now);
                if next <= now {
                    spacing.sent(next, now);
                    return (now - start).as_millis();
                }
                now = next;
                if (100..300).contains(&(now - start).as_millis()) {
                    now = start + Duration::from_millis(300);
                }
            }
        };
        due.iter().map(&mut send).collect()
    }

    #[test]
    fn sources_that_were_held_up_together_do_not_meet() {
        // Ten packets are due each 100 ms: one each 10 ms, or 8 ms to catch up.
        let spacing = || Spacing::of([Duration::from_millis(100); 10].into_iter());
        let due: Vec<u64> = (0..200).map(|n| n * 10).collect();
        let sent = sent_ms(&due, spacing());
        let close = |at: u128| {
            sent.iter()
                .filter(|other| (at..at + 8).contains(other))
                .count()
        };
        let most = sent.iter().map(|at| close(*at)).max();
        assert!(most <= Some(5), "{most:?} at once: {sent:?}");
        assert_eq!(sent.last(), Some(&1_990), "all was made up for");
    }

    #[test]
    fn what_is_due_at_one_moment_is_sent_at_one_moment() {
        let periods = [Duration::from_millis(20), Duration::from_millis(33)];
        let due = [0, 0, 20, 33, 40, 60, 66];
        let sent = sent_ms(&due, Spacing::of(periods.into_iter()));
        assert_eq!(sent, due.map(u128::from));
        let aligned = sent_ms(&[120, 130, 140], Spacing::default());
        assert_eq!(aligned, [300; 3]);
    }

    #[test]
    fn a_phase_is_kept_from_a_common_start() {
        let epoch = Instant::now();
        let ms = |n| epoch + Duration::from_millis(n);
        let period = Duration::from_millis(40);
        let due = |phase, now| Due::in_phase(epoch, phase, period, ms(now)).at();
        assert_eq!(due(0.25, 0), ms(10));
        assert_eq!(due(0.25, 11), ms(50));
        assert_eq!(due(0.0, 80), ms(80));
    }

    #[test]
    fn a_spread_has_no_large_gaps() {
        assert_eq!(spread(0), 0.0);
        for count in [7, 33, 100, 1_000] {
            let mut all: Vec<f64> = (0..count).map(spread).chain([1.0]).collect();
            all.sort_by(f64::total_cmp);
            let gaps = all.iter().zip(all.iter().skip(1)).map(|(a, b)| b - a);
            let largest = gaps.max_by(f64::total_cmp).unwrap_or(1.0);
            assert!(largest < 2.7 / count as f64, "{count}: {largest}");
        }
    }
}
