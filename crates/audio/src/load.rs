//! The load of a thread: its lateness, its share of a core, and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use portunus_dsp::RoomStats;
use rustix::time::{ClockId, clock_gettime};

use crate::splitter::Helped;

/// The classes of lateness: four for each doubling of a microsecond, up to some seconds.
const CLASSES: usize = 96;
/// The bits that distinguish the classes of a doubling.
const FINE: u32 = 2;
/// The lateness is that of the last one or two of these windows.
const WINDOW: Duration = Duration::from_secs(10);
/// The shortest time between two log messages about skipped frames.
const TELL: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The published load of a thread. Only the thread writes it.
#[derive(Debug)]
pub(crate) struct SharedLoad {
    pub(crate) ticks: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) decoded: AtomicU64,
    pub(crate) relayed: AtomicU64,
    pub(crate) encoded: AtomicU64,
    pub(crate) undelivered: AtomicU64,
    pub(crate) merged: AtomicU64,
    pub(crate) helped: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// In thousandths.
    core_share: AtomicU64,
    /// The number of frames in each class of lateness, in this window and the one before.
    late: [[AtomicU32; CLASSES]; 2],
    /// The greatest lateness in each window, in µs.
    latest: [AtomicU64; 2],
}

impl Default for SharedLoad {
    fn default() -> Self {
        Self {
            ticks: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            relayed: AtomicU64::new(0),
            encoded: AtomicU64::new(0),
            undelivered: AtomicU64::new(0),
            merged: AtomicU64::new(0),
            helped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            core_share: AtomicU64::new(0),
            late: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0))),
            latest: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl SharedLoad {
    /// Returns the share of a core used in the last second.
    pub(crate) fn core_share(&self) -> f64 {
        self.core_share.load(Relaxed) as f64 / 1_000.0
    }

    /// Returns the lateness of the last seconds: median, 99th percentile and maximum.
    pub(crate) fn lateness(&self) -> [Duration; 3] {
        let [one, other] = &self.late;
        let counts = one.iter().zip(other);
        let counts: Vec<u64> = counts
            .map(|(a, b)| u64::from(a.load(Relaxed)) + u64::from(b.load(Relaxed)))
            .collect();
        let all: u64 = counts.iter().sum();
        let most = self.latest.iter().map(|it| it.load(Relaxed)).max();
        let most = Duration::from_micros(most.unwrap_or(0));
        let quantile = |of_100: u64| {
            let wanted = (all * of_100).div_ceil(100);
            let mut seen = 0;
            let class = counts.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            class.map_or(Duration::ZERO, end_of_class).min(most)
        };
        [quantile(50), quantile(99), most]
    }
}

/// The thread's own side of its load.
#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<SharedLoad>,
    window: usize,
    window_began: Option<Instant>,
    second_began: Option<Instant>,
    cpu: Duration,
    logged: Option<Instant>,
    /// Skipped frames that were not logged yet.
    unlogged: u64,
}

impl Load {
    pub(crate) fn new(shared: Arc<SharedLoad>) -> Self {
        Self {
            shared,
            window: 0,
            window_began: None,
            second_began: None,
            cpu: Duration::ZERO,
            logged: None,
            unlogged: 0,
        }
    }

    /// Counts the work for a room's frame, and the help of other threads.
    pub(crate) fn ticked(&self, done: RoomStats, helped: Helped) {
        add(&self.shared.ticks, done.ticks);
        add(&self.shared.decoded, done.decoded);
        add(&self.shared.relayed, done.relayed);
        add(&self.shared.encoded, done.encoded);
        add(&self.shared.helped, helped.back);
        add(&self.shared.lost, helped.lost);
    }

    /// Counts events that a later event replaced.
    pub(crate) fn merged(&self, events: u64) {
        add(&self.shared.merged, events);
    }

    /// Counts skipped frames of rooms.
    pub(crate) fn skipped(&mut self, frames: u64) {
        add(&self.shared.skipped, frames);
        self.unlogged += frames;
    }

    /// Logs skipped frames, at most once a minute.
    pub(crate) fn log_late(&mut self, thread: usize) {
        let now = Instant::now();
        let is_recent = |at| now.saturating_duration_since(at) < TELL;
        if self.unlogged == 0 || self.logged.is_some_and(is_recent) {
            return;
        }
        self.logged = Some(now);
        let frames = std::mem::take(&mut self.unlogged);
        tracing::warn!(
            thread,
            frames,
            "an audio thread is too late: frames of rooms were left out. It has too much to do, or waits for a core"
        );
    }

    /// Counts a frame that was so late.
    pub(crate) fn late(&self, late: Duration) {
        let counts = self.shared.late.get(self.window);
        if let Some(count) = counts.and_then(|counts| counts.get(class(late))) {
            count.store(count.load(Relaxed).saturating_add(1), Relaxed);
        }
        if let Some(latest) = self.shared.latest.get(self.window) {
            let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            latest.store(latest.load(Relaxed).max(micros), Relaxed);
        }
    }

    /// Publishes the counters after the rooms of a phase were mixed.
    pub(crate) fn end_turn(&mut self, undelivered: u64, now: Instant) {
        self.shared.undelivered.store(undelivered, Relaxed);
        let window = *self.window_began.get_or_insert(now);
        if now.saturating_duration_since(window) >= WINDOW {
            self.window_began = Some(now);
            self.window = 1 - self.window;
            let counts = self.shared.late.get(self.window);
            for count in counts.into_iter().flatten() {
                count.store(0, Relaxed);
            }
            if let Some(latest) = self.shared.latest.get(self.window) {
                latest.store(0, Relaxed);
            }
        }
        let second = *self.second_began.get_or_insert(now);
        let elapsed = now.saturating_duration_since(second);
        if elapsed < SECOND {
            return;
        }
        self.second_began = Some(now);
        let cpu = cpu_time();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.cpu, cpu));
        let share = used.as_micros() * 1_000 / elapsed.as_micros().max(1);
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        self.shared.core_share.store(share, Relaxed);
    }
}

/// Adds to a counter that only this thread writes.
fn add(total: &AtomicU64, count: u64) {
    if count > 0 {
        total.store(total.load(Relaxed) + count, Relaxed);
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn class(late: Duration) -> usize {
    let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
    let doubling = micros.checked_ilog2().unwrap_or(0);
    let class = match doubling.checked_sub(FINE) {
        Some(shift) => ((shift + 1) << FINE) as usize + ((micros >> shift) & 3) as usize,
        None => micros as usize,
    };
    class.min(CLASSES - 1)
}

/// Returns the upper bound of a class.
fn end_of_class(class: usize) -> Duration {
    let next = class + 1;
    let micros = match next.checked_sub(4) {
        Some(above) => ((4 + (above % 4)) as u64) << (above / 4),
        None => next as u64,
    };
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_as_long_as_they_say() {
        let mut last = 0;
        for micros in 0..200_000 {
            let late = Duration::from_micros(micros);
            let class = class(late);
            assert!(class == last || class == last + 1, "{micros}");
            last = class;
            assert!(late < end_of_class(class), "{micros}");
            let least = end_of_class(class) * 3 / 4;
            let least = least.saturating_sub(Duration::from_micros(1));
            assert!(late >= least, "{micros}");
        }
    }

    #[test]
    fn a_thread_is_not_told_late_while_nobody_misses_anything() {
        let mut load = Load::new(Arc::default());
        load.log_late(0);
        assert!(load.logged.is_none());
        load.skipped(1);
        load.log_late(0);
        assert!(load.logged.is_some());
    }

    #[test]
    fn what_is_told_is_of_the_last_seconds() {
        let shared = Arc::new(SharedLoad::default());
        let mut load = Load::new(Arc::clone(&shared));
        let start = Instant::now();
        let ms = Duration::from_millis;
        load.end_turn(0, start);
        for n in 0..1_000 {
            load.late(ms(if n < 985 { 1 } else { 40 }));
        }
        let [median, p99, most] = shared.lateness();
        assert!(median >= ms(1) && median < ms(2), "{median:?}");
        assert_eq!((p99, most), (ms(40), ms(40)));
        load.end_turn(0, start + ms(11_000));
        load.late(ms(2));
        assert_eq!(shared.lateness()[2], ms(40));
        load.end_turn(0, start + ms(22_000));
        assert_eq!(shared.lateness()[2], ms(2));
    }
}
