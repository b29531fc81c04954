//! What administrators change while the server runs.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{CoreConfig, ServerFacts};

#[derive(Debug)]
pub(crate) struct Settings {
    session_timeout: AtomicU32,
    /// There is nothing to turn on: it is remembered for those who ask.
    pub(super) locking_debug: AtomicBool,
    /// The same.
    pub(super) refcount_debug: AtomicBool,
    pub(super) min_nack_queue: AtomicU32,
    pub(super) nack_optimizations: AtomicBool,
    pub(super) no_media_timer: AtomicU32,
    pub(super) slowlink_threshold: AtomicU32,
}

impl Settings {
    pub(crate) fn new(config: &CoreConfig, facts: &ServerFacts) -> Self {
        Settings {
            session_timeout: AtomicU32::new(config.session_timeout),
            locking_debug: AtomicBool::new(false),
            refcount_debug: AtomicBool::new(false),
            min_nack_queue: AtomicU32::new(200),
            nack_optimizations: AtomicBool::new(false),
            no_media_timer: AtomicU32::new(facts.no_media_ms.div_ceil(1_000)),
            slowlink_threshold: AtomicU32::new(4),
        }
    }

    /// Seconds after which a silent session ends; 0: never.
    pub(crate) fn session_timeout_seconds(&self) -> u32 {
        self.session_timeout.load(Ordering::Relaxed)
    }

    /// In ms.
    pub(super) fn min_nack_queue(&self) -> u32 {
        self.min_nack_queue.load(Ordering::Relaxed)
    }

    pub(super) fn set_session_timeout(&self, seconds: u32) {
        self.session_timeout.store(seconds, Ordering::Relaxed);
    }
}
