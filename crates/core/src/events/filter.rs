//! Filters of events.

use super::{EventMask, ServerEvent};

/// A filter of events, by kind and by plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// The kinds that pass.
    pub kinds: EventMask,
    /// The packages of plugins whose events pass. Empty means all. Events without a plugin always
    /// pass.
    pub plugins: Vec<String>,
}

impl EventFilter {
    /// All events.
    pub const ALL: EventFilter = EventFilter {
        kinds: EventMask::ALL,
        plugins: Vec::new(),
    };

    /// Whether `event` passes.
    pub fn wants(&self, event: &ServerEvent) -> bool {
        let is_of = |package| self.plugins.iter().any(|plugin| plugin == package);
        self.kinds.has(event.kind)
            && (self.plugins.is_empty() || event.address.plugin.is_none_or(is_of))
    }
}
