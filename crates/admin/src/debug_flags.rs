//! Flags of Janus that have no effect here, and are remembered for those who ask.

use std::sync::atomic::AtomicBool;

/// The flags that requests set and `get_status` shows.
#[derive(Debug, Default)]
pub(crate) struct DebugFlags {
    pub(crate) locking: AtomicBool,
    pub(crate) refcount: AtomicBool,
}
