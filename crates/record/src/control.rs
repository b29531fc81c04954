//! The state that a recording and its writing thread share.

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

/// A function that gets the complete files of a recording.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&Completed) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Control {
    /// Ends the recording. Packets that were handed over before are written.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Sets the time at which it ends by itself.
    pub(crate) fn end_at(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    pub(crate) fn until(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Sets the listener. Only the first one counts.
    pub(crate) fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Tells the listener of a complete file.
    pub(crate) fn notify(&self, completed: &Completed) {
        if let Some(Listener(listener)) = self.listener.get() {
            listener(completed);
        }
    }

    /// Sets the thread that writes it.
    pub(crate) fn set_waker(&self, waker: Waker) {
        // There is only one thread.
        let _ = self.waker.set(waker);
    }
}
