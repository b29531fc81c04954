//! What this door knows of a room besides the room itself.
//!
//! The lock of a hall is taken under that of its room, never the other way round.

mod batch;
#[cfg(test)]
mod cluster;
mod data;
mod data_track;
mod data_tracks;
mod departed;
mod directory;
mod entries;
mod far;
mod input;
mod member;
mod messages;
mod nonces;
mod note;
mod options;
mod others;
mod out;
mod packets;
mod people;
mod reports;
mod room_note;
mod signature;
mod speaking;
mod track;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use livekit_protocol::{
    CreateRoomRequest, ParticipantInfo, ParticipantUpdate, SpeakerInfo, SpeakersChanged,
    signal_response,
};
use portunus_room::{OtherNodes, PersonId, Room, Rooms, State};

use crate::frame::Frame;
use crate::refusals::Refusals;
use crate::rpc::Calls;
use batch::Batch;
#[cfg(test)]
pub(crate) use cluster::room_of_cluster;
pub(crate) use data::{LOSSY, MAX_PACKET, RELIABLE};
pub(crate) use data_track::Receiver;
use departed::Departed;
pub(crate) use directory::Halls;
use entries::Barred;
pub(crate) use entries::{Entry, EntryRefusal, farewell, is_displaced};
pub(crate) use far::{FarContent, FarMessage};
pub(crate) use input::{Event, Input, Move};
pub(crate) use member::{Described, Member, Reception, Role};
pub(crate) use messages::codecs;
use nonces::Nonces;
pub(crate) use nonces::nonce;
#[cfg(feature = "testing")]
pub(crate) use note::read_note;
pub(crate) use note::ticket_of;
pub(crate) use options::RoomOptions;
use others::Others;
pub(crate) use others::watch_others;
pub(crate) use out::{Wire, leave};
pub(crate) use packets::Packet;
use packets::Packets;
pub(crate) use people::{People, Person};
pub(crate) use reports::Reports;
use room_note::RoomIdentity;
pub(crate) use room_note::RoomNote;
#[cfg(feature = "testing")]
pub(crate) use signature::signed_packet;
use speaking::Speaking;
pub(crate) use track::{Track, codec_of};

/// A room of this door.
#[derive(Debug)]
pub(crate) struct Hall {
    /// Its name.
    pub(crate) name: String,
    /// Its id, and when it was made.
    identity: Mutex<RoomIdentity>,
    /// Marks frames that this server makes itself in encrypted tracks.
    pub(crate) sif_trailer: Vec<u8>,
    /// The room.
    pub(crate) room: Arc<Room>,
    /// Where the other nodes of a cluster are.
    rooms: Rooms,
    /// Whether this door has made the room, and ends it when nobody is there.
    pub(crate) is_own: bool,
    /// The bad input of its clients.
    pub(crate) refusals: Arc<Refusals>,
    /// Who wants to know what happens.
    reports: Reports,
    /// Whether they know that it has begun.
    is_started: AtomicBool,
    /// Whether another node tells webhooks of the room.
    is_followed: AtomicBool,
    /// The calls of participants by the services.
    pub(crate) calls: Calls,
    options: Mutex<RoomOptions>,
    /// Whether participants are numbers for other doors.
    has_numbers: bool,
    people: Mutex<People>,
    /// Since when nobody is there.
    empty: Mutex<Emptiness>,
    /// The reliable data messages of the last seconds.
    packets: Mutex<Packets>,
    /// The nonces of the last data messages.
    nonces: Mutex<Nonces>,
    /// Who was last told to speak.
    speakers: Mutex<Speaking>,
    /// The updates that are put off.
    batch: Mutex<Batch>,
    /// Who has left.
    departed: Mutex<Departed>,
    /// The participants without a client of this door that webhooks know of.
    others: Mutex<Others>,
    /// The sessions that cannot join any more.
    barred: Mutex<Barred>,
    /// When the last client was let in.
    last_ticket: AtomicU64,
}

/// Since when nobody is in a room, and whether somebody was.
#[derive(Debug, Default)]
struct Emptiness {
    since: Option<Instant>,
    was_used: bool,
}

/// What a new hall is like.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Whether this door has made the room, and ends it when nobody is there.
    pub(crate) is_own: bool,
    /// Whether participants are numbers for other doors.
    pub(crate) has_numbers: bool,
    pub(crate) options: RoomOptions,
    /// Where the other nodes of a cluster are.
    pub(crate) rooms: Rooms,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) reports: Reports,
}

impl Hall {
    pub(crate) fn new(name: &str, room: Arc<Room>, setup: Setup) -> Self {
        let Setup {
            is_own,
            has_numbers,
            options,
            rooms,
            refusals,
            reports,
        } = setup;
        Hall {
            name: name.to_owned(),
            identity: Mutex::new(RoomIdentity::new()),
            sif_trailer: rand::random::<[u8; 16]>().to_vec(),
            room,
            rooms,
            is_own,
            refusals,
            reports,
            is_started: AtomicBool::new(false),
            is_followed: AtomicBool::new(false),
            calls: Calls::default(),
            options: Mutex::new(options),
            has_numbers,
            people: Mutex::default(),
            empty: Mutex::default(),
            packets: Mutex::default(),
            nonces: Mutex::default(),
            speakers: Mutex::default(),
            batch: Mutex::default(),
            departed: Mutex::default(),
            others: Mutex::default(),
            barred: Mutex::default(),
            last_ticket: AtomicU64::default(),
        }
    }

    /// Returns the other nodes of the cluster, if there is one.
    pub(crate) fn others(&self) -> Option<&Arc<dyn OtherNodes>> {
        self.rooms.others()
    }

    /// Notes that somebody has joined.
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

    /// Returns the id in the room of the participant with this identity.
    pub(crate) fn id_of(&self, identity: &str) -> PersonId {
        person_id(identity, self.has_numbers)
    }

    /// Locks what is known of the participants.
    pub(crate) fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the data messages of the last seconds. No other lock is taken under this one.
    pub(crate) fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the nonce of a data message. Returns whether it is a repeated one.
    fn is_repeated(&self, packet: &Packet) -> bool {
        let Some(nonce) = packet.nonce else {
            return false;
        };
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.is_repeated(nonce)
    }

    fn departed(&self) -> MutexGuard<'_, Departed> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last descriptions of those who have left, for a client that resumes.
    pub(crate) fn gone(&self) -> Vec<ParticipantInfo> {
        let people = self.people();
        self.departed()
            .gone(|identity| people.get(&self.id_of(identity)).is_some())
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the clients who speaks, if that has changed.
    pub(crate) fn send_speakers(&self) {
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
        if self.rooms.others().is_some() {
            // This door at other nodes is told, too.
            state.door_changed();
        }
        (!participants.is_empty()).then(|| frame_of(participants))
    }

    /// Changes the metadata of the room at all nodes. Returns the description.
    pub(crate) fn change_metadata(&self, metadata: String) -> livekit_protocol::Room {
        self.options().metadata = metadata;
        self.metadata_is_known();
        self.options_changed();
        self.send_room()
    }

    /// Takes the metadata of the room that another node has changed.
    pub(super) fn set_metadata(&self, metadata: String) {
        let before = std::mem::replace(&mut self.options().metadata, metadata.clone());
        self.metadata_is_known();
        if before != metadata {
            self.note_room();
            self.send_room();
        }
    }

    /// Takes what a request for a room that exists may change.
    pub(crate) fn update_options(&self, request: &CreateRoomRequest) {
        let before = self.options().clone();
        self.options().update(request);
        if before != *self.options() {
            self.options_changed();
        }
    }

    /// Tells all clients of this door about a participant, itself included.
    pub(crate) fn send_update(&self, state: &State, id: &PersonId) {
        if let Some(frame) = self.update(state, id) {
            for member in self.people().members() {
                member.out.send(&frame);
            }
            return;
        }
        // One that others do not see sees itself.
        let mut people = self.people();
        let member = people.get(id).and_then(|person| person.member.clone());
        if let (Some(member), Some(info)) = (member, people.info(state, id)) {
            member.out.send(&frame_of(vec![info]));
        }
    }
}

/// Returns the id in rooms of the participant with this identity.
pub(crate) fn person_id(identity: &str, has_numbers: bool) -> PersonId {
    match has_numbers {
        true => numbered(identity).into(),
        false => identity.into(),
    }
}

/// Returns an update about participants.
pub(crate) fn frame_of(participants: Vec<ParticipantInfo>) -> Arc<Frame> {
    let update = ParticipantUpdate { participants };
    Arc::new(Frame::new(signal_response::Message::Update(update)))
}

/// Returns the time in ms since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or_default()
}

/// Returns the number that stands for an identity: itself, if it is one, or one below 2^53 that
/// follows from it.
fn numbered(identity: &str) -> String {
    if identity
        .parse::<u64>()
        .is_ok_and(|number| number > 0 && number.to_string() == identity)
    {
        return identity.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    (1 + hasher.finish() % ((1 << 53) - 1)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_one_number() {
        assert_eq!(numbered("1234"), "1234");
        for text in ["al", "01234", "0", "", "-1", "1e3"] {
            let number = numbered(text).parse::<u64>();
            assert!(
                number.is_ok_and(|number| (1..1 << 53).contains(&number)),
                "{text}"
            );
            assert_eq!(numbered(text), numbered(text));
        }
        assert_ne!(numbered("al"), numbered("bo"));
    }
}
