//! The writing threads: one for each disk, so that a slow disk holds up its own recordings and no
//! others.

mod errand;
mod mounts;
#[cfg(feature = "testing")]
mod stalling_disk;
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
use crate::outcome::End;

pub(crate) use errand::NotDone;
use errand::Waiters;
#[cfg(feature = "testing")]
pub use stalling_disk::StallingDisk;
use thread::Thread;

/// The interval between writes. Meanwhile packets wait in the taps, which costs nothing, because
/// sources keep them as long anyway.
pub(crate) const PERIOD: Duration = Duration::from_millis(250);

/// The interval between queries of the free space.
const FREE_PERIOD: Duration = Duration::from_secs(1);
/// The limit of errands and recordings that wait for a disk's thread.
const WAITING: usize = 1_000;
/// The limit of threads. Further disks share them.
const THREADS: usize = 16;

/// A job of a disk's thread.
pub(crate) trait Job: Debug + Send {
    /// Does the work that is due.
    fn turn(&mut self, round: &mut Round) -> Turn;

    /// Whether it is ending, so that it gets more turns.
    fn is_ending(&self) -> bool;
}

/// Does the work of a recording. A fault, for example by invalid packets, ends this recording only.
/// Returns `None` after a fault.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Returns the end of the recording `name`, if the result of its turn is one.
pub(crate) fn ended(
    worked: Option<Result<Option<End>, RecordError>>,
    name: &str,
) -> Option<Result<End, RecordError>> {
    let fault = || RecordError::Fault {
        name: name.to_owned(),
    };
    worked.unwrap_or_else(|| Err(fault())).transpose()
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    GoesOn,
    Ended,
}

/// The state that jobs share in a round of turns.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) now: Instant,
    /// The free space in MiB, and when the disk was asked.
    free: Option<(Instant, Option<u64>)>,
    /// A buffer for the packets of a tap.
    pub(crate) batch: Vec<Tapped>,
    /// A buffer for the packets of several tracks.
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

    /// Returns the free MiB on the disk of a file, or `None` if they are unknown.
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

/// The disks that are in use.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    threads: Arc<Mutex<HashMap<u64, Arc<Thread>>>>,
    waiters: Arc<Waiters>,
    #[cfg(feature = "testing")]
    stalling: Mutex<Vec<Arc<StallingDisk>>>,
}

/// A disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    number: u64,
    #[cfg(feature = "testing")]
    stalling: Option<Arc<StallingDisk>>,
}

impl Disk {
    /// Waits while a test stalls the disk.
    pub(crate) fn wait(&self) {
        #[cfg(feature = "testing")]
        if let Some(stalling) = &self.stalling {
            stalling.wait();
        }
    }
}

impl Disks {
    /// Returns the disk of a path, as far as it is known without asking the disk.
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

    /// Returns the disk of a folder. It blocks.
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

    /// Gives a job to the thread of a disk. Fails if there is no thread, or too much waits for it.
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
        // The lock is held, so that an idle thread does not end meanwhile.
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

    /// Returns the lag of the slowest disk.
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

/// Wakes the thread of a job.
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
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
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
