//! What this door knows of a room besides the room itself.
//!
//! The lock of a hall is taken under that of its room, never the other way round.

mod options;
mod packets;
mod people;
mod reports;
mod show;
mod speaking;
mod track;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use livekit_protocol::{ParticipantUpdate, SpeakerInfo, SpeakersChanged, signal_response};
use portunus_room::{PersonId, Room, State};

use crate::frame::Frame;
use crate::ids::IdKind;
use crate::rpc::Calls;
use crate::webhook::Webhooks;
pub(crate) use options::RoomOptions;
pub(crate) use packets::{Packet, Packets};
pub(crate) use people::{People, Person};
pub(crate) use show::codecs;
use speaking::Speaking;
pub(crate) use track::Track;

/// A room of this door.
#[derive(Debug)]
pub(crate) struct Hall {
    /// Its name.
    pub(crate) name: String,
    /// Its id.
    pub(crate) sid: String,
    /// When it was made, in ms since 1970.
    pub(crate) created_ms: i64,
    /// Marks frames that this server makes itself in encrypted tracks.
    pub(crate) sif_trailer: Vec<u8>,
    /// The room.
    pub(crate) room: Arc<Room>,
    /// Whether this door has made the room, and ends it when nobody is there.
    pub(crate) is_own: bool,
    /// The webhooks.
    pub(crate) webhooks: Webhooks,
    /// Whether webhooks know that it has begun.
    is_started: AtomicBool,
    /// The calls of participants by the services.
    pub(crate) calls: Calls,
    options: Mutex<RoomOptions>,
    people: Mutex<People>,
    /// Since when nobody is there.
    empty: Mutex<Emptiness>,
    /// The reliable data messages of the last seconds.
    packets: Mutex<Packets>,
    /// Who was last told to speak.
    speakers: Mutex<Speaking>,
}

/// Since when nobody is in a room, and whether somebody was.
#[derive(Debug, Default)]
struct Emptiness {
    since: Option<Instant>,
    was_used: bool,
}

impl Hall {
    pub(crate) fn new(
        name: &str,
        room: Arc<Room>,
        is_own: bool,
        options: RoomOptions,
        webhooks: Webhooks,
    ) -> Self {
        Hall {
            name: name.to_owned(),
            sid: IdKind::Room.random(),
            created_ms: now_ms(),
            sif_trailer: rand::random::<[u8; 16]>().to_vec(),
            room,
            is_own,
            webhooks,
            is_started: AtomicBool::new(false),
            calls: Calls::default(),
            options: Mutex::new(options),
            people: Mutex::default(),
            empty: Mutex::default(),
            packets: Mutex::default(),
            speakers: Mutex::default(),
        }
    }

    /// Notes that somebody joins: from now on it ends when all have left.
    pub(crate) fn is_joined(&self) {
        let mut empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        (empty.since, empty.was_used) = (None, true);
    }

    /// Returns whether nobody needs it any more.
    pub(crate) fn is_over(&self) -> bool {
        let (is_destroyed, is_used) = {
            let state = self.room.lock();
            (state.is_destroyed(), state.is_used())
        };
        let mut empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        if is_used {
            (empty.since, empty.was_used) = (None, true);
            return false;
        }
        let since = *empty.since.get_or_insert_with(Instant::now);
        let limit = match empty.was_used {
            true => self.options().departure_timeout,
            false => self.options().empty_timeout,
        };
        is_destroyed || since.elapsed() >= limit
    }

    /// Locks the options.
    pub(crate) fn options(&self) -> MutexGuard<'_, RoomOptions> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks what is known of the participants.
    pub(crate) fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the data messages of the last seconds. No other lock is taken under this one.
    pub(crate) fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the clients who speaks, if that has changed.
    pub(crate) fn tell_speakers(&self) {
        let loud = Speaking::of(&self.room.lock());
        let mut speakers = self.speakers.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = speakers.change(loud);
        drop(speakers);
        if changes.is_empty() {
            return;
        }
        let people = self.people();
        let speaker = |(id, level): (PersonId, f32)| {
            Some(SpeakerInfo {
                sid: people.get(&id)?.sid.clone(),
                level,
                active: level > 0.0,
            })
        };
        let speakers: Vec<SpeakerInfo> = changes.into_iter().filter_map(speaker).collect();
        if speakers.is_empty() {
            return;
        }
        let changed = SpeakersChanged { speakers };
        let frame = Arc::new(Frame::new(signal_response::Message::SpeakersChanged(
            changed,
        )));
        for member in people.members() {
            member.out.send(&frame);
        }
    }

    /// Returns an update about one participant, or `None` if the others may not see it.
    pub(crate) fn update(&self, state: &State, id: &PersonId) -> Option<Arc<Frame>> {
        self.updates(state, &[id])
    }

    /// Returns an update about participants.
    pub(crate) fn updates(&self, state: &State, ids: &[&PersonId]) -> Option<Arc<Frame>> {
        let mut people = self.people();
        let shown = ids.iter().filter_map(|id| {
            people.change(id);
            people.info(state, id).filter(|_| !people.is_hidden(id))
        });
        let participants: Vec<_> = shown.collect();
        (!participants.is_empty()).then(|| frame_of(participants))
    }

    /// Tells all clients of this door about a participant, itself included.
    pub(crate) fn tell(&self, state: &State, id: &PersonId) {
        let Some(frame) = self.update(state, id) else {
            return;
        };
        for member in self.people().members() {
            member.out.send(&frame);
        }
    }
}

/// Returns an update about participants.
pub(crate) fn frame_of(participants: Vec<livekit_protocol::ParticipantInfo>) -> Arc<Frame> {
    let update = ParticipantUpdate {
        participants,
        ..ParticipantUpdate::default()
    };
    Arc::new(Frame::new(signal_response::Message::Update(update)))
}

/// Returns the time in ms since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or_default()
}
