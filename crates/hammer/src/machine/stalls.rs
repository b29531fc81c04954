//! How often and how long cores stall or are slow under load.
//!
//! A hypervisor, its agents and the kernel itself take a core away without counting it as stolen. A
//! thread with precedence over all others wakes every ms. If it is late, no thread had the core; if
//! a little work takes it longer than usual, the core is shared. Packets that arrive meanwhile
//! wait, which is not the server's fault.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portunus_udp::run_first;

use super::clock::wall_clock;
use super::cores::{CoreError, pin};
use super::speed::Speed;
use crate::record::Stalls;

/// Above servers whose threads have a real-time class too.
const PRIORITY: u8 = 2;
/// The interval of checks. A shorter stall may fall between two of them.
const PERIOD: Duration = Duration::from_millis(1);
/// Shorter delays are normal for waking a thread during a long system call.
const SHORTEST: Duration = Duration::from_micros(500);
/// The backlog is gone this long after a stall or a slow time, ...
const AFTER: Duration = Duration::from_millis(50);
/// ... or after this factor of its length: a server that uses 80 % of its core needs four times to
/// catch up, ...
const AFTER_STALL: u32 = 5;
/// ... and two and a half times if the core did two thirds of its work meanwhile.
const AFTER_SLOWNESS: u32 = 3;

/// The kind of a disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The core stalled.
    Stall,
    /// The core was slower than at its best.
    Slowness,
}

/// A time in which a core stalled or was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disturbance {
    /// The kind.
    pub trouble: Trouble,
    /// The core.
    pub core: usize,
    /// The start, since 1970.
    pub from: Duration,
    /// The end, since 1970.
    pub to: Duration,
    /// The end of its effects, since 1970.
    pub until: Duration,
}

impl Disturbance {
    fn length(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    /// Returns whether it may have delayed something between two moments.
    pub(crate) fn disturbs(&self, from: Duration, to: Duration) -> bool {
        self.from <= to && from <= self.until
    }
}

impl Stalls {
    /// Sums up the disturbances of a core.
    pub(crate) fn of(core: usize, disturbances: &[Disturbance]) -> Self {
        let mut this = Self {
            core,
            ..Self::default()
        };
        for disturbance in disturbances.iter().filter(|one| one.core == core) {
            let ms = disturbance.length().as_secs_f64() * 1e3;
            match disturbance.trouble {
                Trouble::Slowness => this.slow_ms += ms,
                Trouble::Stall => {
                    this.count += 1;
                    this.total_ms += ms;
                    this.longest_ms = this.longest_ms.max(ms);
                }
            }
        }
        this
    }
}

/// The reason why cores cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The core cannot be used.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The thread may not take precedence.
    #[error("watching cores takes the right to run before all others ({0}): start it as root")]
    Right(io::Error),
    /// The thread did not start.
    #[error("a thread that watches a core: {0}")]
    Thread(#[from] io::Error),
}

/// Watches cores until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    cores: Vec<usize>,
    seen: Arc<Mutex<Vec<Disturbance>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Starts a thread on each of `cores`.
    pub(crate) fn start(cores: &[usize]) -> Result<Self, WatchError> {
        let mut this = Self {
            cores: cores.to_vec(),
            seen: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for core in cores.iter().copied() {
            let (seen, stop) = (Arc::clone(&this.seen), Arc::clone(&this.stop));
            let (ready, outcome) = mpsc::channel();
            let run = move || {
                let began = begin(core);
                let may = began.is_ok();
                let heard = ready.send(began).is_ok();
                if may && heard {
                    watch(core, &seen, &stop);
                }
            };
            let name = format!("watch-{core}");
            this.threads
                .push(thread::Builder::new().name(name).spawn(run)?);
            outcome.recv().map_err(io::Error::other)??;
        }
        Ok(this)
    }

    /// Returns the watched cores.
    pub(crate) fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// Returns the disturbances since the last call.
    pub(crate) fn take(&self) -> Vec<Disturbance> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn begin(core: usize) -> Result<(), WatchError> {
    pin(core)?;
    run_first(PRIORITY).map_err(WatchError::Right)
}

fn watch(core: usize, seen: &Mutex<Vec<Disturbance>>, stop: &AtomicBool) {
    let note = |trouble, length, after: Duration| {
        let to = wall_clock();
        let disturbance = Disturbance {
            trouble,
            core,
            from: to.saturating_sub(length),
            to,
            until: to + after.max(AFTER),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(disturbance);
    };
    let mut due = Instant::now();
    let mut speed = Speed::default();
    let mut window = due;
    let mut slow_since = None;
    while !stop.load(Ordering::Relaxed) {
        due += PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let late = now.saturating_duration_since(due);
        if late > SHORTEST {
            note(Trouble::Stall, late, late * AFTER_STALL);
            due = now;
        }
        if let Some(is_slow) = speed.measure() {
            let from = std::mem::replace(&mut window, Instant::now());
            slow_since = is_slow.then(|| slow_since.unwrap_or(from));
            if let Some(since) = slow_since {
                let after = (window - since) * AFTER_SLOWNESS;
                note(Trouble::Slowness, window - from, after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn stall(core: usize, from: u64, to: u64) -> Disturbance {
        Disturbance {
            trouble: Trouble::Stall,
            core,
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            until: Duration::from_millis(to + 50),
        }
    }

    #[test]
    fn stalls_add_up() {
        let slow = Disturbance {
            trouble: Trouble::Slowness,
            ..stall(0, 40, 60)
        };
        let all = [stall(0, 10, 12), stall(1, 0, 90), stall(0, 20, 25), slow];
        let stalls = Stalls::of(0, &all);
        assert_eq!((stalls.core, stalls.count), (0, 2));
        assert!((stalls.slow_ms - 20.0).abs() < 1e-9);
        assert!((stalls.total_ms - 7.0).abs() < 1e-9 && (stalls.longest_ms - 5.0).abs() < 1e-9);
        assert_eq!(Stalls::of(2, &all).count, 0);
    }

    #[test]
    fn what_waits_behind_a_stall_is_disturbed_for_a_while() {
        let disturbed = |stall: Disturbance, from, to| {
            stall.disturbs(Duration::from_millis(from), Duration::from_millis(to))
        };
        let short = stall(0, 100, 103);
        assert!(!disturbed(short, 98, 99), "it had passed");
        assert!(disturbed(short, 99, 104) && disturbed(short, 101, 102));
        assert!(disturbed(short, 150, 151) && !disturbed(short, 154, 155));
    }

    #[test]
    fn cores_are_watched_and_what_was_seen_is_given_once() {
        let watch = match Watch::start(&[0]) {
            Ok(watch) => watch,
            // Without the right, watching has to fail.
            Err(error) => return assert!(matches!(error, WatchError::Right(_)), "{error}"),
        };
        // A thread that cannot be interrupted takes the core for 20 ms, repeatedly until it is
        // noticed.
        let started = Instant::now();
        let seen = loop {
            let blocking = thread::spawn(|| {
                pin(0).unwrap();
                run_first(PRIORITY).unwrap();
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
            });
            blocking.join().unwrap();
            let taken = watch.take();
            let longest = Stalls::of(0, &taken).longest_ms;
            if longest > 15.0 || started.elapsed().as_secs() > 20 {
                break taken;
            }
        };
        let stalls = Stalls::of(0, &seen);
        assert!(
            stalls.longest_ms > 15.0 && stalls.total_ms >= stalls.longest_ms,
            "{stalls:?}"
        );
        let after = watch.take();
        assert!(
            after.iter().all(|disturbance| !seen.contains(disturbance)),
            "{after:?} after {seen:?}"
        );
        assert!(Watch::start(&[1_000]).is_err(), "there is no such core");
    }
}
