//! A room: what happens in it, part by part.
//!
//! The parts keep their own: [`Roster`] who is there, [`Publications`] what they send, [`Subscriptions`] what is received,
//! [`Speakers`] who has the floor, and [`News`] whom the others have not been told of. What happens in a room is here, as
//! the steps that it takes of them.

mod join;
mod leave;
mod publish;
mod relay;
mod remote;
mod speech;
mod subscribe;
mod telling;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::MediaPlane;
use portunus_record::Recorder;

use crate::news::News;
use crate::publication::{FileNames, Origin, Publication, Publications, dummy_streams};
use crate::roster::{Participant, Party, Profile, Roster};
use crate::speakers::Speakers;
use crate::subscription::{Subscriber, Subscriptions};
use crate::{ConnectionId, Dummy, PersonId, Refusal, RoomSettings, Stream, Watcher};

pub use join::Join;
pub use publish::Configured;
pub use remote::{NewRemote, hear};
pub use subscribe::{Outcome, Switched};

/// A room. Whatever happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
}

/// What a room is made of.
#[derive(Debug)]
pub struct Setup {
    /// What it is called in descriptions, files and the log.
    pub name: Arc<str>,
    /// What it is like.
    pub settings: RoomSettings,
    /// Where its media flows.
    pub media: MediaPlane,
    /// What it records with.
    pub recorder: Recorder,
    /// What names of recorded files begin with.
    pub names: FileNames,
    /// Those who watch the server.
    pub watcher: Box<dyn Watcher>,
}

/// What is in a room.
#[derive(Debug)]
pub struct State {
    name: Arc<str>,
    settings: RoomSettings,
    destroyed: bool,
    roster: Roster,
    publications: Publications,
    subscriptions: Subscriptions,
    speakers: Speakers,
    news: News,
    watcher: Box<dyn Watcher>,
}

impl Room {
    /// A room in which nobody is.
    pub fn new(setup: Setup) -> Self {
        let mut state = State {
            name: setup.name,
            settings: setup.settings,
            destroyed: false,
            roster: Roster::default(),
            publications: Publications::new(setup.media, setup.recorder, setup.names),
            subscriptions: Subscriptions::default(),
            speakers: Speakers::default(),
            news: News::default(),
            watcher: setup.watcher,
        };
        state.measure_speech();
        Room {
            state: Mutex::new(state),
        }
    }

    /// What is in it.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is like.
    pub const fn settings(&self) -> &RoomSettings {
        &self.settings
    }

    /// Changes what it is like. Codecs and header extensions are those of what is negotiated from now on.
    pub fn edit(&mut self, settings: RoomSettings) {
        let asks = settings.fir_freq != self.settings.fir_freq;
        self.settings = settings;
        if asks {
            for id in self.roster.ids() {
                self.publications.update_keyframes(&id, &self.settings);
            }
        }
    }

    /// Whether it has ended.
    pub const fn is_destroyed(&self) -> bool {
        self.destroyed
    }

    /// Whether somebody is in it; who only holds a place does not count.
    pub fn is_used(&self) -> bool {
        let mut people = self.roster.iter();
        people.any(|person| !person.is_dummy()) || !self.subscriptions.is_empty()
    }

    /// Who is in it.
    pub fn people(&self) -> impl Iterator<Item = &Participant> {
        self.roster.iter()
    }

    /// Somebody who is in it.
    pub fn person(&self, id: &PersonId) -> Option<&Participant> {
        self.roster.get(id)
    }

    /// Checks that `connection` has joined as `id`. Returns whether it publishes.
    pub fn publishes(&self, id: &PersonId, connection: ConnectionId) -> Result<bool, Refusal> {
        self.roster.joined(id, connection)?;
        Ok(self.publications.get(id).is_some())
    }

    /// What somebody publishes, whether its media is up or not.
    pub fn publication(&self, id: &PersonId) -> Option<&Publication> {
        self.publications.get(id)
    }

    /// What somebody publishes whose media is up.
    pub fn published(&self, id: &PersonId) -> Option<&Publication> {
        self.publications.up(id)
    }

    /// Those whose media is up, in the order in which it came up.
    pub fn feeds(&self) -> impl Iterator<Item = &PersonId> {
        self.publications.in_order().map(|(feed, _)| feed)
    }

    /// Who has the floor.
    pub fn dominant(&self) -> Option<&PersonId> {
        self.speakers.dominant()
    }

    /// A subscription.
    pub fn subscriber(&self, key: ConnectionId) -> Option<&Subscriber> {
        self.subscriptions.get(key).ok()
    }

    /// How many m-lines of subscriptions receive a stream of somebody.
    pub fn receivers(&self, feed: &PersonId, stream: &Stream) -> usize {
        self.subscriptions.receivers(feed, stream)
    }

    /// Adds the room's placeholder publisher under an id that is free, if the room has one. Nobody is told of it.
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
