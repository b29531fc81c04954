//! A limit in bytes for messages that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that wait.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: Arc<AtomicUsize>,
}

impl Backlog {
    /// Takes a place of `bytes` bytes until it is dropped. Returns `None` if more than `most` bytes
    /// would wait, unless nothing waits.
    pub(crate) fn hold(&self, bytes: usize, most: usize) -> Option<BacklogPlace> {
        let waiting = self.bytes.load(Ordering::Relaxed);
        let fits = waiting == 0 || waiting.saturating_add(bytes) <= most;
        fits.then(|| BacklogPlace::new(Arc::clone(&self.bytes), bytes))
    }
}

/// The place of a waiting message. A clone takes a place, too, as there are two messages then.
#[derive(Debug)]
pub(crate) struct BacklogPlace {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl BacklogPlace {
    fn new(of: Arc<AtomicUsize>, bytes: usize) -> Self {
        of.fetch_add(bytes, Ordering::Relaxed);
        BacklogPlace { of, bytes }
    }
}

impl Clone for BacklogPlace {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.of), self.bytes)
    }
}

impl Drop for BacklogPlace {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let waiting = Backlog::default();
        let first = waiting.hold(60, 100).unwrap();
        assert!(waiting.hold(41, 100).is_none());
        let copy = first.clone();
        assert!(waiting.hold(1, 100).is_none());
        drop(copy);
        let second = waiting.hold(40, 100).unwrap();
        drop((first, second));
        // More than there may ever be, but the only one.
        assert!(waiting.hold(1_000, 100).is_some());
    }
}
