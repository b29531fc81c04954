//! Single pieces of work on a disk's thread, with a time limit for those who wait.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Disk, Disks, Job, Round, Turn, lock};

/// The time limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// The work was not done: the disk does not answer, too much waits for it, or there was a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotDone;

type Work = Box<dyn FnOnce() + Send>;

/// A piece of work on a disk's thread.
struct Errand {
    /// `None` once it has started, or nobody wants it any more.
    work: Mutex<Option<Work>>,
    /// Tells the waiting task that the time is up.
    give_up: Mutex<Option<Work>>,
}

/// An errand in a thread's queue.
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

/// The tasks that wait for errands. A thread of its own watches them, so that neither a disk nor a
/// runtime has to.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// The waiting tasks, by their deadlines.
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
            // Without the thread, tasks wait as long as the disk takes.
            let _ = thread.spawn(move || this.look());
        }
    }

    /// Watches until no task waits.
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
                // Work that has not started never does.
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
    /// Sends work to a disk's thread. Nobody waits for it. Returns false if too much waits already.
    pub(crate) fn send(&self, disk: &Disk, work: impl FnOnce() + Send + 'static) -> bool {
        self.errand(disk, Box::new(work), None).is_some()
    }

    /// Sends work to a disk's thread, and waits at most five seconds for the result. A later result
    /// is undone.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        disk: &Disk,
        work: impl FnOnce() -> T + Send + 'static,
        undo: impl FnOnce(T) + Send + 'static,
    ) -> Result<T, NotDone> {
        let (sender, answer) = oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let waits = Arc::clone(&sender);
        let give_up: Work = Box::new(move || drop(lock(&waits).take()));
        let work = move || {
            let done = work();
            let sender = lock(&sender).take();
            let late = match sender {
                Some(sender) => sender.send(done).err(),
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
