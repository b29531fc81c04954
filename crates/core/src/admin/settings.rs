//! What administrators change while the server runs, as far as it is the core's.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{CoreConfig, ServerFacts};

#[derive(Debug)]
pub(crate) struct Settings {
    session_timeout: AtomicU32,
    /// How long a medium may be silent before clients are told, in ms; 0: they never are.
    no_media_ms: AtomicU32,
    /// There is nothing to turn on: it is remembered for those who ask.
    pub(super) locking_debug: AtomicBool,
    /// The same.
    pub(super) refcount_debug: AtomicBool,
}

impl Settings {
    pub(crate) fn new(config: &CoreConfig, facts: &ServerFacts) -> Self {
        Settings {
            session_timeout: AtomicU32::new(config.session_timeout),
            no_media_ms: AtomicU32::new(facts.no_media_ms),
            locking_debug: AtomicBool::new(false),
            refcount_debug: AtomicBool::new(false),
        }
    }

    /// Seconds after which a silent session ends; 0: never.
    pub(crate) fn session_timeout_seconds(&self) -> u32 {
        self.session_timeout.load(Ordering::Relaxed)
    }

    pub(crate) fn set_session_timeout(&self, seconds: u32) {
        self.session_timeout.store(seconds, Ordering::Relaxed);
    }

    /// How long a medium may be silent before clients are told, in ms; 0: they never are.
    pub(crate) fn no_media_ms(&self) -> u32 {
        self.no_media_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_no_media_ms(&self, ms: u32) {
        self.no_media_ms.store(ms, Ordering::Relaxed);
    }
}
