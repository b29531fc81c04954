//! Settings of the core that operators change while the server runs.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{CoreConfig, ServerFacts};

#[derive(Debug)]
pub(crate) struct Settings {
    session_timeout: AtomicU32,
    no_media_ms: AtomicU32,
}

impl Settings {
    pub(crate) fn new(config: &CoreConfig, facts: &ServerFacts) -> Self {
        Settings {
            session_timeout: AtomicU32::new(config.session_timeout),
            no_media_ms: AtomicU32::new(facts.no_media_ms),
        }
    }

    /// Seconds after which a silent session ends. 0 disables it.
    pub(crate) fn session_timeout_seconds(&self) -> u32 {
        self.session_timeout.load(Ordering::Relaxed)
    }

    pub(crate) fn set_session_timeout(&self, seconds: u32) {
        self.session_timeout.store(seconds, Ordering::Relaxed);
    }

    /// How long a medium may be silent before clients are notified, in ms. 0 disables it.
    pub(crate) fn no_media_ms(&self) -> u32 {
        self.no_media_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_no_media_ms(&self, ms: u32) {
        self.no_media_ms.store(ms, Ordering::Relaxed);
    }
}
