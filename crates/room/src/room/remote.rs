//! Publishers of other servers, publications on other servers, and forwarders.

use std::sync::Weak;

use portunus_media::ingest::{Heard, Sound};
use portunus_rtp::Mid;
use tokio::sync::mpsc;

use super::{Room, State};
use crate::publication::{
    ForwardRequest, Forwarder, MAX_FORWARDERS, Origin, Publication, Remote, RemotePublication,
    Stream,
};
use crate::roster::{Participant, Party, Profile, RecordSettings};
use crate::{ConnectionId, Event, Notice, PersonId, Refusal};

/// A publisher of another server.
#[derive(Debug)]
pub struct NewRemote {
    /// Its media.
    pub remote: Remote,
    /// Its name and metadata.
    pub profile: Profile,
    /// Whether it is encrypted end to end.
    pub e2ee: bool,
    /// Its streams.
    pub streams: Vec<Stream>,
}

impl State {
    /// Checks that a publisher of another server can be added with this id.
    pub fn check_remote(&self, id: &PersonId) -> Result<(), Refusal> {
        self.roster.check_free(id)?;
        self.check_places(None)
    }

    /// Adds a publisher of another server under an id that is free.
    pub fn add_remote(&mut self, id: &PersonId, new: NewRemote) {
        let mut person = Participant::new(id.clone(), Party::Remote);
        person.profile = new.profile;
        person.settings.record = RecordSettings {
            on: self.settings.recording.on,
            ..RecordSettings::default()
        };
        self.roster.add(person);
        let origin = Origin::Remote(new.remote);
        self.publications.start(id, origin, new.e2ee, new.streams);
        self.media_up(id);
        self.send_published(id);
        self.notify_published(id, &Event::Published(id));
        self.update_media(id);
        self.record(id, false);
    }

    /// Publishes streams of a participant that sends them without its PeerConnection. Replaces what it
    /// published before.
    pub fn publish_ingests(
        &mut self,
        id: &PersonId,
        connection: ConnectionId,
        remote: Remote,
        streams: Vec<Stream>,
    ) -> Result<(), Refusal> {
        self.roster.joined(id, connection)?;
        if let Some(before) = self.end_media(id) {
            self.unsubscribe_all(id, &before);
            before.close();
        }
        self.check_places(None)?;
        self.publications
            .start(id, Origin::Remote(remote), false, streams);
        self.media_up(id);
        self.send_published(id);
        self.notify_published(id, &Event::Published(id));
        self.update_media(id);
        self.record(id, false);
        Ok(())
    }

    /// Updates a publisher of another server: its known streams, and new ones. An update without a
    /// description keeps the stream's.
    pub fn update_remote(
        &mut self,
        id: &PersonId,
        profile: Profile,
        e2ee: Option<bool>,
        updates: Vec<Stream>,
    ) {
        let renamed = self
            .roster
            .get_mut(id)
            .and_then(|person| person.rename_remote(profile));
        if let Some(profile) = &renamed {
            self.send_to_others(id, Notice::Renamed { id, profile });
        }
        let news = self.publications.update_remote(id, e2ee, updates);
        self.relay_feed(id);
        self.update_media(id);
        self.record(id, false);
        if news {
            self.send_updated(id);
        }
    }

    /// Removes a publisher of another server.
    pub fn remove_remote(&mut self, id: &PersonId) {
        let media = self.end_media(id);
        let Some(person) = self.remove(id) else {
            return;
        };
        self.send_to_all(Notice::Left(&person));
        self.notify(None, &Event::Left(&person));
        if let Some(media) = media {
            self.unsubscribe_all(id, &media);
            media.close();
        }
    }

    /// Returns the streams of a publisher of another server.
    pub fn remote_streams(&self, id: &PersonId) -> Result<&[Stream], Refusal> {
        match self.roster.named(id)?.is_remote() {
            true => Ok(self.streams(id)),
            false => Err(Refusal::NotRemote),
        }
    }

    /// Forwards a stream of a publisher. Returns the forwarder.
    pub fn forward(
        &mut self,
        id: &PersonId,
        mid: Mid,
        request: ForwardRequest,
    ) -> Result<&Forwarder, Refusal> {
        self.publications.forward(id, mid, request, None)
    }

    /// Returns a publication that can be forwarded.
    pub fn forwardable(&self, id: &PersonId) -> Result<&Publication, Refusal> {
        self.publications.forwardable(id)
    }

    /// Ends a forwarder that a request has made.
    pub fn end_forwarder(&mut self, id: &PersonId, number: u64) -> Result<(), Refusal> {
        self.roster.named(id)?;
        let is_it = |forwarder: &Forwarder| {
            forwarder.remote_id.is_none() && u64::from(forwarder.id) == number
        };
        match self.publications.end_forwarders(id, is_it) {
            0 => Err(Refusal::NoSuchFeed(number.to_string())),
            _ => Ok(()),
        }
    }

    /// Checks that a publisher can be published on another server with this id.
    pub fn check_remote_id(&self, id: &PersonId, remote_id: &str) -> Result<(), Refusal> {
        if self.roster.named(id)?.connection().is_none() {
            return Err(Refusal::NotOurs);
        }
        let known = &self.publications.forwardable(id)?.remotes;
        if known.len() >= MAX_FORWARDERS {
            return Err(Refusal::TooManyRemotes);
        }
        match known.iter().any(|known| known.id == remote_id) {
            true => Err(Refusal::IdExists(remote_id.to_owned())),
            false => Ok(()),
        }
    }

    /// Publishes a local publisher on another server.
    pub fn publish_remotely(
        &mut self,
        id: &PersonId,
        to: RemotePublication,
    ) -> Result<(), Refusal> {
        self.check_remote_id(id, &to.id)?;
        self.publications.publish_remotely(&self.name, id, to);
        Ok(())
    }

    /// Ends a publication on another server.
    pub fn unpublish_remotely(&mut self, id: &PersonId, remote_id: &str) -> Result<(), Refusal> {
        self.roster.named(id)?;
        match self.publications.unpublish_remotely(id, remote_id) {
            true => Ok(()),
            false => Err(Refusal::NoSuchFeed(remote_id.to_owned())),
        }
    }

    /// Returns the publications of a participant on other servers.
    pub fn remotes(&self, id: &PersonId) -> Result<&[RemotePublication], Refusal> {
        self.roster.named(id)?;
        let publication = self.publications.get(id);
        Ok(publication.map_or(&[], |known| &known.remotes))
    }
}

/// Passes the audio levels of a remote publisher to the room until the publisher is gone.
pub async fn hear(room: Weak<Room>, id: PersonId, mut hears: mpsc::Receiver<Heard>) {
    while let Some(Heard { ingest, sound }) = hears.recv().await {
        let Some(room) = room.upgrade() else { return };
        let mut state = room.lock();
        let Some(mid) = state.publications.mid_of(&id, ingest) else {
            continue;
        };
        match sound {
            Sound::Talking { talking, average } => {
                state.heard(&id, mid, talking, f64::from(average) / 100.0);
            }
            Sound::Speech(activity) => state.speech(&id, mid, activity),
        }
    }
}
