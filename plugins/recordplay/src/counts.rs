//! What the plugin counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use portunus_core::PluginCounter;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Recordings that were begun.
    pub(crate) recorded: Count,
    /// Recordings that began to play.
    pub(crate) played: Count,
    /// Recordings that ended by an error.
    pub(crate) failed: Count,
    /// Requests that were refused.
    pub(crate) refused: Count,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Counts {
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = |name, help, count: &Count| PluginCounter {
            name,
            help,
            value: count.0.load(Relaxed),
        };
        vec![
            counter("recordings", "Recordings that were begun.", &self.recorded),
            counter(
                "failed_recordings",
                "Recordings that could not be begun, or ended by an error, such as a full disk.",
                &self.failed,
            ),
            counter(
                "playouts",
                "Times that a recording began to play.",
                &self.played,
            ),
            counter(
                "refused_requests",
                "Requests that were refused.",
                &self.refused,
            ),
        ]
    }
}
