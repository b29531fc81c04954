//! What is told of those who are in a room, to whoever asks.

use portunus_core::HandleId;
use portunus_resources::Id;
use serde_json::Value;

use super::RoomState;
use crate::publication::{listed, state};
use crate::refusal::Refusal;

impl RoomState {
    /// The entries of all in `listparticipants`.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let people = self.roster.iter();
        people
            .map(|person| listed(person, self.publications.up(person.id())))
            .collect()
    }

    /// How many are in it.
    pub(crate) fn count(&self) -> usize {
        self.roster.len()
    }

    /// Checks that `handle` has joined as `id`; says whether it publishes.
    pub(crate) fn publishes(&self, id: &Id, handle: HandleId) -> Result<bool, Refusal> {
        self.roster.joined(id, handle)?;
        Ok(self.publications.get(id).is_some())
    }

    /// The cap on what somebody sends, in bit/s.
    pub(crate) fn bitrate(&self, id: &Id) -> Option<u64> {
        Some(self.roster.get(id)?.settings.bitrate)
    }

    /// The state of the participant that `handle` has joined as, for administrators.
    pub(crate) fn participant_state(&self, id: &Id, handle: HandleId) -> Result<Value, Refusal> {
        let person = self.roster.joined(id, handle)?;
        let receivers = |stream: &_| self.subscriptions.receivers(id, stream);
        let media = self.publications.get(id);
        Ok(state(&self.id, person, media, receivers))
    }
}
