//! The speed of a core over time.
//!
//! Cores of a virtual machine are often threads of physical cores shared with other guests. While
//! another guest works, the same code takes up to twice the time, and no counter of the guest shows
//! it.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The memory that the work reads repeatedly: little enough to leave the core's first-level cache
/// to others.
const WORDS: usize = 512;
/// The number of passes: some microseconds of work for the core's parallel units, which the threads
/// of a core share.
const PASSES: usize = 64;
/// The measurements of a window, so that an interrupt does not matter.
const WINDOW: usize = 20;
/// A core is slow if it takes this factor of its best time.
const SLOW: f64 = 1.25;

/// Measures one core.
#[derive(Debug)]
pub(crate) struct Speed {
    words: Vec<u64>,
    window: Vec<Duration>,
    /// The shortest time of a window.
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
    /// Measures once. At the end of each window, returns whether the core was slow in it.
    pub(crate) fn measure(&mut self) -> Option<bool> {
        // Earlier work of the core has displaced the words.
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

    /// Computes independent sums.
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

    /// Returns the result of a window of `time` and some outliers.
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
