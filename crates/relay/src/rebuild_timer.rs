//! When trees of nodes are rebuilt.

use std::time::{Duration, Instant};

/// How long no node may have come or gone before trees are rebuilt.
const CALM: Duration = Duration::from_secs(5);
/// The time between two moves of nodes within the tree of one source: each may cost a keyframe.
const SPACING: Duration = Duration::from_secs(2);

/// The time at which trees are rebuilt next.
#[derive(Debug, Default)]
pub(crate) struct Rebuild {
    due: Option<Instant>,
}

impl Rebuild {
    /// A node has come or gone.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.due = Some(now + CALM);
    }

    /// Returns whether trees are rebuilt now, and waits for the next time.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = Some(now + SPACING);
        }
        is_due
    }
}
