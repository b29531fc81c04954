//! Options of routes, and of sources for their new sinks.

use std::sync::Arc;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The priority of a route when the link of a viewer cannot carry all of its video. The names are
/// those of W3C's `RTCPriorityType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Below all others.
    VeryLow,
    /// The default.
    #[default]
    Low,
    /// Above the default.
    Medium,
    /// Above all others.
    High,
}

impl Priority {
    /// The name of the priority.
    pub const fn name(self) -> &'static str {
        match self {
            Priority::VeryLow => "very-low",
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
        }
    }
}

/// Reads the number of a simulcast, spatial or temporal layer, 0 to 2, for serde's
/// `deserialize_with`.
pub fn layer_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    match Option::<u64>::deserialize(from)? {
        None => Ok(None),
        Some(layer @ 0..=2) => Ok(Some(layer as u8)),
        Some(_) => Err(D::Error::custom("should be 0, 1 or 2")),
    }
}

/// How a route selects and relays. A plugin may change it at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteOptions {
    /// The gate. A closed gate relays nothing; opening it requests a keyframe of a video source.
    pub enabled: bool,
    /// The simulcast encoding wanted, 0 (lowest) to 2.
    pub substream: u8,
    /// The SVC spatial layer wanted, 0 to 2.
    pub spatial: u8,
    /// The temporal layer wanted, 0 to 2.
    pub temporal: u8,
    /// How long the wanted encoding may be silent before a lower one is relayed.
    pub fallback: Duration,
    /// The priority of the route among those to the same peer, if its link cannot carry all video.
    pub priority: Priority,
    /// Whether the route may pause while the link does not carry the lowest layer of its video.
    pub pausable: bool,
    /// Minimum and maximum of the playout-delay extension, in units of 10 ms, 0 to 4,095.
    pub playout_delay: Option<(u16, u16)>,
    /// Messages go to the data channel with this label, which is closed with the route. `None`
    /// means the label of the source, whose channel stays open.
    pub label: Option<Arc<str>>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            substream: 2,
            spatial: 2,
            temporal: 2,
            fallback: Duration::from_millis(250),
            priority: Priority::default(),
            pausable: false,
            playout_delay: None,
            label: None,
        }
    }
}

/// When a video source is asked for a keyframe that no viewer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyframeInterval {
    /// The time since the last keyframe. It is checked every 100 ms at most.
    pub every: Duration,
    /// Keyframes cannot be recognized, as with end-to-end encryption: only requests count.
    pub opaque: bool,
}

/// How much of a video source is kept for new sinks, from the last keyframe on. The keyframe itself
/// is always kept whole. What follows it is kept up to both limits; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyframeCache {
    /// The time since the keyframe.
    pub max_age: Duration,
    /// The size in bytes, at most 16 MiB.
    pub max_bytes: usize,
}
