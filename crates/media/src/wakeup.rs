//! How a worker that sleeps is woken.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use mio::Waker;

/// Wakes a worker, but only if it sleeps: a wake-up is a system call, and a turn of the worker.
#[derive(Debug)]
pub(crate) struct Wakeup {
    waker: Waker,
    /// The worker is awake, and looks for commands before it sleeps.
    is_awake: AtomicBool,
    /// The worker must have another turn before it sleeps, for something that is not a command.
    is_needed: AtomicBool,
}

impl Wakeup {
    /// Returns the wake-up of a worker that sleeps in the poll of `waker`.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            is_awake: AtomicBool::new(false),
            is_needed: AtomicBool::new(false),
        }
    }

    /// Makes the worker have a turn for something that is there already. A worker that is awake is
    /// not woken.
    pub(crate) fn need(&self) {
        self.is_needed.store(true, Ordering::Release);
        self.wake_sleeper();
    }

    /// Wakes the worker if it sleeps, for something that is there already.
    pub(crate) fn wake_sleeper(&self) {
        // Either this sees that the worker wants to sleep, or the worker sees what is there: see
        // [`Wakeup::sleep`].
        fence(Ordering::SeqCst);
        if !self.is_awake.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Wakes the worker, whether it sleeps or not.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a media worker");
        }
    }

    /// Notes that the worker is about to sleep. Returns false if it must not, because it is needed
    /// or has something to do.
    pub(crate) fn sleep(&self, is_idle: impl FnOnce() -> bool) -> bool {
        self.is_awake.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        is_idle() && !self.is_needed.load(Ordering::Relaxed)
    }

    /// Notes that the worker is awake. What it was needed for before, it sees in this turn.
    pub(crate) fn stay_awake(&self) {
        self.is_awake.store(true, Ordering::Relaxed);
        self.is_needed.swap(false, Ordering::AcqRel);
    }
}
