//! Ceasing to publish, and leaving.

use super::State;
use crate::publication::Publication;
use crate::roster::Participant;
use crate::{Connection, ConnectionId, Event, Notice, PersonId, Refusal, Told};

impl State {
    /// A PeerConnection is gone: subscriptions let go of it, and others are told.
    pub fn media_ended(&mut self, id: &PersonId) -> Result<(), Refusal> {
        let media = self.end_media(id).ok_or(Refusal::NotPublished)?;
        self.unsubscribe_all(id, &media);
        self.tell_others(id, Notice::Unpublished(id));
        if let Some(person) = self.roster.get(id) {
            self.notify_of(person, &Event::Unpublished(person));
        }
        Ok(())
    }

    /// Somebody leaves of itself, or is gone.
    pub fn leave(&mut self, id: &PersonId, connection: ConnectionId) -> Result<(), Refusal> {
        self.roster.joined(id, connection)?;
        // Nothing published is no reason to stay.
        let _ = self.media_ended(id);
        let person = self.remove(id).ok_or(Refusal::NotInRoom)?;
        tracing::info!(room = %self.name, %id, %connection, "participant left");
        self.tell_all(Notice::Left(&person));
        self.notify_of(&person, &Event::Left(&person));
        Ok(())
    }

    /// A client's connection ends.
    pub fn gone(&mut self, id: &PersonId, connection: ConnectionId) {
        self.roster.forget_kicked(connection);
        // Whoever is not in the room any more has nothing to leave.
        let _ = self.leave(id, connection);
    }

    /// Throws somebody out, as the client `by` asked for, if a client did.
    pub fn kick(&mut self, id: &PersonId, by: Option<&dyn Connection>) -> Result<(), Refusal> {
        if self.roster.is_kicked(id) {
            return Ok(());
        }
        self.check_participant(id)?;
        let media = self.end_media(id);
        let Some(person) = self.roster.kick(id) else {
            return Ok(());
        };
        let subscriptions = self.subscriptions.disown(id);
        person.tell(&Told::new(self, Notice::ThrownOut));
        self.tell_all(Notice::Kicked(&person));
        self.notify(by, &Event::Kicked(&person));
        if let Some(media) = &media {
            self.unsubscribe_all(id, media);
        }
        if self.settings.require_pvtid {
            for key in subscriptions {
                // It may have ended meanwhile.
                let _ = self.change_subscriber(key, |it, all| it.block(all));
            }
        }
        person.close();
        if let Some(media) = media {
            media.close();
        }
        Ok(())
    }

    /// The room ends: all are told and lose their PeerConnections.
    pub fn destroy(&mut self) {
        self.destroyed = true;
        self.tell_all(Notice::Destroyed);
        // First the subscriptions: there is nothing left to offer them again.
        self.subscriptions.close_all();
        for person in self.roster.remove_all() {
            if let Some(media) = self.publications.end(person.id()) {
                media.close();
            }
            self.speakers.forget(person.id());
            person.close();
        }
    }

    /// Takes out what somebody publishes; subscriptions have still to let go of it.
    pub(super) fn end_media(&mut self, id: &PersonId) -> Option<Publication> {
        self.tell_news();
        let media = self.publications.end(id)?;
        self.speakers.forget(id);
        Some(media)
    }

    /// Takes somebody out whose media is gone already.
    pub(super) fn remove(&mut self, id: &PersonId) -> Option<Participant> {
        let person = self.roster.remove(id)?;
        self.subscriptions.disown(id);
        Some(person)
    }
}
