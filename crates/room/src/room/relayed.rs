//! Participants at other nodes of the cluster, and what other nodes need to know of those here.

use std::sync::Arc;

use portunus_media::{IngestId, SourceRef};
use portunus_relay::SourceDescription;
use portunus_rtp::Mid;

use super::State;
use crate::publication::{Origin, Relayed, RelayedStream};
use crate::roster::{MediaSettings, Participant, Party, Permissions, Profile};
use crate::{Event, Notice, PersonId, Refusal};

/// Where a participant at another node comes from.
#[derive(Debug, Clone)]
pub struct FarOrigin<'a> {
    /// The name of its node.
    pub node: &'a str,
    /// The number of its session there ([`Participant::session`]). Earlier versions tell none.
    pub session: Option<u64>,
    /// What its door there tells the same door here.
    pub note: Option<Arc<str>>,
}

impl State {
    /// Adds a participant whose client is at another node, under an id that is free. It publishes
    /// nothing yet.
    pub fn join_elsewhere(
        &mut self,
        id: &PersonId,
        profile: Profile,
        permissions: Permissions,
        from: FarOrigin<'_>,
    ) -> Result<(), Refusal> {
        self.send_news();
        if let Err(taken) = self.roster.check_free(id) {
            if let Some(client) = self.clients.participant(id) {
                client.contested(from.note.as_deref());
            }
            return Err(taken);
        }
        let mut person = Participant::new(id.clone(), Party::Elsewhere(from.node.into()));
        person.profile = profile;
        person.permissions = permissions;
        person.note = from.note;
        person.session = from.session.unwrap_or(person.session);
        // It is recorded at its node.
        person.settings = MediaSettings::default();
        self.roster.add(person);
        self.claims.forget(id);
        match self.settings.notify_joining {
            true => self.send_to_others(id, Notice::Joining(id)),
            false => self.send_join(id),
        }
        Ok(())
    }

    /// Starts the publication of a participant at another node. Its media is up.
    pub fn publish_elsewhere(
        &mut self,
        id: &PersonId,
        media: Relayed,
        e2ee: bool,
        streams: Vec<RelayedStream>,
    ) -> Result<(), Refusal> {
        if !self.roster.named(id)?.is_elsewhere() {
            return Err(Refusal::NotRemote);
        }
        if let Some(before) = self.publications.end(id) {
            before.close();
        }
        let origin = Origin::Relayed(media);
        self.publications.start(id, origin, e2ee, Vec::new());
        self.publications.update_relayed(id, streams);
        self.media_up(id);
        self.send_published(id);
        self.notify_published(id, &Event::Published(id));
        self.update_media(id);
        self.record(id, false);
        Ok(())
    }

    /// Updates the streams of a participant at another node: its known ones, and new ones.
    pub fn update_elsewhere(
        &mut self,
        id: &PersonId,
        streams: Vec<RelayedStream>,
    ) -> Result<(), Refusal> {
        let news = self.publications.update_relayed(id, streams);
        let news = news.ok_or(Refusal::NotRemote)?;
        self.relay_feed(id);
        self.update_media(id);
        self.record(id, false);
        if news {
            self.send_updated(id);
        }
        Ok(())
    }

    /// Tells that a participant at another node has another name or other metadata.
    pub fn rename_elsewhere(&mut self, id: &PersonId, profile: Profile) {
        let person = self.roster.get_mut(id).filter(|it| it.is_elsewhere());
        let renamed = person.and_then(|person| person.rename_remote(profile));
        if let Some(profile) = &renamed {
            self.send_to_others(id, Notice::Renamed { id, profile });
        }
    }

    /// Sets what the door that has made the room, or uses it, tells the same door at other nodes.
    pub fn set_room_note(&mut self, note: Option<Arc<str>>) {
        if self.note != note {
            self.note = note;
            self.changes.send_replace(());
        }
    }

    /// Returns what the door tells the same door at other nodes about the room.
    pub const fn room_note(&self) -> Option<&Arc<str>> {
        self.note.as_ref()
    }

    /// Returns how many participants publish, here and at other nodes.
    pub fn publisher_count(&self) -> usize {
        let people = self.roster.iter().map(Participant::id);
        people
            .filter(|id| self.publications.up(id).is_some())
            .count()
    }

    /// Sets what the door of a participant tells the same door at other nodes.
    pub fn set_note(&mut self, id: &PersonId, note: Option<Arc<str>>) {
        if let Some(person) = self.roster.get_mut(id)
            && person.note != note
        {
            person.note = note;
            self.changes.send_replace(());
        }
    }

    /// Notes that an ingest of a participant at another node has ended.
    pub fn source_ended(&mut self, id: &PersonId, ingest: IngestId) {
        if self.publications.forget_relayed(id, ingest) {
            self.relay_feed(id);
        }
    }

    /// Ends the publication of a participant at another node.
    pub fn unpublish_elsewhere(&mut self, id: &PersonId) -> Result<(), Refusal> {
        if !self.roster.named(id)?.is_elsewhere() {
            return Err(Refusal::NotRemote);
        }
        let media = self.end_media(id).ok_or(Refusal::NotPublished)?;
        self.unsubscribe_all(id, &media);
        self.send_to_others(id, Notice::Unpublished(id));
        if let Some(person) = self.roster.get(id) {
            self.notify_of(id, &Event::Unpublished(person));
        }
        media.close();
        Ok(())
    }

    /// Removes a participant at another node, with its publication.
    pub fn leave_elsewhere(&mut self, id: &PersonId) -> Result<(), Refusal> {
        if !self.roster.named(id)?.is_elsewhere() {
            return Err(Refusal::NotRemote);
        }
        // Somebody without a publication can leave too.
        let _ = self.unpublish_elsewhere(id);
        let person = self.remove(id).ok_or(Refusal::NotInRoom)?;
        self.claims.forget(id);
        self.send_to_all(Notice::Left(&person));
        self.notify(None, &Event::Left(&person));
        Ok(())
    }

    /// Returns a stream of a participant of this node as other nodes need to know it, to be offered
    /// to them ([`portunus_relay::Relays::offer`]). `None` if its media is not up, for data, and
    /// for participants at other nodes.
    pub fn offered(&self, id: &PersonId, mid: Mid) -> Option<(SourceRef, SourceDescription)> {
        self.publications.offered(id, mid)
    }

    /// Returns whether a participant was kicked and has not come back.
    pub fn was_kicked(&self, id: &PersonId) -> bool {
        self.roster.is_kicked(id)
    }

    /// Sets the highest layer of a stream that anybody at other nodes can see, or `None` if nobody
    /// can. It counts in [`State::wanted_layer`]. Returns whether that is a change; the door of
    /// the publisher is told ([`crate::Client::wanted`]).
    pub fn set_far_layer(&mut self, id: &PersonId, mid: Mid, layer: Option<u8>) -> bool {
        let changes = self.publications.set_far_layer(id, mid, layer);
        if changes && let Some(client) = self.clients.participant(id) {
            client.wanted();
        }
        changes
    }
}
