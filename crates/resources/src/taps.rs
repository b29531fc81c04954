//! The recipients of a room's media that are no participants.

use portunus_core::Object;

/// The recipients of a room's media that are no participants, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taps {
    /// Participants that are being recorded.
    pub recordings: usize,
    /// RTP forwarders.
    pub forwarders: usize,
    /// PeerConnections whose packets an administrator captures.
    pub captures: usize,
    /// Subscriptions that belong to no participant.
    pub viewers: usize,
}

impl Taps {
    /// Returns the counts above 0 for the listing of the room, or `None` if there is none.
    #[must_use]
    pub fn listed(self) -> Option<Object> {
        let some = |count: usize| Some(count).filter(|count| *count > 0);
        (self != Taps::default()).then(|| {
            Object::new()
                .with_some("recordings", some(self.recordings))
                .with_some("forwarders", some(self.forwarders))
                .with_some("captures", some(self.captures))
                .with_some("viewers", some(self.viewers))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_what_there_is_is_listed() {
        assert!(Taps::default().listed().is_none());
        let taps = Taps {
            forwarders: 2,
            ..Taps::default()
        };
        let listed = taps.listed().map(Value::from);
        assert_eq!(listed, Some(json!({ "forwarders": 2 })));
    }
}
