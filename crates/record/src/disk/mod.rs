//! The threads that write: one for each disk, so that a slow one holds up its own recordings and no others.

mod errand;
mod mounts;
#[cfg(feature = "testing")]
mod stalling;
mod thread;

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portunus_media::Tapped;

use crate::RecordError;
use crate::recording::End;

pub(crate) use errand::NotDone;
use errand::Waiters;
#[cfg(feature = "testing")]
pub use stalling::StallingDisk;
use thread::Thread;

/// How often recordings write. Packets wait in the taps meanwhile, where they cost nothing: sources remember them for as long
/// anyway.
pub(crate) const PERIOD: Duration = Duration::from_millis(250);

/// How often the disk is asked what is free.
const FREE_PERIOD: Duration = Duration::from_secs(1);
/// Errands and recordings that may wait for a disk to take them.
const WAITING: usize = 1_000;
/// Threads at most. More disks than that share them.
const THREADS: usize = 16;

/// What a disk's thread does.
pub(crate) trait Job: Debug + Send {
    /// Does what is to be done now.
    fn turn(&mut self, round: &mut Round) -> Turn;

    /// Whether it is to end, so that it has turns more often.
    fn is_ending(&self) -> bool;
}

/// Does a recording's work. A fault in it, as some bytes that a publisher sent may bring to light, ends that recording and no other.
/// None: there was a fault.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Whether what a turn did ended the recording that is called `name`, and how.
pub(crate) fn ended(
    worked: Option<Result<Option<End>, RecordError>>,
    name: &str,
) -> Option<Result<End, RecordError>> {
    let fault = || RecordError::Fault {
        name: name.to_owned(),
    };
    worked.unwrap_or_else(|| Err(fault())).transpose()
}

/// What comes of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    GoesOn,
    Ended,
}

/// What jobs share in a round of turns.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) now: Instant,
    /// When the disk was asked what is free, and what it said.
    free: Option<(Instant, Option<u64>)>,
    /// Room for what a tap hands over.
    pub(crate) batch: Vec<Tapped>,
    /// Room for what the taps of several tracks hand over.
    pub(crate) mixed: Vec<(usize, Tapped)>,
}

impl Round {
    fn new(now: Instant) -> Self {
        Self {
            now,
            free: None,
            batch: Vec::new(),
            mixed: Vec::new(),
        }
    }

    /// MiB that are free on the disk of a file; none if it does not say.
    pub(crate) fn free(&mut self, file: &File) -> Option<u64> {
        let known = self.free.filter(|(at, _)| self.now < *at + FREE_PERIOD);
        let (_, free) = *self
            .free
            .insert(known.unwrap_or_else(|| (self.now, free(file))));
        free
    }
}

fn free(file: &File) -> Option<u64> {
    let disk = rustix::fs::fstatvfs(file).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize) >> 20)
}

/// The disks that are written to now.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    threads: Arc<Mutex<HashMap<u64, Arc<Thread>>>>,
    waiters: Arc<Waiters>,
    #[cfg(feature = "testing")]
    stalling: Mutex<Vec<Arc<StallingDisk>>>,
}

/// A disk, as a job that begins sees it.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    number: u64,
    #[cfg(feature = "testing")]
    stalling: Option<Arc<StallingDisk>>,
}

impl Disk {
    /// Waits as long as a test wants the disk to stall.
    pub(crate) fn wait(&self) {
        #[cfg(feature = "testing")]
        if let Some(stalling) = &self.stalling {
            stalling.wait();
        }
    }
}

impl Disks {
    /// The disk that a path is on, as far as that can be known without asking it.
    pub(crate) fn near(&self, path: &Path) -> Disk {
        #[cfg(feature = "testing")]
        if let Some((number, stalling)) = self.stalling_for(path) {
            return Disk {
                number,
                stalling: Some(stalling),
            };
        }
        Disk {
            number: mounts::number(path),
            #[cfg(feature = "testing")]
            stalling: None,
        }
    }

    /// The disk that a folder is on. It blocks.
    pub(crate) fn of(&self, folder: &Path) -> io::Result<Disk> {
        #[cfg(feature = "testing")]
        if let Some((number, stalling)) = self.stalling_for(folder) {
            return Ok(Disk {
                number,
                stalling: Some(stalling),
            });
        }
        Ok(Disk {
            number: folder.metadata()?.dev(),
            #[cfg(feature = "testing")]
            stalling: None,
        })
    }

    /// Has the thread of a disk do this job, from now until it ends; an error if there is no thread, or too much waits for it.
    pub(crate) fn give(
        &self,
        disk: &Disk,
        job: impl FnOnce(Waker) -> Box<dyn Job>,
    ) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        let known = match threads.len() < THREADS {
            true => threads.get(&disk.number),
            false => threads
                .get(&disk.number)
                .or_else(|| threads.values().next()),
        };
        let thread = match known {
            Some(thread) => Arc::clone(thread),
            None => {
                let thread = Thread::start(disk.number, Arc::clone(&self.threads))?;
                threads.insert(disk.number, Arc::clone(&thread));
                thread
            }
        };
        // With the threads held: one that has nothing to do ends.
        match thread.is_full() {
            true => Err(io::Error::new(
                ErrorKind::ResourceBusy,
                "the disk does not answer",
            )),
            false => {
                thread.give(job(Waker(Arc::clone(&thread))));
                Ok(())
            }
        }
    }

    /// How far the disk that is latest is behind what was to be written.
    pub(crate) fn lag(&self) -> Duration {
        let threads = lock(&self.threads);
        let lags = threads.values().map(|thread| thread.lag());
        lags.max().unwrap_or_default()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn pretend(&self, disk: Arc<StallingDisk>) {
        lock(&self.stalling).push(disk);
    }

    #[cfg(feature = "testing")]
    fn stalling_for(&self, folder: &Path) -> Option<(u64, Arc<StallingDisk>)> {
        let stalling = lock(&self.stalling);
        let mut disks = (0..).zip(stalling.iter());
        let (number, disk) = disks.find(|(_, disk)| folder.starts_with(disk.folder()))?;
        Some((u64::MAX - number, Arc::clone(disk)))
    }
}

/// Wakes the thread that does a job.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<Thread>);

impl Waker {
    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::sync::mpsc;

    use super::*;

    #[derive(Debug)]
    struct Faulty;

    impl Job for Faulty {
        fn turn(&mut self, _: &mut Round) -> Turn {
            panic!("as a test wants it");
        }

        fn is_ending(&self) -> bool {
            false
        }
    }

    #[derive(Debug)]
    struct Sound(mpsc::Sender<()>);

    impl Job for Sound {
        fn turn(&mut self, _: &mut Round) -> Turn {
            match self.0.send(()) {
                Ok(()) => Turn::GoesOn,
                Err(_) => Turn::Ended,
            }
        }

        fn is_ending(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_fault_in_one_recording_ends_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let disks = Disks::default();
        let disk = disks.of(folder.path()).unwrap();
        let give = |job: Box<dyn Job>| disks.give(&disk, |_| job).unwrap();
        let (before, turns_before) = mpsc::channel();
        give(Box::new(Sound(before)));
        turns_before.recv_timeout(Duration::from_secs(10)).unwrap();
        give(Box::new(Faulty));
        let (after, turns_after) = mpsc::channel();
        give(Box::new(Sound(after)));
        for turns in [turns_before, turns_after] {
            for _ in 0..3 {
                turns.recv_timeout(Duration::from_secs(10)).unwrap();
            }
        }
    }
}
