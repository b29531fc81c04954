//! The general configuration of events.

use portunus_config::{Configuration, Section};
use serde::{Deserialize, Serialize};

/// `[events]`: the keys for all handlers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventsConfig {
    /// Seconds between statistics of a PeerConnection, and of the server. 0 disables them.
    pub stats_period: u32,
    /// Whether the statistics of all m-lines of a PeerConnection are one event.
    pub combine_media_stats: bool,
    /// The most events with media statistics per second, over all PeerConnections. With more of
    /// them, each has longer intervals.
    pub max_stats_rate: u32,
}

impl Default for EventsConfig {
    fn default() -> Self {
        Self {
            stats_period: 1,
            combine_media_stats: false,
            max_stats_rate: 500,
        }
    }
}

impl Configuration for EventsConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let events: Self = section.keys();
        section.range("stats_period", events.stats_period, 0..=3_600);
        section.range("max_stats_rate", events.max_stats_rate, 1..=1_000_000);
        events
    }
}
