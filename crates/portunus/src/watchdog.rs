//! Watches the media workers and the control plane: logs which of them is stuck, and for how long, and stops feeding systemd's
//! watchdog meanwhile.
//!
//! It has a thread of its own, which takes no lock that the others take.

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
/// How often all parts are looked at, at least.
const PERIOD: Duration = Duration::from_secs(1);
/// How often the control plane says that it runs.
const BEAT: Duration = Duration::from_millis(250);
/// What the control plane's threads are called.
const CONTROL_THREADS: &str = "tokio";

/// The watching thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts watching. To be called within tokio's runtime.
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
                // Only atomic counters are read here: a lock might be what is stuck.
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
            // It has panicked: that is logged.
            let _ = thread.join();
        }
    }
}

/// A part of the server that shows again and again that it runs.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    /// How long ago it did so last.
    silent: Duration,
    threads: Threads,
}

/// The threads of a part.
#[derive(Debug, Clone, Copy)]
enum Threads {
    /// The one with this number.
    Id(u32),
    /// All whose names begin so.
    Named(&'static str),
}

/// What is known to be stuck.
#[derive(Debug, Default)]
struct Watch {
    stuck: Vec<String>,
}

impl Watch {
    /// Looks at all parts, and logs what is stuck now and what is no longer. Returns whether all parts run.
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
    /// Returns what the kernel says of the threads: whether they run or wait, in which system call, and the time that they have
    /// used. Their own stacks cannot be read from here without stopping them.
    fn describe(self) -> String {
        let ids = match self {
            Threads::Id(id) => vec![id.to_string()],
            Threads::Named(start) => named(start),
        };
        let described = ids.iter().filter_map(|id| describe(id));
        described.collect::<Vec<_>>().join("; ")
    }
}

/// The numbers of this process's threads whose names begin with `start`.
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
    // The name may have spaces and parentheses in it (proc(5)).
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
    #![allow(clippy::unwrap_used)]
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
