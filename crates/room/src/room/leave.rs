//! The ends of publications, of participants and of the room.

use super::{Client, Clients, State, Told};
use crate::publication::Publication;
use crate::roster::Participant;
use crate::{ConnectionId, Event, Notice, PersonId, Refusal};

impl State {
    /// Removes a publication whose PeerConnection has ended, and tells the others.
    pub fn media_ended(&mut self, id: &PersonId) -> Result<(), Refusal> {
        let media = self.end_media(id).ok_or(Refusal::NotPublished)?;
        self.unsubscribe_all(id, &media);
        self.tell_others(id, Notice::Unpublished(id));
        if let Some(person) = self.roster.get(id) {
            self.notify_of(id, &Event::Unpublished(person));
        }
        Ok(())
    }

    /// Removes a participant that leaves.
    pub fn leave(&mut self, id: &PersonId, connection: ConnectionId) -> Result<(), Refusal> {
        self.roster.joined(id, connection)?;
        // Somebody without a publication can leave too.
        let _ = self.media_ended(id);
        let client = self.clients.remove_participant(id);
        let person = self.remove(id).ok_or(Refusal::NotInRoom)?;
        tracing::info!(room = %self.name, %id, %connection, "participant left");
        self.tell_all(Notice::Left(&person));
        self.notify(client.as_deref(), &Event::Left(&person));
        Ok(())
    }

    /// Removes the participant of a client's connection that has ended.
    pub fn gone(&mut self, id: &PersonId, connection: ConnectionId) {
        self.roster.forget_kicked(connection);
        // It may have left or been kicked before.
        let _ = self.leave(id, connection);
    }

    /// Kicks a participant, by the client `by` or an administrator.
    pub fn kick(&mut self, id: &PersonId, by: Option<&dyn Client>) -> Result<(), Refusal> {
        if self.roster.is_kicked(id) {
            return Ok(());
        }
        self.check_participant(id)?;
        let media = self.end_media(id);
        let Some(person) = self.roster.kick(id) else {
            return Ok(());
        };
        let subscriptions = self.subscriptions.disown(id);
        if let Some(client) = self.clients.remove_participant(id) {
            client.tell(&Told::new(self, Notice::ThrownOut), None);
        }
        self.tell_all(Notice::Kicked(&person));
        self.notify(by, &Event::Kicked(&person));
        if let Some(media) = &media {
            self.unsubscribe_all(id, media);
        }
        if self.settings.require_private_id {
            for key in subscriptions {
                // The subscription may have ended meanwhile.
                let _ = self.change_subscriber(key, |it, all| it.block(all));
            }
        }
        person.close();
        if let Some(media) = media {
            media.close();
        }
        Ok(())
    }

    /// Ends the room: tells all clients and closes their PeerConnections.
    pub fn destroy(&mut self) {
        self.destroyed = true;
        self.tell_all(Notice::Destroyed);
        // Subscriptions first, so that none gets an offer for the ends of the publications.
        self.subscriptions.close_all();
        self.clients = Clients::default();
        for person in self.roster.remove_all() {
            if let Some(media) = self.publications.end(person.id()) {
                media.close();
            }
            self.speakers.forget(person.id());
            person.close();
        }
    }

    /// Removes a publication. The caller has to remove it from the subscriptions.
    pub(super) fn end_media(&mut self, id: &PersonId) -> Option<Publication> {
        self.tell_news();
        let media = self.publications.end(id)?;
        self.speakers.forget(id);
        Some(media)
    }

    /// Removes a participant without a publication.
    pub(super) fn remove(&mut self, id: &PersonId) -> Option<Participant> {
        let person = self.roster.remove(id)?;
        self.clients.remove_participant(id);
        self.measure_speech();
        self.subscriptions.disown(id);
        Some(person)
    }
}
