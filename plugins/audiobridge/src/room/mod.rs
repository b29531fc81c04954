//! A room: who is in it, and what is made of its mix.
//!
//! [`Roster`] keeps who is there, [`Forwarders`] where the mix is sent, [`Announcements`] which files are heard, and [`Listeners`]
//! who hears the mix without being there. The sound itself is made elsewhere: [`AudioRoom`] is the way to it.

mod announcements;
mod callers;
mod configure;
mod dialled;
mod forwarders;
mod hearing;
mod join;
mod leave;
mod listeners;
mod moderation;
mod notices;
mod participant;
mod recording;
mod roster;
mod state;
mod telling;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_audio::AudioRoom;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::{Format, Recorder, WeakSession};
use portunus_core::{Doors, Fields};
use portunus_resources::{AllowedTokens, Id, Resource};

use crate::config::ConfiguredRoom;
use crate::forward::StaticForwarder;
use crate::options::RoomOptions;
use crate::refusal::Refusal;

pub(crate) use callers::{PhoneEntrance, PhoneRooms};
pub(crate) use dialled::{MAX_DIALLED, ended_with_room};
pub(crate) use forwarders::StreamIds;
pub(crate) use hearing::hear;
pub(crate) use join::Join;
pub(crate) use participant::{Link, PeerLink, RecordWish, RtpLink, Who};
pub(crate) use recording::{record_mix, record_people};
pub(crate) use state::shown;

use participant::Participant;

use announcements::Announcements;
use dialled::DialledPhones;
use forwarders::Forwarders;
use listeners::Listeners;
use recording::MixFile;
use roster::{Audience, Roster};

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
    /// The forwarder of the configuration, to be saved with the room.
    pub(crate) configured: Option<StaticForwarder>,
    /// Nobody's sound is let in but that of administrators.
    muted: bool,
    roster: Roster,
    forwarders: Forwarders,
    announcements: Announcements,
    listeners: Listeners,
    mix_file: MixFile,
    pub(crate) phones: DialledPhones,
    sound: Arc<AudioRoom>,
    media: MediaPlane,
    recorder: Recorder,
    /// What recordings of participants belong to, as long as there are any.
    recorded: WeakSession,
    /// What their files are like; none: as it is configured.
    people_format: Option<Format>,
    /// Where whoever watches the server is told of what no client does.
    events: PluginEvents,
}

/// What a room needs of the server.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) sound: AudioRoom,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    pub(crate) events: PluginEvents,
    pub(crate) stream_ids: Arc<StreamIds>,
    pub(crate) doors: Doors,
}

impl Resource for Room {
    type Written = ConfiguredRoom;

    const MEMBER: &'static str = "room";

    const EDITABLE: &'static [&'static str] = &[
        "description",
        "is_private",
        "secret",
        "pin",
        "record_dir",
        "mjrs_dir",
    ];

    fn apply(&self, written: &ConfiguredRoom) {
        let mut options = written.options.options.clone();
        if options.description.is_empty() {
            options.description = format!("Room {}", self.id);
        }
        let mut state = self.lock();
        state.options = options;
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
            state.destroy(None);
            state.notify(None, || state.notice("destroyed").into());
        }
        is_ours
    }
}

impl Room {
    pub(crate) fn new(
        id: Id,
        options: RoomOptions,
        allowed: AllowedTokens,
        configured: Option<StaticForwarder>,
        means: Means,
    ) -> Self {
        let state = RoomState {
            id: id.clone(),
            options,
            allowed,
            destroyed: false,
            configured,
            muted: false,
            roster: Roster::default(),
            forwarders: Forwarders::new(means.stream_ids),
            announcements: Announcements::default(),
            listeners: Listeners::default(),
            mix_file: MixFile::default(),
            phones: DialledPhones::new(means.doors),
            sound: Arc::new(means.sound),
            media: means.media,
            recorder: means.recorder,
            recorded: WeakSession::default(),
            people_format: None,
            events: means.events,
        };
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
    /// Whether somebody is in it, or hears it.
    fn is_used(&self) -> bool {
        self.roster.len() > 0 || !self.listeners.is_empty() || self.phones.len() > 0
    }

    /// Checks that a request may manage the room.
    pub(crate) fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        Ok(self.options.access.check_secret(fields)?)
    }

    /// How many are in it.
    pub(crate) fn count(&self) -> usize {
        self.roster.len()
    }

    /// Whether nobody is heard but administrators.
    pub(crate) const fn is_muted(&self) -> bool {
        self.muted
    }

    /// The way to its sound.
    pub(crate) fn sound(&self) -> Arc<AudioRoom> {
        Arc::clone(&self.sound)
    }
}
