//! Ceasing to publish, and leaving.

use portunus_core::HandleId;
use serde_json::json;

use crate::id::Id;
use crate::refusal::Refusal;
use crate::room::RoomState;

impl RoomState {
    /// A PeerConnection is gone: subscriptions let go of it, and others are told.
    pub(crate) fn media_ended(&mut self, id: &Id) -> Result<(), Refusal> {
        let media = self.take_media(id).ok_or(Refusal::NotPublished)?;
        self.media_gone(id, &media);
        // Without the name: some clients would take it for a change of it.
        let unpublished = self.event().with("unpublished", id.to_json());
        self.tell_others(id, unpublished);
        Ok(())
    }

    /// Somebody leaves of itself, or is gone.
    pub(crate) fn leave(&mut self, id: &Id, handle: HandleId) -> Result<(), Refusal> {
        self.person(id, handle)?;
        // Nothing published is no reason to stay.
        let _ = self.media_ended(id);
        let Some(person) = self.remove(id) else {
            return Err(Refusal::NotInRoom);
        };
        let leaving = self.event().with("leaving", id.to_json());
        self.tell_all(person.labelled(leaving));
        Ok(())
    }

    /// Throws somebody out.
    pub(crate) fn kick(&mut self, id: &Id) -> Result<(), Refusal> {
        if self.is_kicked(id) {
            return Ok(());
        }
        if self.named(id)?.origin.is_dummy() {
            return Err(Refusal::NoSuchFeed(id.to_string()));
        }
        let media = self.take_media(id);
        let subscriptions: Vec<HandleId> = self
            .people
            .get(id)
            .map(|person| person.subscriptions.iter().copied().collect())
            .unwrap_or_default();
        let Some(person) = self.remove(id) else {
            return Ok(());
        };
        self.note_kicked(&person);
        let leaving = self
            .event()
            .with_all(json!({ "leaving": "ok", "reason": "kicked" }));
        person.origin.push(leaving);
        // Clients take an event with a `display` for a change of name.
        let kicked = self.event().with("kicked", id.to_json());
        self.tell_all(kicked.with_some("metadata", person.metadata.clone()));
        if let Some(media) = media {
            self.media_gone(id, &media);
        }
        if self.options.require_pvtid {
            for key in subscriptions {
                if let Some(subscriber) = self.subscribers.get_mut(&key) {
                    subscriber.owner_kicked = true;
                }
                self.relay(key);
            }
        }
        person.origin.close_pc();
        Ok(())
    }

    /// The room ends: all are told and lose their PeerConnections.
    pub(crate) fn destroy(&mut self) {
        self.destroyed = true;
        let destroyed = json!({ "videoroom": "destroyed", "room": self.id.to_json() });
        self.tell_all(destroyed);
        let people: Vec<Id> = self.people.keys().cloned().collect();
        // First the subscriptions: there is nothing left to offer them again.
        for (_, subscriber) in std::mem::take(&mut self.subscribers) {
            subscriber.handle.close_pc();
        }
        for id in people {
            self.take_media(&id);
            if let Some(person) = self.remove(&id) {
                person.origin.close_pc();
            }
        }
    }
}
