//! Publishers of other servers, publishers of ours on other servers, and forwarders.

use std::sync::Weak;

use portunus_core::media::ingest::{Heard, Sound};
use portunus_core::{Mid, Object};
use portunus_resources::{Id, Ids};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Room, RoomState};
use crate::publication::{
    ForwardRequest, Forwarder, MAX_FORWARDERS, Origin, Publication, Remote, RemotePublication,
    Stream, StreamUpdate, check_e2ee,
};
use crate::refusal::Refusal;
use crate::roster::{MediaSettings, Party, Profile, RecordSettings};

/// A publisher of another server.
#[derive(Debug)]
pub(crate) struct NewRemote {
    pub(crate) remote: Remote,
    pub(crate) profile: Profile,
    pub(crate) e2ee: bool,
    pub(crate) streams: Vec<Stream>,
}

impl RoomState {
    /// The id for a publisher of another server, if there may be one more.
    pub(crate) fn admit_remote(&self, wanted: Option<Id>, ids: Ids) -> Result<Id, Refusal> {
        let id = self.roster.free_id(wanted, ids)?;
        self.publications.check_limit(self.options.publishers)?;
        Ok(id)
    }

    /// Checks that somebody who is encrypted end to end, or is not, may publish here.
    pub(crate) fn check_e2ee(&self, e2ee: bool) -> Result<(), Refusal> {
        check_e2ee(self.options.require_e2ee, e2ee)
    }

    /// Adds a publisher of another server under an id that is free.
    pub(crate) fn add_remote(&mut self, id: &Id, new: NewRemote) {
        let settings = MediaSettings {
            record: RecordSettings::of_room(self.options.record),
            ..MediaSettings::default()
        };
        self.roster
            .add(id.clone(), Party::Remote, new.profile, settings);
        let origin = Origin::Remote(new.remote);
        self.publications.start(id, origin, new.e2ee, new.streams);
        self.media_up(id);
        self.tell_published(id);
        self.notify_published(id, "published");
        self.update_media(id);
        self.record(id, false);
    }

    /// What another server's publisher sends by now.
    pub(crate) fn update_remote(
        &mut self,
        id: &Id,
        profile: Profile,
        e2ee: Option<bool>,
        updates: Vec<StreamUpdate>,
    ) {
        let renamed = self
            .roster
            .get_mut(id)
            .and_then(|person| person.rename_remote(profile));
        if let Some(event) = renamed {
            self.tell_others(id, event);
        }
        let news = self.publications.update_remote(id, e2ee, updates);
        self.relay_feed(id);
        self.update_media(id);
        self.record(id, false);
        if news {
            self.tell_updated(id);
        }
    }

    /// Takes a publisher of another server out.
    pub(crate) fn remove_remote(&mut self, id: &Id) {
        let media = self.end_media(id);
        let Some(person) = self.remove(id) else {
            return;
        };
        let leaving = self.event().with("leaving", id.to_json());
        self.tell_all(person.labelled(leaving));
        self.notify(None, || self.about(&person, "leaving").into());
        if let Some(media) = media {
            self.unsubscribe_all(id, &media);
            media.close();
        }
    }

    /// The streams of a publisher of another server.
    pub(crate) fn remote_streams(&self, id: &Id) -> Result<&[Stream], Refusal> {
        match self.roster.named(id)?.is_remote() {
            true => Ok(self.streams(id)),
            false => Err(Refusal::value("id", "not a remote publisher")),
        }
    }

    /// Forwards a stream of a publisher; gives the forwarder.
    pub(crate) fn forward(
        &mut self,
        id: &Id,
        mid: Mid,
        request: ForwardRequest,
    ) -> Result<&Forwarder, Refusal> {
        self.publications.forward(id, mid, request)
    }

    /// What somebody publishes, to be forwarded.
    pub(crate) fn forwardable(&self, id: &Id) -> Result<&Publication, Refusal> {
        self.publications.forwardable(id)
    }

    /// Ends a forwarder that a request has made.
    pub(crate) fn end_forwarder(&mut self, id: &Id, number: u64) -> Result<(), Refusal> {
        self.roster.named(id)?;
        let is_it = |forwarder: &Forwarder| {
            forwarder.remote_id.is_none() && u64::from(forwarder.id) == number
        };
        match self.publications.end_forwarders(id, is_it) {
            0 => Err(Refusal::NoSuchFeed(number.to_string())),
            _ => Ok(()),
        }
    }

    /// The publishers that are forwarded, with their forwarders, as clients are told of them.
    pub(crate) fn forwarders(&self) -> Vec<Value> {
        let mut publishers = Vec::new();
        for person in self.roster.iter() {
            let publication = self.publications.get(person.id());
            let forwarders = publication.into_iter().flat_map(Publication::forwarders);
            let shown: Vec<_> = forwarders.map(Forwarder::to_json).collect();
            if !shown.is_empty() {
                let named = Object::new().with("publisher_id", person.id().to_json());
                publishers.push(person.labelled(named).with("forwarders", shown).into());
            }
        }
        publishers
    }

    /// Checks that a publisher can be published elsewhere by this name.
    pub(crate) fn check_remote_id(&self, id: &Id, remote_id: &str) -> Result<(), Refusal> {
        if self.roster.named(id)?.handle().is_none() {
            let reason = "not a publisher of this server";
            return Err(Refusal::value("publisher_id", reason));
        }
        let known = self.publications.forwardable(id)?.remotes();
        if known.len() >= MAX_FORWARDERS {
            let reason = "a publisher is on 64 other servers at most";
            return Err(Refusal::value("remote_id", reason));
        }
        match known.iter().any(|known| known.id == remote_id) {
            true => Err(Refusal::IdExists(Id::Text(remote_id.to_owned()))),
            false => Ok(()),
        }
    }

    /// Publishes somebody of ours on another server, too.
    pub(crate) fn publish_remotely(
        &mut self,
        id: &Id,
        to: RemotePublication,
    ) -> Result<(), Refusal> {
        self.check_remote_id(id, &to.id)?;
        self.publications.publish_remotely(&self.id, id, to);
        Ok(())
    }

    /// Ends that.
    pub(crate) fn unpublish_remotely(&mut self, id: &Id, remote_id: &str) -> Result<(), Refusal> {
        self.roster.named(id)?;
        match self.publications.unpublish_remotely(id, remote_id) {
            true => Ok(()),
            false => Err(Refusal::NoSuchFeed(remote_id.to_owned())),
        }
    }

    /// The other servers that somebody is published on.
    pub(crate) fn remotes(&self, id: &Id) -> Result<&[RemotePublication], Refusal> {
        self.roster.named(id)?;
        let publication = self.publications.get(id);
        Ok(publication.map_or(&[], Publication::remotes))
    }
}

/// Takes what is heard of a publisher of another server until it is gone.
pub(crate) async fn hear(room: Weak<Room>, id: Id, mut hears: mpsc::Receiver<Heard>) {
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
