//! How much of messages waits for somebody: a bound in bytes where a number of messages says little.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    bytes: Arc<AtomicUsize>,
}

impl Waiting {
    /// A place for `bytes` more, until it is dropped; none if more than `most` would wait then. What nothing waits before
    /// always has a place.
    pub(crate) fn hold(&self, bytes: usize, most: usize) -> Option<Held> {
        let waiting = self.bytes.load(Ordering::Relaxed);
        let fits = waiting == 0 || waiting.saturating_add(bytes) <= most;
        fits.then(|| Held::new(Arc::clone(&self.bytes), bytes))
    }
}

/// The place of something that waits. A copy of it takes a place too, for there are two then.
#[derive(Debug)]
pub(crate) struct Held {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl Held {
    fn new(of: Arc<AtomicUsize>, bytes: usize) -> Self {
        of.fetch_add(bytes, Ordering::Relaxed);
        Held { of, bytes }
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.of), self.bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let waiting = Waiting::default();
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
