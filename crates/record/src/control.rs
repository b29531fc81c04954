//! What a recording and the thread that writes it have in common.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::disk::Waker;

#[derive(Debug, Default)]
pub(crate) struct Control {
    stopped: AtomicBool,
    until: Mutex<Option<Instant>>,
    waker: OnceLock<Waker>,
}

impl Control {
    /// Nothing more is wanted: what was handed over before is written.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// It ends by itself at this time.
    pub(crate) fn end_at(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    pub(crate) fn until(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread look at once.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// A thread has it from now on.
    pub(crate) fn set_waker(&self, waker: Waker) {
        // It has one thread only.
        let _ = self.waker.set(waker);
    }
}
