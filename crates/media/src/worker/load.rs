//! The load of a worker: how late its turns start, how much of its core it uses, and its traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::WorkerStats;

const SECOND: Duration = Duration::from_secs(1);
/// The number of seconds that statistics cover.
const SECONDS: usize = 5;
/// Classes of lateness: four for each doubling, from a microsecond up to some seconds.
const CLASSES: usize = 96;
/// The number of bits that distinguish the classes of a doubling.
const FINE: u32 = 2;

/// The published load of a worker. Only the worker writes it.
#[derive(Debug)]
pub(crate) struct SharedLoad {
    started: Instant,
    /// In µs since `started`.
    last_turn: AtomicU64,
    /// In µs.
    lag_median: AtomicU64,
    lag_max: AtomicU64,
    /// See [`WorkerStats::thread`].
    thread: AtomicU32,
    /// In thousandths.
    core_share: AtomicU64,
    /// Per second, in the order of [`Passed`].
    passed: [AtomicU64; 4],
}

/// UDP traffic since the start: datagrams and bytes received, datagrams and bytes sent.
pub(super) type Passed = [u64; 4];

/// The load of a worker, as it measures it.
pub(super) struct Load {
    shared: Arc<SharedLoad>,
    /// The number of turns in each second, by lateness.
    late: [[u16; CLASSES]; SECONDS],
    most: [Duration; SECONDS],
    second: usize,
    began: Instant,
    cpu: Duration,
    passed: Passed,
}

impl SharedLoad {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            started: Instant::now(),
            last_turn: zero(),
            lag_median: zero(),
            lag_max: zero(),
            thread: AtomicU32::new(0),
            core_share: zero(),
            passed: [zero(), zero(), zero(), zero()],
        }
    }

    /// Returns the statistics of worker `index` with `peers` peers.
    pub(crate) fn stats(&self, index: usize, peers: usize) -> WorkerStats {
        let micros = |at: &AtomicU64| Duration::from_micros(at.load(Relaxed));
        let [received, received_bytes, sent, sent_bytes] =
            [0, 1, 2, 3].map(|n| self.passed.get(n).map_or(0, |it| it.load(Relaxed)));
        let age = self.started.elapsed();
        WorkerStats {
            index,
            peers,
            lag_median: micros(&self.lag_median),
            lag_max: micros(&self.lag_max),
            silent: age.saturating_sub(micros(&self.last_turn)),
            thread: self.thread.load(Relaxed),
            core_share: self.core_share.load(Relaxed) as f64 / 1_000.0,
            received_packets: received,
            received_bits: received_bytes * 8,
            sent_packets: sent,
            sent_bits: sent_bytes * 8,
        }
    }
}

impl Load {
    pub(super) fn new(shared: Arc<SharedLoad>) -> Self {
        let began = shared.started;
        Self {
            shared,
            late: [[0; CLASSES]; SECONDS],
            most: [Duration::ZERO; SECONDS],
            second: 0,
            began,
            cpu: Duration::ZERO,
            passed: [0; 4],
        }
    }

    /// Starts a turn at `now`. Its first task was due at `due`.
    pub(super) fn begin_turn(&mut self, due: Option<Instant>, now: Instant) {
        let Some(late) = due.and_then(|due| now.checked_duration_since(due)) else {
            return;
        };
        let classes = self.late.get_mut(self.second);
        if let Some(count) = classes.and_then(|classes| classes.get_mut(class(late))) {
            *count = count.saturating_add(1);
        }
        if let Some(most) = self.most.get_mut(self.second) {
            *most = late.max(*most);
        }
    }

    /// Ends a turn. Publishes the load once a second.
    pub(super) fn end_turn(&mut self, passed: Passed, now: Instant) {
        let shared = &self.shared;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let age = now.saturating_duration_since(shared.started);
        shared.last_turn.store(micros(age), Relaxed);
        let elapsed = now.saturating_duration_since(self.began);
        if elapsed < SECOND {
            return;
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        shared.thread.store(thread.unsigned_abs(), Relaxed);
        shared.lag_median.store(micros(self.median()), Relaxed);
        let most = self.most.iter().max().copied().unwrap_or_default();
        shared.lag_max.store(micros(most), Relaxed);
        let cpu = cpu_time();
        let used = cpu.saturating_sub(self.cpu).as_secs_f64() / elapsed.as_secs_f64();
        shared
            .core_share
            .store((used * 1_000.0).round() as u64, Relaxed);
        let counts = shared.passed.iter().zip(passed.iter().zip(self.passed));
        for (shared, (count, before)) in counts {
            let rate = count.saturating_sub(before) as f64 / elapsed.as_secs_f64();
            shared.store(rate.round() as u64, Relaxed);
        }
        (self.cpu, self.passed, self.began) = (cpu, passed, now);
        self.second = (self.second + 1) % SECONDS;
        if let Some(classes) = self.late.get_mut(self.second) {
            *classes = [0; CLASSES];
        }
        if let Some(most) = self.most.get_mut(self.second) {
            *most = Duration::ZERO;
        }
    }

    /// The median lateness of the turns of the last seconds in which something was due.
    fn median(&self) -> Duration {
        let of_class = |class: usize| -> u64 {
            let seconds = self.late.iter().filter_map(|classes| classes.get(class));
            seconds.map(|count| u64::from(*count)).sum()
        };
        let all: u64 = (0..CLASSES).map(of_class).sum();
        let mut left = all.div_ceil(2);
        for class in 0..CLASSES {
            let count = of_class(class);
            if count > 0 && count >= left {
                return lateness(class);
            }
            left = left.saturating_sub(count);
        }
        Duration::ZERO
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// The class of a lateness.
fn class(late: Duration) -> usize {
    let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2();
    // The bits after the first one.
    let fine = match doubling.checked_sub(FINE) {
        Some(shift) => micros >> shift,
        None => micros << (FINE - doubling),
    } & ((1 << FINE) - 1);
    let class = (u64::from(doubling) << FINE) | fine;
    usize::try_from(class).unwrap_or(CLASSES).min(CLASSES - 1)
}

/// The minimum lateness of a class.
fn lateness(class: usize) -> Duration {
    let (doubling, fine) = (class >> FINE, class & ((1 << FINE) - 1));
    let micros = ((1_u64 << FINE) + fine as u64) << doubling >> FINE;
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_class_is_within_a_quarter_of_what_is_in_it() {
        for micros in [1, 2, 3, 5, 17, 100, 999, 1_000, 65_537, 3_000_000] {
            let late = Duration::from_micros(micros);
            let least = lateness(class(late));
            assert!(least <= late, "{late:?}: {least:?}");
            assert!(least >= late.mul_f64(0.79), "{late:?}: {least:?}");
        }
        assert_eq!(class(Duration::MAX), CLASSES - 1);
    }

    /// Turns of some seconds, each so late.
    fn turns(load: &mut Load, start: Instant, late: &[Duration]) {
        for (n, late) in (0..).zip(late) {
            let due = start + MS * n;
            load.begin_turn(Some(due), due + *late);
        }
    }

    #[test]
    fn how_late_turns_begin_is_told_of_the_last_seconds() {
        let shared = Arc::new(SharedLoad::new());
        let mut load = Load::new(Arc::clone(&shared));
        let start = shared.started;
        turns(&mut load, start, &[MS; 10]);
        turns(&mut load, start, &[30 * MS, 2 * MS, 2 * MS]);
        // What came by itself was not late.
        load.begin_turn(None, start);
        load.begin_turn(Some(start + SECOND), start);
        load.end_turn([1_000, 2_000, 3_000, 4_000], start + SECOND);
        let stats = shared.stats(3, 7);
        assert_eq!((stats.index, stats.peers), (3, 7));
        assert!(stats.lag_median > MS * 3 / 4 && stats.lag_median <= MS);
        assert_eq!(stats.lag_max, 30 * MS);
        assert_eq!((stats.received_packets, stats.sent_packets), (1_000, 3_000));
        assert_eq!((stats.received_bits, stats.sent_bits), (16_000, 32_000));
        for n in 2..8 {
            load.end_turn([1_000, 2_000, 3_000, 4_000], start + SECOND * n);
        }
        let stats = shared.stats(0, 0);
        assert_eq!((stats.lag_median, stats.lag_max), Default::default());
        assert_eq!(stats.sent_bits, 0);
    }

    #[test]
    fn a_worker_that_has_no_turns_any_more_is_told() {
        let shared = SharedLoad::new();
        std::thread::sleep(MS);
        assert!(shared.stats(0, 0).silent >= MS);
    }
}
