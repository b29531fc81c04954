//! The counters of plugins.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of a plugin, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginCounter {
    /// Its name, such as `refused_creations`.
    pub name: &'static str,
    /// A description in one sentence.
    pub help: &'static str,
    /// The number.
    pub value: u64,
}

impl PluginCounter {
    /// The present value of a [`Count`].
    pub fn of(name: &'static str, help: &'static str, count: &Count) -> Self {
        Self {
            name,
            help,
            value: count.value(),
        }
    }
}

/// A count that any thread may raise.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// Adds `times`.
    pub fn add_many(&self, times: u64) {
        self.0.fetch_add(times, Relaxed);
    }

    /// Returns the count.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
