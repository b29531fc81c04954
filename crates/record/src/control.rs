//! What a recording and the thread that writes it have in common.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::Completed;
use crate::disk::Waker;

#[derive(Debug, Default)]
pub(crate) struct Control {
    stopped: AtomicBool,
    until: Mutex<Option<Instant>>,
    waker: OnceLock<Waker>,
    listener: OnceLock<Listener>,
}

/// Who is told of the files of a recording that are complete.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&Completed) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
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

    /// Who is told of complete files; the first one who asks.
    pub(crate) fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// A file is complete.
    pub(crate) fn tell(&self, completed: &Completed) {
        if let Some(Listener(listener)) = self.listener.get() {
            listener(completed);
        }
    }

    /// A thread has it from now on.
    pub(crate) fn set_waker(&self, waker: Waker) {
        // It has one thread only.
        let _ = self.waker.set(waker);
    }
}
