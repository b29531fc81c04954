//! What is done once by a disk's thread, for somebody who waits for it, but not for ever.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Disk, Disks, Job, Round, Turn, lock};

/// So long somebody waits for a disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why an errand was not done: the disk does not answer, too many wait for it, or there was a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotDone;

type Work = Box<dyn FnOnce() + Send>;

/// What a disk's thread is to do.
struct Errand {
    /// None once it is begun, or nobody wants it any more.
    work: Mutex<Option<Work>>,
    /// Tells who waits that it waits no longer.
    give_up: Mutex<Option<Work>>,
}

/// An errand on its way.
struct Sent(Arc<Errand>);

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}

impl Job for Sent {
    fn turn(&mut self, _: &mut Round) -> Turn {
        let work = lock(&self.0.work).take();
        if let Some(work) = work {
            work();
        }
        Turn::Ended
    }

    fn is_ending(&self) -> bool {
        true
    }
}

/// Who waits for errands, and how long. A thread looks, so that neither a disk nor a runtime has to.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// By the time at which they wait no longer.
    list: Mutex<VecDeque<(Instant, Weak<Errand>)>>,
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}

impl Waiters {
    fn add(self: &Arc<Self>, errand: &Arc<Errand>) {
        let mut list = lock(&self.list);
        list.push_back((Instant::now() + PATIENCE, Arc::downgrade(errand)));
        if list.len() == 1 {
            let this = Arc::clone(self);
            let thread = std::thread::Builder::new().name("record-wait".to_owned());
            // Without it, who waits does so as long as the disk takes.
            let _ = thread.spawn(move || this.look());
        }
    }

    /// Looks until nobody waits any more.
    fn look(&self) {
        loop {
            let until = match lock(&self.list).front() {
                Some((until, _)) => *until,
                None => return,
            };
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            let first = {
                let mut list = lock(&self.list);
                let first = list.pop_front();
                let is_last = list.is_empty();
                drop(list);
                first.map(|first| (first, is_last))
            };
            let Some(((_, errand), is_last)) = first else {
                return;
            };
            if let Some(errand) = errand.upgrade() {
                // What has not begun never does.
                lock(&errand.work).take();
                let give_up = lock(&errand.give_up).take();
                if let Some(give_up) = give_up {
                    give_up();
                }
            }
            if is_last {
                return;
            }
        }
    }
}

impl Disks {
    /// Has a disk's thread do something, with nobody who waits for it; false if too much waits already.
    pub(crate) fn send(&self, disk: &Disk, work: impl FnOnce() + Send + 'static) -> bool {
        self.errand(disk, Box::new(work), None).is_some()
    }

    /// Has a disk's thread do something, and waits for what comes of it, for five seconds at most. What comes later is undone.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        disk: &Disk,
        work: impl FnOnce() -> T + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, NotDone> {
        let (told, answer) = oneshot::channel();
        let told = Arc::new(Mutex::new(Some(told)));
        let waits = Arc::clone(&told);
        let give_up: Work = Box::new(move || drop(lock(&waits).take()));
        let work = move || {
            let done = work();
            let told = lock(&told).take();
            let late = match told {
                Some(told) => told.send(done).err(),
                None => Some(done),
            };
            if let Some(late) = late {
                undo(late);
            }
        };
        let errand = self.errand(disk, Box::new(work), Some(give_up));
        let errand = errand.ok_or(NotDone)?;
        self.waiters.add(&errand);
        let answer = answer.await;
        lock(&errand.give_up).take();
        answer.map_err(|_| NotDone)
    }

    fn errand(&self, disk: &Disk, work: Work, give_up: Option<Work>) -> Option<Arc<Errand>> {
        let of = disk.clone();
        let work: Work = Box::new(move || {
            of.wait();
            work();
        });
        let errand = Arc::new(Errand {
            work: Mutex::new(Some(work)),
            give_up: Mutex::new(give_up),
        });
        let sent = Sent(Arc::clone(&errand));
        let given = self.give(disk, |_| Box::new(sent));
        given.is_ok().then_some(errand)
    }
}
