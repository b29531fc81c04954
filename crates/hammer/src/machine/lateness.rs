//! The lateness of a core without load.
//!
//! A hypervisor, its other guests and other programs take a core away from its thread. A loop that
//! only reads the clock sees the gaps. Packets that arrive within a gap wait for its end, so no
//! server on that core can have shorter delays.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::cores::{CoreError, pin};
use crate::record::Lateness;

/// Shorter gaps count as those of the loop itself.
const SHORTEST: Duration = Duration::from_micros(10);
/// The share of all moments that is excluded from [`Lateness::p99_us`].
const LATEST: f64 = 0.01;

/// Watches all of `cores` at once for `duration`.
pub(crate) fn measure(cores: &[usize], duration: Duration) -> Result<Vec<Lateness>, CoreError> {
    let mut cores = cores.to_vec();
    cores.sort_unstable();
    cores.dedup();
    let all_there = Barrier::new(cores.len());
    thread::scope(|scope| {
        let watch = |core| {
            let all_there = &all_there;
            scope.spawn(move || {
                let pinned = pin(core);
                all_there.wait();
                pinned.map(|()| lateness(core, gaps(duration), duration))
            })
        };
        let watching: Vec<_> = cores.iter().map(|core| watch(*core)).collect();
        let ended = watching.into_iter();
        ended
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// Returns the times for which the calling thread was not on its core.
fn gaps(duration: Duration) -> Vec<Duration> {
    // There cannot be more. The loop must not wait for memory.
    let most = duration.as_micros() / SHORTEST.as_micros();
    let mut gaps = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
    let start = Instant::now();
    let mut last = start;
    while last - start < duration {
        let now = Instant::now();
        if now - last > SHORTEST {
            gaps.push(now - last);
        }
        last = now;
    }
    gaps
}

fn lateness(core: usize, gaps: Vec<Duration>, duration: Duration) -> Lateness {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    Lateness {
        core,
        p99_us: us(exceeded(&gaps, duration.mul_f64(LATEST))),
        max_us: us(gaps.into_iter().max().unwrap_or_default()),
    }
}

/// Returns the lateness that the latest moments exceed, which together last for `time`: a moment
/// waits for the end of its gap.
fn exceeded(gaps: &[Duration], time: Duration) -> Duration {
    let mut longest_first = gaps.to_vec();
    longest_first.sort_unstable_by(|one, other| other.cmp(one));
    let next = longest_first.iter().skip(1).copied();
    let (mut sum, mut count) = (Duration::ZERO, 0);
    // Beyond `late`, the first `count` gaps together last for `sum - count * late`.
    for (gap, next) in longest_first.iter().zip(next.chain([Duration::ZERO])) {
        sum += *gap;
        count += 1;
        if sum - next * count >= time {
            return (sum - time) / count;
        }
    }
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn moments_wait_for_the_end_of_their_gap() {
        assert_eq!(exceeded(&[], ms(10)), ms(0));
        assert_eq!(exceeded(&[ms(4), ms(5)], ms(10)), ms(0), "nine of ten");
        // In one gap of 30 ms, the first 10 ms are answered after more than 20 ms.
        assert_eq!(exceeded(&[ms(30)], ms(10)), ms(20));
        // 3 ms of the longer gap and 1 ms of the shorter one.
        assert_eq!(exceeded(&[ms(5), ms(7)], ms(4)), ms(4));
        assert_eq!(exceeded(&[ms(1); 20], ms(10)), Duration::from_micros(500));
    }

    #[test]
    fn a_core_is_watched_for_as_long_as_asked() {
        let start = Instant::now();
        let seen = measure(&[0, 0], ms(50)).unwrap();
        assert!(start.elapsed() >= ms(50));
        assert_eq!(seen.len(), 1, "a core named twice is one");
        assert!(seen.iter().all(|core| core.p99_us <= core.max_us));
        assert!(measure(&[1_000], ms(1)).is_err(), "there is no such core");
    }
}
