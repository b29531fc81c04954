//! What is done once by a disk's thread, for somebody who waits for it, but not for ever.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Disk, Disks, Job, Round, Turn, lock};

/// So long somebody waits for a disk.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Why an errand was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDone {
    /// The disk does not answer, or too many wait for it.
    Slow,
    /// There was a fault, or no thread can be made.
    Lost,
}

type Work = Box<dyn FnOnce() + Send>;

/// Work that nobody does any more once whoever waited has gone.
#[derive(Clone)]
struct Errand(Arc<Mutex<Option<Work>>>);

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}

impl Job for Errand {
    fn turn(&mut self, _: &mut Round) -> Turn {
        let work = lock(&self.0).take();
        if let Some(work) = work {
            work();
        }
        Turn::Ended
    }

    fn is_ending(&self) -> bool {
        true
    }
}

impl Disks {
    /// Has a disk's thread do something, with nobody who waits for it; false if too much waits already.
    pub(crate) fn send(&self, disk: &Disk, work: impl FnOnce() + Send + 'static) -> bool {
        self.errand(disk, Box::new(work)).is_some()
    }

    /// Has a disk's thread do something, and waits for what comes of it, for [`PATIENCE`] at most. What comes later is undone.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        disk: &Disk,
        work: impl FnOnce() -> T + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, NotDone> {
        let (told, mut answer) = oneshot::channel();
        let errand = self.errand(
            disk,
            Box::new(move || {
                if let Err(late) = told.send(work()) {
                    undo(late);
                }
            }),
        );
        let errand = errand.ok_or(NotDone::Slow)?;
        match timeout(PATIENCE, &mut answer).await {
            Ok(answer) => answer.map_err(|_| NotDone::Lost),
            Err(_) => {
                // What has not begun never does.
                lock(&errand.0).take();
                answer.close();
                answer.try_recv().map_err(|_| NotDone::Slow)
            }
        }
    }

    fn errand(&self, disk: &Disk, work: Work) -> Option<Errand> {
        let disk = disk.clone();
        let errand = Errand(Arc::new(Mutex::new(None)));
        let waiting = errand.clone();
        let number = disk.clone();
        *lock(&errand.0) = Some(Box::new(move || {
            disk.wait();
            work();
        }));
        let given = self.give(&number, |_| Box::new(waiting));
        given.is_ok().then_some(errand)
    }
}
