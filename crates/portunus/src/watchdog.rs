//! Watches the media workers and the control plane: logs stuck ones with their durations, and stops
//! feeding systemd's watchdog meanwhile.
//!
//! It has a thread of its own, which takes no lock of others.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portunus_core::Gateway;
use portunus_media::{MediaPlane, WorkerStats};

use crate::supervisor;

/// How long a part may be silent before it counts as stuck.
const LIMIT: Duration = WorkerStats::STUCK;
/// The longest interval of checks.
const PERIOD: Duration = Duration::from_secs(1);
/// The interval of the control plane's sign of life.
const BEAT: Duration = Duration::from_millis(250);
/// The name of the control plane's threads.
const CONTROL_THREADS: &str = "tokio";

/// The watching thread. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts watching. Must be called within tokio's runtime.
pub(crate) fn start(media: MediaPlane, gateway: Gateway) -> io::Result<Watchdog> {
    let started = Instant::now();
    let beat = Arc::new(AtomicU64::new(0));
    tokio::spawn({
        let (beat, timed) = (Arc::downgrade(&beat), gateway.clone());
        async move {
            let mut ticks = tokio::time::interval(BEAT);
            loop {
                let due = ticks.tick().await;
                let Some(beat) = beat.upgrade() else { return };
                timed.counters().times.control_lag.add(due.elapsed());
                beat.store(millis(started.elapsed()), Relaxed);
            }
        }
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let period = sd_notify::watchdog_enabled().map_or(PERIOD, |most| (most / 4).min(PERIOD));
    let thread = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            let mut watch = Watch::default();
            let mut told = String::new();
            while !over.load(Relaxed) {
                let silent = millis(started.elapsed()).saturating_sub(beat.load(Relaxed));
                let control = Part {
                    name: "the control plane".to_owned(),
                    silent: Duration::from_millis(silent),
                    threads: Threads::Named(CONTROL_THREADS),
                };
                let workers = media.worker_stats().into_iter().map(|worker| Part {
                    name: format!("media worker {}", worker.index),
                    silent: worker.silent,
                    threads: Threads::Id(worker.thread),
                });
                let parts: Vec<_> = workers.chain([control]).collect();
                if watch.look(&parts) {
                    supervisor::alive();
                }
                let counts = gateway.counters().snapshot();
                let status = format!(
                    "sessions: {}, PeerConnections: {}",
                    counts.sessions, counts.peer_connections
                );
                // Reads only atomic counters, since a lock might be stuck.
                if status != told && gateway.check_drain().is_ok() {
                    supervisor::status(&status);
                    told = status;
                }
                std::thread::park_timeout(period);
            }
        })?;
    Ok(Watchdog {
        is_over,
        thread: Some(thread),
    })
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has panicked, which is logged.
            let _ = thread.join();
        }
    }
}

/// A part of the server that gives signs of life.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    /// The time since its last sign of life.
    silent: Duration,
    threads: Threads,
}

/// The threads of a part.
#[derive(Debug, Clone, Copy)]
enum Threads {
    /// The thread with this number.
    Id(u32),
    /// All threads with this prefix.
    Named(&'static str),
}

/// The parts that are known to be stuck.
#[derive(Debug, Default)]
struct Watch {
    stuck: Vec<String>,
}

impl Watch {
    /// Checks all parts, and logs changes. Returns whether all parts run.
    fn look(&mut self, parts: &[Part]) -> bool {
        for part in parts {
            let known = self.stuck.iter().position(|name| *name == part.name);
            match (known, part.silent >= LIMIT) {
                (None, true) => {
                    let seconds = part.silent.as_secs();
                    let threads = part.threads.describe();
                    tracing::error!(seconds, threads, "{} is stuck", part.name);
                    self.stuck.push(part.name.clone());
                }
                (Some(known), false) => {
                    tracing::warn!("{} runs again", part.name);
                    self.stuck.swap_remove(known);
                }
                (None, false) | (Some(_), true) => {}
            }
        }
        self.stuck.is_empty()
    }
}

impl Threads {
    /// Returns the kernel's information about the threads: their states, system calls and CPU
    /// times. Their stacks cannot be read without stopping them.
    fn describe(self) -> String {
        let ids = match self {
            Threads::Id(id) => vec![id.to_string()],
            Threads::Named(start) => named(start),
        };
        let described = ids.iter().filter_map(|id| describe(id));
        described.collect::<Vec<_>>().join("; ")
    }
}

/// Returns the numbers of this process's threads with this name prefix.
fn named(start: &str) -> Vec<String> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let ids = tasks.filter_map(|task| task.ok()?.file_name().into_string().ok());
    let is_named = |id: &String| {
        let name = fs::read_to_string(format!("/proc/self/task/{id}/comm"));
        name.is_ok_and(|name| name.starts_with(start))
    };
    ids.filter(is_named).collect()
}

fn describe(id: &str) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/task/{id}/{file}")).ok();
    let stat = read("stat")?;
    // The name may contain spaces and parentheses (proc(5)).
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(').map_or("", |(_, name)| name);
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let ticks: Vec<_> = fields.skip(10).take(2).collect();
    let waits = read("wchan").filter(|place| !place.is_empty() && place != "0");
    let call = read("syscall");
    let call = call
        .as_deref()
        .and_then(|call| call.split_whitespace().next());
    Some(format!(
        "{name} ({id}): state {state}, used {} ticks, system call {}, waits in {}",
        ticks.join("+"),
        call.unwrap_or("unknown"),
        waits.as_deref().unwrap_or("nothing")
    ))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn part(name: &str, seconds: u64) -> Part {
        Part {
            name: name.to_owned(),
            silent: Duration::from_secs(seconds),
            threads: Threads::Id(std::process::id()),
        }
    }

    #[test]
    fn systemd_is_fed_as_long_as_nothing_is_stuck() {
        let mut watch = Watch::default();
        assert!(watch.look(&[part("a", 0), part("b", 4)]));
        assert!(!watch.look(&[part("a", 0), part("b", 5)]));
        assert_eq!(watch.stuck, ["b"]);
        assert!(!watch.look(&[part("a", 6), part("b", 6)]));
        assert!(!watch.look(&[part("a", 0), part("b", 7)]));
        assert!(watch.look(&[part("a", 0), part("b", 0)]));
    }

    #[test]
    fn the_kernel_says_what_threads_do() {
        let (begun, is_begun) = std::sync::mpsc::channel();
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("stuck (one)".to_owned());
        let thread = thread.spawn(move || {
            begun.send(()).unwrap();
            let _ = is_over.recv();
        });
        is_begun.recv().unwrap();
        let told = Threads::Named("stuck").describe();
        assert!(told.starts_with("stuck (one) ("), "{told}");
        assert!(
            told.contains("state ") && told.contains("system call "),
            "{told}"
        );
        end.send(()).unwrap();
        thread.unwrap().join().unwrap();
        assert_eq!(Threads::Named("nobody").describe(), "");
        assert_eq!(Threads::Id(0).describe(), "");
    }
}
