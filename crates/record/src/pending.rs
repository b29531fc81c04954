//! The work that has to end before the server may.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::Notify;

/// Counts files, manifests and commands that are not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    count: AtomicU64,
    changed: Notify,
}

impl Pending {
    /// Waits until everything is complete.
    pub(crate) async fn finished(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no end is missed.
            changed.as_mut().enable();
            if self.count.load(Relaxed) == 0 {
                return;
            }
            changed.await;
        }
    }
}

/// One thing that has to be complete before the server may end. Dropping it completes it.
#[derive(Debug)]
pub(crate) struct Unfinished(Arc<Pending>);

impl Unfinished {
    pub(crate) fn new(pending: &Arc<Pending>) -> Self {
        pending.count.fetch_add(1, Relaxed);
        Self(Arc::clone(pending))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Relaxed);
        self.0.changed.notify_waiters();
    }
}
