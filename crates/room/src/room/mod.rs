//! A room: its commands, each as steps on its parts.
//!
//! Each part owns its state: [`Roster`] the participants, [`Publications`] what they send,
//! [`Subscriptions`] what is received, [`Speakers`] the dominant speaker, [`Clients`] the way to
//! the clients, and [`Announcements`] the publishers that the others do not know yet.

mod admissions;
mod claims;
mod client;
mod departures;
mod far_data;
mod notifications;
mod publications;
mod relay;
mod relayed;
mod remote;
mod speech;
mod subscriptions;
mod taps;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::MediaPlane;
use portunus_record::Recorder;
use tokio::sync::watch;

use crate::announcements::Announcements;
use crate::publication::{FileNames, Origin, Publication, Publications, dummy_streams};
use crate::roster::{Participant, Party, Profile, Roster};
use crate::speakers::Speakers;
use crate::subscription::{Subscriber, Subscriptions};
use crate::{ConnectionId, Dummy, PersonId, Refusal, RoomSettings, Stream};

pub use admissions::Join;
use claims::Claims;
pub use claims::{ClaimRefusal, Displaced};
use client::Clients;
pub use client::{Client, Told, Watcher};
pub use publications::Configured;
pub use relayed::FarOrigin;
pub use remote::{NewRemote, hear};
pub use subscriptions::{Outcome, Switched};
pub use taps::Taps;

/// A room. All changes happen under its lock, so that all clients see them in the same order.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
}

/// The parts of a new room.
#[derive(Debug)]
pub struct Setup {
    /// Its name in descriptions, files and the log.
    pub name: Arc<str>,
    /// Its settings.
    pub settings: RoomSettings,
    /// The media plane.
    pub media: MediaPlane,
    /// The recorder.
    pub recorder: Recorder,
    /// The prefixes of names of recorded files.
    pub names: FileNames,
    /// The observers of the server.
    pub watcher: Box<dyn Watcher>,
}

/// The state of a room, with its commands.
#[derive(Debug)]
pub struct State {
    name: Arc<str>,
    settings: RoomSettings,
    destroyed: bool,
    clients: Clients,
    roster: Roster,
    claims: Claims,
    publications: Publications,
    subscriptions: Subscriptions,
    speakers: Speakers,
    announcements: Announcements,
    watcher: Box<dyn Watcher>,
    changes: watch::Sender<()>,
    /// The participants at other nodes whose data channels somebody here receives.
    wanted_data: BTreeSet<PersonId>,
    /// What a door tells the same door at other nodes about the room.
    note: Option<Arc<str>>,
}

impl Room {
    /// Returns an empty room.
    pub fn new(setup: Setup) -> Self {
        let mut state = State {
            name: setup.name,
            settings: setup.settings,
            destroyed: false,
            clients: Clients::default(),
            roster: Roster::default(),
            claims: Claims::default(),
            publications: Publications::new(setup.media, setup.recorder, setup.names),
            subscriptions: Subscriptions::default(),
            speakers: Speakers::default(),
            announcements: Announcements::default(),
            watcher: setup.watcher,
            changes: watch::Sender::new(()),
            wanted_data: BTreeSet::new(),
            note: None,
        };
        state.measure_speech();
        Room {
            state: Mutex::new(state),
        }
    }

    /// Locks the room.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its settings.
    pub const fn settings(&self) -> &RoomSettings {
        &self.settings
    }

    /// Replaces its settings. Codecs and header extensions apply to later negotiations only.
    pub fn edit(&mut self, settings: RoomSettings) {
        let asks = settings.keyframes.interval_s != self.settings.keyframes.interval_s;
        self.settings = settings;
        self.changes.send_replace(());
        if asks {
            for id in self.roster.ids() {
                self.publications.update_keyframes(&id, &self.settings);
            }
        }
    }

    /// The door has changed what it keeps beside the settings, such as its PIN.
    pub fn door_changed(&self) {
        self.changes.send_replace(());
    }

    /// Returns a receiver that sees when participants, what they publish, their mutes, settings or
    /// [`State::wanted_data`] have changed.
    /// Changes that follow each other closely may be seen as one. It closes with the room.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Returns whether it has ended.
    pub const fn is_destroyed(&self) -> bool {
        self.destroyed
    }

    /// Returns whether there is a participant or a subscription. A placeholder does not count.
    pub fn is_used(&self) -> bool {
        let mut people = self.roster.iter();
        people.any(|person| !person.is_dummy()) || !self.subscriptions.is_empty()
    }

    /// Returns whether there is a participant, a subscription or a forwarder of this node.
    pub fn is_used_here(&self) -> bool {
        let mut people = self.roster.iter();
        let mut publications = self.roster.iter();
        people.any(|person| !person.is_dummy() && !person.is_elsewhere())
            || !self.subscriptions.is_empty()
            || publications.any(|person| self.is_forwarded(person.id()))
    }

    fn is_forwarded(&self, id: &PersonId) -> bool {
        let publication = self.publications.get(id);
        publication.is_some_and(|it| it.forwarders().next().is_some())
    }

    /// Returns the participants.
    pub fn people(&self) -> impl Iterator<Item = &Participant> {
        self.roster.iter()
    }

    /// Returns a participant.
    pub fn person(&self, id: &PersonId) -> Option<&Participant> {
        self.roster.get(id)
    }

    /// Checks that `connection` has joined as `id`. Returns whether it publishes.
    pub fn publishes(&self, id: &PersonId, connection: ConnectionId) -> Result<bool, Refusal> {
        self.roster.joined(id, connection)?;
        Ok(self.publications.get(id).is_some())
    }

    /// Returns a participant's publication, whether its media is up or not.
    pub fn publication(&self, id: &PersonId) -> Option<&Publication> {
        self.publications.get(id)
    }

    /// Returns a participant's publication if its media is up.
    pub fn published(&self, id: &PersonId) -> Option<&Publication> {
        self.publications.up(id)
    }

    /// Returns the feeds whose media is up, in the order in which it came up.
    pub fn feeds(&self) -> impl Iterator<Item = &PersonId> {
        self.publications.in_order().map(|(feed, _)| feed)
    }

    /// Returns the dominant speaker.
    pub fn dominant(&self) -> Option<&PersonId> {
        self.speakers.dominant()
    }

    /// Returns a subscription.
    pub fn subscriber(&self, key: ConnectionId) -> Option<&Subscriber> {
        self.subscriptions.get(key).ok()
    }

    /// Returns the number of m-lines of all subscriptions that receive a stream.
    pub fn receivers(&self, feed: &PersonId, stream: &Stream) -> usize {
        self.subscriptions.receivers(feed, stream)
    }

    /// Returns the highest layer of a stream that anybody receives, here or at other nodes, or
    /// `None` if nobody does. A recording counts as the highest one.
    pub fn wanted_layer(&self, feed: &PersonId, stream: &Stream) -> Option<u8> {
        let publication = self.publications.get(feed)?;
        let is_kept = publication.recorded(stream).is_some() || stream.is_forwarded();
        match is_kept {
            true => Some(u8::MAX),
            false => {
                let here = self.subscriptions.wanted_layer(feed, stream);
                here.max(stream.far_layer)
            }
        }
    }

    /// Adds the room's placeholder publisher, if it has one, under a free id. Sends no notice.
    pub fn add_dummy(&mut self, id: PersonId) {
        let Some(dummy) = &self.settings.dummy else {
            return;
        };
        let e2ee = dummy.e2ee || self.settings.require_e2ee;
        let streams = dummy_streams(dummy, &self.settings);
        let mut person = Participant::new(id.clone(), Party::Dummy);
        person.profile = Profile {
            display: Some(Dummy::DISPLAY.to_owned()),
            metadata: None,
        };
        self.roster.add(person);
        self.publications.start(&id, Origin::Dummy, e2ee, streams);
        self.media_up(&id);
    }
}
