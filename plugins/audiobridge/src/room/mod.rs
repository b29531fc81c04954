//! A room: its parts, and what takes several of them.
//!
//! Each part owns its state, and is given the other parts that it needs. What participants and
//! subscribers of events learn is decided here, in the `impl`s of [`RoomState`].

mod admission;
mod announcement_notices;
mod announcements;
mod callers;
mod changes;
mod departures;
mod far;
mod forwarders;
mod links;
mod listeners;
mod mix;
mod mix_recorder;
mod moderation;
mod notifications;
mod participant;
mod participant_stats;
mod people_recorder;
mod phones;
mod profile;
mod recording;
mod roster;
mod sound_events;
mod taps;

use std::sync::Arc;

use portunus_audio::AudioRoom;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{Handle, Object};
use portunus_resources::{Access, AllowedTokens, Id, RoomContent};
use portunus_telephony::Telephony;
use tokio::sync::Notify;

use crate::config::RoomSetup;
use crate::options::OPTIONS;

pub(crate) use admission::{Join, format_named};
pub(crate) use callers::{PhoneEntrance, PhoneRooms};
pub(crate) use forwarders::{NewForwarder, StreamIds};
pub(crate) use moderation::Suspension;
pub(crate) use participant::{Link, PeerLink, RecordWish, RtpLink, Who};
pub(crate) use participant_stats::stats_json;
pub(crate) use phones::{MAX_DIALLED, end_event, notify_call};
pub(crate) use profile::Profile;
pub(crate) use recording::{record_mix, record_people};
pub(crate) use sound_events::handle_sound_events;

use announcements::Announcements;
use far::FarListeners;
use forwarders::Forwarders;
use listeners::Listeners;
use mix::Mix;
use mix_recorder::MixRecorder;
use participant::Participant;
use people_recorder::PeopleRecorder;
use phones::Phones;
use roster::{Audience, Roster};

/// A room.
pub(crate) type Room = portunus_resources::Room<RoomState>;

/// The parts of a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) profile: Profile,
    roster: Roster,
    pub(crate) mix: Mix,
    pub(crate) people_recorder: PeopleRecorder,
    pub(crate) mix_recorder: MixRecorder,
    pub(crate) forwarders: Forwarders,
    pub(crate) announcements: Announcements,
    pub(crate) listeners: Listeners,
    far_listeners: FarListeners,
    pub(crate) phones: Phones,
    /// Publishes events that no client causes.
    events: PluginEvents,
    /// Wakes up who tells other nodes of the room.
    changes: Arc<Notify>,
}

/// The services of the server that a room uses.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) sound: AudioRoom,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    pub(crate) events: PluginEvents,
    pub(crate) stream_ids: Arc<StreamIds>,
    pub(crate) telephony: Telephony,
    pub(crate) changes: Arc<Notify>,
}

impl RoomContent for RoomState {
    type Options = RoomSetup;

    const PLUGIN: &'static str = "audiobridge";

    fn id(&self) -> &Id {
        self.profile.id()
    }

    fn access(&self) -> &Access {
        &self.profile.options().access
    }

    fn allowed(&mut self) -> &mut AllowedTokens {
        self.profile.allowed_mut()
    }

    fn options(&self) -> RoomSetup {
        self.profile.setup()
    }

    fn is_editable(key: &str) -> bool {
        OPTIONS.is_editable(key)
    }

    fn apply(&mut self, setup: RoomSetup) {
        self.profile.apply(setup);
    }

    fn is_used(&self) -> bool {
        let listeners = self
            .listeners
            .len()
            .saturating_add(self.far_listeners.len());
        self.roster.len() > 0 || listeners > 0 || self.phones.len() > 0
    }

    fn has_ended(&self) -> bool {
        self.profile.has_ended()
    }

    fn end(&mut self, _: Option<&Handle>) {
        self.destroy(None);
    }

    fn events(&self) -> &PluginEvents {
        &self.events
    }
}

impl RoomState {
    pub(crate) fn new(
        id: Id,
        setup: RoomSetup,
        allowed: AllowedTokens,
        services: Services,
    ) -> Self {
        let Services {
            sound,
            media,
            recorder,
            events,
            stream_ids,
            telephony,
            changes,
        } = services;
        RoomState {
            profile: Profile::new(id, setup, allowed),
            roster: Roster::default(),
            mix: Mix::new(sound),
            people_recorder: PeopleRecorder::new(recorder, media.clone()),
            mix_recorder: MixRecorder::default(),
            forwarders: Forwarders::new(stream_ids, media),
            announcements: Announcements::default(),
            listeners: Listeners::default(),
            far_listeners: FarListeners::default(),
            phones: Phones::new(telephony),
            events,
            changes,
        }
    }

    /// Wakes up who tells other nodes of the room.
    fn changed(&self) {
        self.changes.notify_one();
    }

    /// Returns the members of its entry in lists, besides its id.
    pub(crate) fn listed(&self) -> Object {
        let listeners = self
            .listeners
            .len()
            .saturating_add(self.far_listeners.len());
        self.profile
            .options()
            .listed()
            .with("muted", self.mix.is_muted())
            .with("num_participants", self.count())
            .with_some("num_listeners", Some(listeners).filter(|count| *count > 0))
            .with_some("listening_in", self.taps().listed())
    }

    /// The number of participants.
    pub(crate) fn count(&self) -> usize {
        self.roster.len()
    }

    /// Returns the recording of the mix that the room starts with.
    pub(crate) fn first_recording(&mut self) -> mix_recorder::PendingRecording {
        self.mix_recorder.next(&self.profile)
    }

    /// Turns on the recording of the mix, see [`MixRecorder::turn_on`].
    pub(crate) fn turn_on_recording(
        &mut self,
        name: Option<String>,
        dir: Option<String>,
    ) -> Option<mix_recorder::PendingRecording> {
        self.mix_recorder.turn_on(&mut self.profile, name, dir)
    }
}
