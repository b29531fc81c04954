//! How fast a core works from moment to moment.
//!
//! Cores of a virtual machine are often threads of cores that it shares with other guests. While one of those works,
//! the same code takes up to twice the time, and no counter of the guest tells.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What the work reads again and again: little enough to leave a core's first-level cache to others.
const WORDS: usize = 512;
/// How often it does: some microseconds, by what the core's units can do side by side, which is what threads of a core
/// share.
const PASSES: usize = 64;
/// Measurements of a window: one that an interrupt made longer does not count.
const WINDOW: usize = 20;
/// A core is slow that takes so many times what it took at its best.
const SLOW: f64 = 1.25;

/// Measures one core.
#[derive(Debug)]
pub(crate) struct Speed {
    words: Vec<u64>,
    window: Vec<Duration>,
    /// The shortest of what windows took.
    best: Option<Duration>,
}

impl Default for Speed {
    fn default() -> Self {
        Self {
            words: (0..WORDS as u64).collect(),
            window: Vec::with_capacity(WINDOW),
            best: None,
        }
    }
}

impl Speed {
    /// Measures once; at the end of each window says whether the core was slow in it.
    pub(crate) fn measure(&mut self) -> Option<bool> {
        // What the core did before has displaced the words.
        self.work(1);
        let start = Instant::now();
        self.work(PASSES);
        self.took(start.elapsed())
    }

    fn took(&mut self, time: Duration) -> Option<bool> {
        self.window.push(time);
        if self.window.len() < WINDOW {
            return None;
        }
        self.window.sort_unstable();
        let median = self.window.get(WINDOW / 2).copied().unwrap_or_default();
        self.window.clear();
        let best = self.best.map_or(median, |best| best.min(median));
        self.best = Some(best);
        Some(median > best.mul_f64(SLOW))
    }

    /// Sums that do not wait for each other.
    fn work(&self, passes: usize) {
        let mut sums = [0_u64; 16];
        for _ in 0..passes {
            for words in black_box(&self.words).chunks_exact(sums.len()) {
                for (sum, word) in sums.iter_mut().zip(words) {
                    *sum = sum.wrapping_add(*word);
                }
            }
        }
        black_box(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// What a window of `time` and some outliers tells.
    fn window(speed: &mut Speed, time: Duration) -> Option<bool> {
        for n in 1..WINDOW {
            let time = if n % 7 == 0 { us(900) } else { time };
            assert_eq!(speed.took(time), None);
        }
        speed.took(time)
    }

    #[test]
    fn a_window_is_slow_by_the_best_one_and_not_by_interrupts() {
        let mut speed = Speed::default();
        assert_eq!(window(&mut speed, us(10)), Some(false));
        assert_eq!(window(&mut speed, us(12)), Some(false));
        assert_eq!(window(&mut speed, us(13)), Some(true));
        assert_eq!(window(&mut speed, us(6)), Some(false));
        assert_eq!(window(&mut speed, us(8)), Some(true));
    }

    #[test]
    fn each_window_of_measurements_tells_something() {
        let mut speed = Speed::default();
        let told = (0..3 * WINDOW).filter_map(|_| speed.measure()).count();
        assert_eq!(told, 3);
        assert!(speed.best.is_some_and(|best| best > Duration::ZERO));
    }
}
