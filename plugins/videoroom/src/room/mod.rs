//! A room: what happens in it, part by part.
//!
//! The parts keep their own: [`Roster`] who is there, [`Publications`] what they send, [`Subscriptions`] what is received,
//! [`Speakers`] who has the floor, and [`News`] whom the others have not been told of. What happens in a room is here, as
//! the steps that it takes of them.

mod join;
mod leave;
mod notices;
mod people;
mod publish;
mod relay;
mod remote;
mod speech;
mod subscribe;
mod telling;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::Fields;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_resources::{AllowedTokens, Id, Ids, Resource};

use crate::config::ConfiguredRoom;
use crate::dummy::Dummy;
use crate::news::News;
use crate::options::RoomOptions;
use crate::publication::{Origin, Publications, dummy_streams};
use crate::refusal::Refusal;
use crate::roster::{MediaSettings, Party, Profile, Roster};
use crate::speakers::Speakers;
use crate::subscription::Subscriptions;

pub(crate) use join::Join;
pub(crate) use publish::moderation;
pub(crate) use remote::{NewRemote, hear};

/// A room. Whatever happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: Id,
    state: Mutex<RoomState>,
}

/// What is in a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: Id,
    pub(crate) options: RoomOptions,
    /// The tokens with which one may join.
    pub(crate) allowed: AllowedTokens,
    pub(crate) destroyed: bool,
    roster: Roster,
    publications: Publications,
    subscriptions: Subscriptions,
    speakers: Speakers,
    news: News,
    /// Where whoever watches the server is told of what no client does.
    events: PluginEvents,
}

impl Resource for Room {
    type Written = ConfiguredRoom;

    const MEMBER: &'static str = "room";

    const EDITABLE: &'static [&'static str] = &[
        "description",
        "is_private",
        "secret",
        "pin",
        "require_pvtid",
        "publishers",
        "bitrate",
        "fir_freq",
        "rec_dir",
        "record_format",
        "lock_record",
    ];

    fn apply(&self, written: &ConfiguredRoom) {
        let mut state = self.lock();
        state.set_options(written.options.clone());
        state.notify(None, || state.notice("edited").into());
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn is_private(&self) -> bool {
        self.lock().options.access.is_private
    }

    fn is_used(&self) -> bool {
        self.lock().is_used()
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        let mut state = self.lock();
        let is_ours = !state.destroyed && !state.is_used();
        if is_ours {
            state.destroy();
            state.notify(None, || state.notice("destroyed").into());
        }
        is_ours
    }
}

impl RoomState {
    /// Changes what can be edited.
    pub(crate) fn set_options(&mut self, mut options: RoomOptions) {
        if options.description.is_empty() {
            options.description = format!("Room {}", self.id);
        }
        let asks = options.fir_freq != self.options.fir_freq;
        self.options = options;
        if asks {
            self.keyframes_changed();
        }
    }
}

impl Room {
    pub(crate) fn new(
        id: Id,
        ids: Ids,
        options: RoomOptions,
        allowed: AllowedTokens,
        (media, recorder): (MediaPlane, Recorder),
        events: PluginEvents,
    ) -> Self {
        let mut state = RoomState {
            id: id.clone(),
            options,
            allowed,
            destroyed: false,
            roster: Roster::default(),
            publications: Publications::new(media, recorder),
            subscriptions: Subscriptions::default(),
            speakers: Speakers::default(),
            news: News::default(),
            events,
        };
        state.measure_speech();
        if let Some(dummy) = state.options.dummy.clone() {
            state.add_dummy(&dummy, ids);
        }
        Room {
            state: Mutex::new(state),
            id,
        }
    }

    /// What is in it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    /// Whether somebody is in it; who only holds a place does not count.
    fn is_used(&self) -> bool {
        let mut people = self.roster.iter();
        people.any(|person| !person.is_dummy()) || !self.subscriptions.is_empty()
    }

    /// Checks that a request may manage the room.
    pub(crate) fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        Ok(self.options.access.check_secret(fields)?)
    }

    /// Adds the room's dummy publisher, of which nobody is told.
    fn add_dummy(&mut self, dummy: &Dummy, ids: Ids) {
        let Ok(id) = self.roster.free_id(None, ids) else {
            return;
        };
        let profile = Profile {
            display: Some(Dummy::DISPLAY.to_owned()),
            metadata: None,
        };
        let settings = MediaSettings::default();
        self.roster.add(id.clone(), Party::Dummy, profile, settings);
        let e2ee = dummy.e2ee || self.options.require_e2ee;
        let streams = dummy_streams(dummy, &self.options);
        self.publications.start(&id, Origin::Dummy, e2ee, streams);
        self.media_up(&id);
    }
}
