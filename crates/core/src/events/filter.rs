//! Which events somebody wants.

use super::{EventMask, ServerEvent};

/// Which events somebody wants: by kind, and by the plugin that they concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Of these kinds.
    pub kinds: EventMask,
    /// Those that concern a plugin: of these plugins only, by package; empty: of all. Other events are not concerned.
    pub plugins: Vec<String>,
}

impl EventFilter {
    /// All events.
    pub const ALL: EventFilter = EventFilter {
        kinds: EventMask::ALL,
        plugins: Vec::new(),
    };

    /// Whether `event` is wanted.
    pub fn wants(&self, event: &ServerEvent) -> bool {
        let is_of = |package| self.plugins.iter().any(|plugin| plugin == package);
        self.kinds.has(event.kind)
            && (self.plugins.is_empty() || event.address.plugin.is_none_or(is_of))
    }
}
