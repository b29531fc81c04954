//! The plugin's counters.

use portunus_core::{Count, PluginCounter};

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Recordings that were started.
    pub(crate) recorded: Count,
    /// Playouts that were started.
    pub(crate) played: Count,
    /// Recordings that ended by an error.
    pub(crate) failed: Count,
    /// Requests that were refused.
    pub(crate) refused: Count,
}

impl Counts {
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counter = PluginCounter::of;
        vec![
            counter("recordings", "Recordings that were begun", &self.recorded),
            counter(
                "failed_recordings",
                "Recordings that could not be begun, or ended by an error, such as a full disk",
                &self.failed,
            ),
            counter(
                "playouts",
                "Times that a recording began to play",
                &self.played,
            ),
            counter(
                "refused_requests",
                "Requests that were refused",
                &self.refused,
            ),
        ]
    }
}
