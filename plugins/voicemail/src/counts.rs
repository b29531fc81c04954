//! The plugin's counters.

use portunus_core::{Count, PluginCounter};

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Messages that were started.
    pub(crate) started: Count,
    /// Messages that are complete.
    pub(crate) done: Count,
    /// Messages that ended by an error.
    pub(crate) failed: Count,
    /// Requests that were refused.
    pub(crate) refused: Count,
}

impl Counts {
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = PluginCounter::of;
        vec![
            counter("messages", "Messages that were begun", &self.started),
            counter(
                "completed_messages",
                "Messages that are complete: stopped, or as long as they may be",
                &self.done,
            ),
            counter(
                "failed_messages",
                "Messages that ended by an error, such as a full disk",
                &self.failed,
            ),
            counter(
                "refused_requests",
                "Requests that were refused",
                &self.refused,
            ),
        ]
    }
}
