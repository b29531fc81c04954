//! Ceasing to publish, and leaving.

use portunus_core::{Handle, HandleId};
use portunus_resources::Id;
use serde_json::json;

use super::RoomState;
use crate::publication::Publication;
use crate::refusal::Refusal;
use crate::roster::Participant;

impl RoomState {
    /// A PeerConnection is gone: subscriptions let go of it, and others are told.
    pub(crate) fn media_ended(&mut self, id: &Id) -> Result<(), Refusal> {
        let media = self.end_media(id).ok_or(Refusal::NotPublished)?;
        self.unsubscribe_all(id, &media);
        // Without the name: some clients would take it for a change of it.
        let unpublished = self.event().with("unpublished", id.to_json());
        self.tell_others(id, unpublished);
        if let Some(person) = self.roster.get(id) {
            self.notify(person.handle(), || self.about(person, "unpublished").into());
        }
        Ok(())
    }

    /// Somebody leaves of itself, or is gone.
    pub(crate) fn leave(&mut self, id: &Id, handle: HandleId) -> Result<(), Refusal> {
        self.roster.joined(id, handle)?;
        // Nothing published is no reason to stay.
        let _ = self.media_ended(id);
        let person = self.remove(id).ok_or(Refusal::NotInRoom)?;
        tracing::info!(room = %self.id, %id, %handle, "participant left");
        let leaving = self.event().with("leaving", id.to_json());
        self.tell_all(person.labelled(leaving));
        self.notify(person.handle(), || self.about(&person, "leaving").into());
        Ok(())
    }

    /// A client's handle ends.
    pub(crate) fn gone(&mut self, id: &Id, handle: HandleId) {
        self.roster.forget_kicked(handle);
        // Whoever is not in the room any more has nothing to leave.
        let _ = self.leave(id, handle);
    }

    /// Throws somebody out, as `client` asked for, if a client did.
    pub(crate) fn kick(&mut self, id: &Id, client: Option<&Handle>) -> Result<(), Refusal> {
        if self.roster.is_kicked(id) {
            return Ok(());
        }
        self.check_treatable(id)?;
        let media = self.end_media(id);
        let Some(person) = self.roster.kick(id) else {
            return Ok(());
        };
        let subscriptions = self.subscriptions.disown(id);
        let leaving = self
            .event()
            .with_all(json!({ "leaving": "ok", "reason": "kicked" }));
        person.push(leaving);
        // Clients take an event with a `display` for a change of name.
        let kicked = self.event().with("kicked", id.to_json());
        self.tell_all(kicked.with_some("metadata", person.metadata().cloned()));
        self.notify(client, || self.about(&person, "kicked").into());
        if let Some(media) = &media {
            self.unsubscribe_all(id, media);
        }
        if self.options.require_pvtid {
            let publications = &self.publications;
            for key in subscriptions {
                // It may have ended meanwhile.
                let _ = self
                    .subscriptions
                    .change(key, |subscriber| subscriber.block(publications));
            }
        }
        person.close_pc();
        if let Some(media) = media {
            media.close();
        }
        Ok(())
    }

    /// The room ends: all are told and lose their PeerConnections.
    pub(crate) fn destroy(&mut self) {
        self.destroyed = true;
        let destroyed = json!({ "videoroom": "destroyed", "room": self.id.to_json() });
        self.tell_all(destroyed);
        // First the subscriptions: there is nothing left to offer them again.
        self.subscriptions.close_all();
        for person in self.roster.remove_all() {
            if let Some(media) = self.publications.end(person.id()) {
                media.close();
            }
            self.speakers.forget(person.id());
            person.close_pc();
        }
    }

    /// Takes out what somebody publishes; subscriptions have still to let go of it.
    pub(super) fn end_media(&mut self, id: &Id) -> Option<Publication> {
        self.tell_news();
        let media = self.publications.end(id)?;
        self.speakers.forget(id);
        Some(media)
    }

    /// Takes somebody out whose media is gone already.
    pub(super) fn remove(&mut self, id: &Id) -> Option<Participant> {
        let person = self.roster.remove(id)?;
        self.subscriptions.disown(id);
        Some(person)
    }
}
