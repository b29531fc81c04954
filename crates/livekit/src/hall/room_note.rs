//! What this door tells itself at other nodes of a cluster about a room: its id and its options, so
//! that they are the same everywhere.

use std::cmp::Reverse;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol::{Room, RoomUpdate, signal_response};
use portunus_room::State;
use prost::Message;

use super::messages::codecs;
use super::{Hall, now_ms};
use crate::frame::Frame;
use crate::ids::IdKind;

/// The longest note with metadata, in bytes. An item of the cluster has to hold it.
const LONGEST: usize = 24 << 10;

/// The description of a room.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RoomNote {
    #[prost(message, optional, tag = "1")]
    room: Option<Room>,
    /// How often it was changed. The highest number counts.
    #[prost(uint64, tag = "2")]
    version: u64,
    #[prost(bool, tag = "3")]
    sync_streams: bool,
    /// Whether the metadata is left out, since it is too long.
    #[prost(bool, tag = "4")]
    is_cut: bool,
    /// In the answer to a client that may join: when it was let in.
    #[prost(uint64, tag = "5")]
    pub(crate) ticket: u64,
}

/// The parts of a room by which nodes know that it is the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RoomIdentity {
    /// Its id.
    pub(super) sid: String,
    /// When it was made, in ms since 1970.
    pub(super) created_ms: i64,
    /// How often its options were changed.
    version: u64,
    /// Whether only other nodes know the metadata.
    is_cut: bool,
}

impl RoomIdentity {
    /// Returns that of a new room.
    pub(super) fn new() -> Self {
        RoomIdentity {
            sid: IdKind::Room.random(),
            created_ms: now_ms(),
            version: 0,
            is_cut: false,
        }
    }

    /// Of two descriptions of a room the greater one counts: the later one, or that of the node that
    /// has used the room for longer.
    fn order(&self) -> (u64, Reverse<(i64, &str)>) {
        (self.version, Reverse((self.created_ms, &self.sid)))
    }
}

impl RoomNote {
    /// Reads a note. Returns `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        RoomNote::read(&STANDARD.decode(text).ok()?)
    }

    /// Reads the bytes of a note. Returns `None` if it is malformed.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let note = RoomNote::decode(bytes).ok()?;
        let room = note.room.as_ref()?;
        (!room.sid.is_empty()).then_some(note)
    }

    /// Returns whether the metadata is left out.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the description of the room, without its participants.
    pub(crate) fn into_room(self) -> Room {
        self.room.unwrap_or_default()
    }

    fn identity(&self) -> RoomIdentity {
        let room = self.room.as_ref();
        RoomIdentity {
            sid: room.map(|room| room.sid.clone()).unwrap_or_default(),
            created_ms: room.map_or(0, |room| room.creation_time_ms),
            version: self.version,
            is_cut: self.is_cut,
        }
    }

    /// Returns the note that counts.
    pub(crate) fn latest(notes: &[Arc<str>]) -> Option<Self> {
        let notes = notes.iter().filter_map(|note| RoomNote::parse(note));
        notes.reduce(
            |one, other| match one.identity().order() < other.identity().order() {
                true => other,
                false => one,
            },
        )
    }
}

impl Hall {
    /// Returns the id of the room, which is the same at all nodes.
    pub(crate) fn sid(&self) -> String {
        self.identity().sid
    }

    pub(super) fn identity(&self) -> RoomIdentity {
        let identity = self.identity.lock();
        identity.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the description of the room for other nodes.
    pub(crate) fn room_note(&self, state: &State) -> RoomNote {
        let identity = self.identity();
        let options = self.options();
        let mut room = Room {
            sid: identity.sid,
            name: self.name.clone(),
            creation_time: identity.created_ms / 1_000,
            creation_time_ms: identity.created_ms,
            enabled_codecs: codecs(state),
            ..Room::default()
        };
        options.describe(&mut room);
        RoomNote {
            room: Some(room),
            version: identity.version,
            sync_streams: options.sync_streams,
            is_cut: identity.is_cut,
            ticket: 0,
        }
    }

    /// Lets other nodes know the room. The caller does not hold the lock of the room.
    pub(crate) fn note_room(&self) {
        if self.rooms.others().is_none() {
            return;
        }
        let mut state = self.room.lock();
        let mut note = self.room_note(&state);
        if note.encoded_len() > LONGEST {
            note.is_cut = true;
            if let Some(room) = &mut note.room {
                room.metadata.clear();
            }
        }
        let text = STANDARD.encode(note.encode_to_vec());
        state.set_room_note(Some(Arc::from(text)));
    }

    /// Notes that the options were changed here, and lets other nodes know.
    pub(super) fn options_changed(&self) {
        {
            let identity = self.identity.lock();
            let mut identity = identity.unwrap_or_else(PoisonError::into_inner);
            identity.version = identity.version.saturating_add(1);
        }
        self.note_room();
    }

    /// Notes that this node knows the metadata.
    pub(super) fn metadata_is_known(&self) {
        let identity = self.identity.lock();
        identity.unwrap_or_else(PoisonError::into_inner).is_cut = false;
    }

    /// Takes what another node says of the room, if that counts: the home of the room counts unless
    /// something was changed here since. Tells the clients of this door.
    pub(crate) fn take_room_note(&self, note: RoomNote, is_of_home: bool) {
        let theirs = note.identity();
        {
            let identity = self.identity.lock();
            let mut identity = identity.unwrap_or_else(PoisonError::into_inner);
            let counts = match is_of_home {
                true => theirs.version >= identity.version && theirs != *identity,
                false => theirs.order() > identity.order(),
            };
            if !counts {
                return;
            }
            *identity = theirs;
        }
        let (is_cut, sync_streams) = (note.is_cut, note.sync_streams);
        let room = note.into_room();
        {
            let mut options = self.options();
            options.empty_timeout = Duration::from_secs(room.empty_timeout.into());
            options.departure_timeout = Duration::from_secs(room.departure_timeout.into());
            options.max_participants = room.max_participants;
            options.sync_streams |= sync_streams;
            if !is_cut {
                options.metadata = room.metadata;
            }
        }
        self.note_room();
        self.send_room();
    }

    /// Tells the clients of this door what the room is like. Returns that.
    pub(super) fn send_room(&self) -> Room {
        let room = {
            let state = self.room.lock();
            self.info(&state)
        };
        let update = RoomUpdate {
            room: Some(room.clone()),
        };
        let frame = Arc::new(Frame::new(signal_response::Message::RoomUpdate(update)));
        for member in self.people().members() {
            member.out.send(&frame);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn note(sid: &str, created_ms: i64, version: u64) -> Arc<str> {
        let note = RoomNote {
            room: Some(Room {
                sid: sid.to_owned(),
                creation_time_ms: created_ms,
                ..Room::default()
            }),
            version,
            sync_streams: false,
            is_cut: false,
            ticket: 0,
        };
        STANDARD.encode(note.encode_to_vec()).into()
    }

    #[test]
    fn the_latest_change_counts_and_then_the_oldest_room() {
        let latest = |notes: &[Arc<str>]| RoomNote::latest(notes).map(|it| it.into_room().sid);
        let (old, new) = (note("RM_old", 1, 0), note("RM_new", 2, 0));
        assert_eq!(
            latest(&[new.clone(), old.clone()]),
            Some("RM_old".to_owned())
        );
        let changed = note("RM_new", 2, 1);
        assert_eq!(latest(&[old, changed, new]), Some("RM_new".to_owned()));
        assert_eq!(latest(&["?".into(), note("", 1, 1)]), None);
    }
}
