//! Histograms of times.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of buckets, including the one without a bound.
const BUCKETS: usize = 14;

/// The upper bounds of all buckets but the last: 0.5 ms to 30 s.
const BOUNDS: [Duration; BUCKETS - 1] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];

/// Times since the start, counted in buckets. Threads add times without waiting.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    /// The sum of all times, in µs.
    sum: AtomicU64,
}

/// How many times are at most as long as a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The bound in seconds, or `None` for the last bucket, which has all times.
    pub bound: Option<f64>,
    /// How many times are at most that long.
    pub count: u64,
}

/// A histogram at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistogramSnapshot {
    /// The buckets, by their bounds.
    pub buckets: Vec<Bucket>,
    /// The sum of all times, in seconds.
    pub sum: f64,
}

impl HistogramSnapshot {
    /// Returns how many times were counted.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |last| last.count)
    }
}

impl Histogram {
    /// Counts a time.
    pub fn add(&self, time: Duration) {
        let bucket = BOUNDS.iter().position(|bound| time <= *bound);
        if let Some(count) = self.counts.get(bucket.unwrap_or(BUCKETS - 1)) {
            count.fetch_add(1, Relaxed);
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Relaxed);
    }

    /// Returns the counts so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let bounds = BOUNDS.iter().map(|bound| Some(bound.as_secs_f64()));
        let mut below = 0_u64;
        let buckets = bounds.chain([None]).zip(&self.counts);
        let buckets = buckets.map(|(bound, count)| {
            below = below.saturating_add(count.load(Relaxed));
            Bucket {
                bound,
                count: below,
            }
        });
        HistogramSnapshot {
            buckets: buckets.collect(),
            sum: self.sum.load(Relaxed) as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_all_times_up_to_its_bound() {
        let histogram = Histogram::default();
        for millis in [0, 1, 2, 5_000, 5_001, 60_000] {
            histogram.add(Duration::from_millis(millis));
        }
        let snapshot = histogram.snapshot();
        let below = |bound: Option<f64>| {
            let found = snapshot.buckets.iter().find(|it| it.bound == bound);
            found.map(|it| it.count)
        };
        assert_eq!(below(Some(0.0005)), Some(1));
        assert_eq!(below(Some(0.001)), Some(2));
        assert_eq!(below(Some(0.0025)), Some(3));
        assert_eq!(below(Some(5.0)), Some(4));
        assert_eq!(below(Some(30.0)), Some(5));
        assert_eq!(below(None), Some(6));
        assert!((snapshot.sum - 70.004).abs() < 1e-9, "{}", snapshot.sum);
    }
}
