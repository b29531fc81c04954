//! The kinds of events, and sets of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kind of an event: its `type` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Sessions start and end.
    Sessions,
    /// Handles are attached and detached.
    Handles,
    /// Events that an operator sends through the server.
    External,
    /// Session descriptions, in both directions.
    Jsep,
    /// ICE, DTLS and PeerConnections.
    WebRtc,
    /// Media that start or stop, losses, statistics.
    Media,
    /// Events of plugins.
    Plugins,
    /// Events of transports.
    Transports,
    /// The server itself.
    Core,
}

impl EventKind {
    /// All kinds, by their numbers.
    pub const ALL: [EventKind; 9] = [
        EventKind::Sessions,
        EventKind::Handles,
        EventKind::External,
        EventKind::Jsep,
        EventKind::WebRtc,
        EventKind::Media,
        EventKind::Plugins,
        EventKind::Transports,
        EventKind::Core,
    ];

    /// Returns its number on the wire, a power of two.
    pub const fn number(self) -> u16 {
        match self {
            EventKind::Sessions => 1,
            EventKind::Handles => 2,
            EventKind::External => 4,
            EventKind::Jsep => 8,
            EventKind::WebRtc => 16,
            EventKind::Media => 32,
            EventKind::Plugins => 64,
            EventKind::Transports => 128,
            EventKind::Core => 256,
        }
    }

    /// Returns its name in lists of kinds, such as `webrtc`.
    pub const fn label(self) -> &'static str {
        match self {
            EventKind::Sessions => "sessions",
            EventKind::Handles => "handles",
            EventKind::External => "external",
            EventKind::Jsep => "jsep",
            EventKind::WebRtc => "webrtc",
            EventKind::Media => "media",
            EventKind::Plugins => "plugins",
            EventKind::Transports => "transports",
            EventKind::Core => "core",
        }
    }

    /// Returns its name for people, such as `WebRTC`.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Sessions => "Sessions",
            EventKind::Handles => "Handles",
            EventKind::External => "External",
            EventKind::Jsep => "Jsep",
            EventKind::WebRtc => "WebRTC",
            EventKind::Media => "Media",
            EventKind::Plugins => "Plugins",
            EventKind::Transports => "Transports",
            EventKind::Core => "Core",
        }
    }

    /// Returns the kind with this label.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == label)
    }
}

/// A set of kinds. As text: labels separated by commas, `all`, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventMask(u16);

impl EventMask {
    /// No kind.
    pub const NONE: EventMask = EventMask(0);
    /// Every kind.
    pub const ALL: EventMask = EventMask(0x1ff);

    /// Whether the set contains the kind.
    pub const fn has(self, kind: EventKind) -> bool {
        self.0 & kind.number() != 0
    }

    /// Returns the kinds of both sets.
    #[must_use]
    pub const fn and(self, other: EventMask) -> EventMask {
        EventMask(self.0 | other.0)
    }

    /// Parses a list of kinds. Unknown names are ignored, as in Janus.
    pub fn lenient(list: &str) -> EventMask {
        let kinds = labels(list).map(|label| Self::of(label).unwrap_or(Self::NONE));
        kinds.fold(Self::NONE, Self::and)
    }

    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    pub(super) const fn from_bits(bits: u16) -> Self {
        EventMask(bits & Self::ALL.0)
    }

    fn of(label: &str) -> Option<EventMask> {
        match label {
            "all" => Some(Self::ALL),
            "none" => Some(Self::NONE),
            label => EventKind::from_label(label).map(EventMask::from),
        }
    }
}

impl From<EventKind> for EventMask {
    fn from(kind: EventKind) -> Self {
        EventMask(kind.number())
    }
}

fn labels(list: &str) -> impl Iterator<Item = &str> {
    let labels = list.split(',').map(str::trim);
    labels.filter(|label| !label.is_empty())
}

impl FromStr for EventMask {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let add = |mask: EventMask, label: &str| match Self::of(label) {
            Some(kinds) => Ok(mask.and(kinds)),
            None => {
                let known = EventKind::ALL.map(EventKind::label).join(", ");
                Err(format!(
                    "{label:?} is no kind of event; known are {known}, all and none"
                ))
            }
        };
        labels(list).try_fold(Self::NONE, add)
    }
}

impl fmt::Display for EventMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            Self::NONE => f.write_str("none"),
            mask => {
                let kinds = EventKind::ALL.into_iter().filter(|kind| mask.has(*kind));
                let labels: Vec<_> = kinds.map(EventKind::label).collect();
                f.write_str(&labels.join(","))
            }
        }
    }
}

impl Serialize for EventMask {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventMask {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        portunus_config::text(from, "kinds of events in quotes", str::parse)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_list_reads_and_prints_back() {
        let mask: EventMask = "sessions, webrtc".parse().unwrap();
        assert!(mask.has(EventKind::Sessions) && mask.has(EventKind::WebRtc));
        assert!(!mask.has(EventKind::Core));
        assert_eq!(mask.to_string(), "sessions,webrtc");
        assert_eq!("all".parse(), Ok(EventMask::ALL));
        assert_eq!("none".parse(), Ok(EventMask::NONE));
        assert_eq!("".parse(), Ok(EventMask::NONE));
        assert_eq!(EventMask::from_bits(0xffff), EventMask::ALL);
    }

    #[test]
    fn an_unknown_kind_is_named_or_left_out() {
        let error = "media,madia".parse::<EventMask>().unwrap_err();
        assert!(error.contains("madia"), "{error}");
        assert_eq!(EventMask::lenient("media,madia"), EventKind::Media.into());
    }
}
