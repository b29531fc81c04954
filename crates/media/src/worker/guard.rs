//! Confines faults to the peer whose bytes caused them.

use std::panic::{self, AssertUnwindSafe};

/// Processes bytes of one peer. A panic is a fault of ours, which must cost this peer only: the
/// caller ends it, so that its inconsistent state is not used any more.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    outcome
        .inspect_err(|_| tracing::error!("a peer is ended: its packets led to a fault"))
        .ok()
}
