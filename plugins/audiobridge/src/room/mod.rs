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

use std::sync::Arc;

use portunus_audio::AudioRoom;
use portunus_core::Handle;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::{Format, Recorder, WeakSession};
use portunus_resources::{Access, AllowedTokens, Id, RoomContent};
use portunus_telephony::Telephony;

use crate::config::RoomSetup;
use crate::forward::StaticForwarder;
use crate::options::{OPTIONS, RoomOptions};

pub(crate) use callers::{PhoneEntrance, PhoneRooms};
pub(crate) use dialled::{MAX_DIALLED, ended_with_room, tell_of_call};
pub(crate) use forwarders::StreamIds;
pub(crate) use hearing::hear;
pub(crate) use join::{Join, format_named};
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

/// A room.
pub(crate) type Room = portunus_resources::Room<RoomState>;

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
    pub(crate) telephony: Telephony,
}

impl RoomContent for RoomState {
    type Options = RoomSetup;

    const PLUGIN: &'static str = "audiobridge";

    fn id(&self) -> &Id {
        &self.id
    }

    fn access(&self) -> &Access {
        &self.options.access
    }

    fn allowed(&mut self) -> &mut AllowedTokens {
        &mut self.allowed
    }

    fn options(&self) -> RoomSetup {
        RoomSetup {
            options: self.options.clone(),
            forwarder: self.configured.clone(),
        }
    }

    fn is_editable(key: &str) -> bool {
        OPTIONS.is_editable(key)
    }

    fn apply(&mut self, setup: RoomSetup) {
        self.options = setup.options.described(&self.id);
    }

    /// Whether somebody is in it, or hears it.
    fn is_used(&self) -> bool {
        self.roster.len() > 0 || !self.listeners.is_empty() || self.phones.len() > 0
    }

    fn has_ended(&self) -> bool {
        self.destroyed
    }

    fn end(&mut self, _: Option<&Handle>) {
        self.destroy(None);
    }

    fn events(&self) -> &PluginEvents {
        &self.events
    }
}

impl RoomState {
    pub(crate) fn new(id: Id, setup: RoomSetup, allowed: AllowedTokens, means: Means) -> Self {
        RoomState {
            options: setup.options.described(&id),
            id,
            allowed,
            destroyed: false,
            configured: setup.forwarder,
            muted: false,
            roster: Roster::default(),
            forwarders: Forwarders::new(means.stream_ids),
            announcements: Announcements::default(),
            listeners: Listeners::default(),
            mix_file: MixFile::default(),
            phones: DialledPhones::new(means.telephony),
            sound: Arc::new(means.sound),
            media: means.media,
            recorder: means.recorder,
            recorded: WeakSession::default(),
            people_format: None,
            events: means.events,
        }
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
