//! What this door tells itself at other nodes of a cluster about a participant: its description, so
//! that it has one identity, one session and the same tracks everywhere.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol::{DataTrackInfo, ParticipantInfo, SubscriptionPermission, TrackInfo};
use portunus_room::{PersonId, State};
use prost::Message;

use super::Hall;
use super::data_track::DataTrack;
use super::data_tracks::MAX_DATA_TRACKS;
use super::people::Person;
use super::track::Track;

/// The longest note with attributes and permissions, in bytes. An item of the cluster has to hold it.
const LONGEST: usize = 24 << 10;

/// The most data tracks of other nodes that a participant receives.
const MAX_RECEIVED: usize = 256;

/// The description of a participant at another node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Note {
    #[prost(message, optional, tag = "1")]
    info: Option<ParticipantInfo>,
    /// Who may subscribe to its tracks.
    #[prost(message, optional, tag = "2")]
    sharing: Option<SubscriptionPermission>,
    /// The data tracks of other nodes that it receives.
    #[prost(string, repeated, tag = "3")]
    receives: Vec<String>,
    /// When the home of the room let it in. Earlier versions tell none.
    #[prost(uint64, tag = "4")]
    ticket: u64,
}

impl Note {
    /// Reads a note. Returns `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let note = Note::decode(&*bytes).ok()?;
        let info = note.info.as_ref()?;
        (!info.sid.is_empty() && !info.identity.is_empty()).then_some(note)
    }

    /// Returns the note about a participant of this node.
    fn of(person: &Person, identity: &str, receives: Vec<String>) -> String {
        let tracks = person.tracks.iter().filter(|track| track.mid.is_some());
        let info = ParticipantInfo {
            sid: person.sid.clone(),
            identity: identity.to_owned(),
            state: person.state.into(),
            joined_at_ms: person.joined_ms,
            permission: Some(person.permission.clone()),
            kind: person.kind.into(),
            kind_details: person.kind_details.clone(),
            attributes: person.attributes.clone(),
            client_protocol: person.client_protocol,
            capabilities: person.capabilities.clone(),
            tracks: tracks.map(|track| track.info(None)).collect(),
            data_tracks: person
                .data_tracks
                .iter()
                .map(|it| it.info.clone())
                .collect(),
            ..ParticipantInfo::default()
        };
        let mut note = Note {
            info: Some(info),
            sharing: person.sharing.clone(),
            receives,
            ticket: person.ticket,
        };
        note.receives.truncate(MAX_RECEIVED);
        if note.encoded_len() > LONGEST {
            if let Some(info) = &mut note.info {
                info.attributes.clear();
            }
            // Without the list nobody at other nodes may subscribe.
            note.sharing = note.sharing.map(|_| SubscriptionPermission::default());
        }
        if note.encoded_len() > LONGEST
            && let Some(info) = &mut note.info
        {
            info.data_tracks.clear();
        }
        STANDARD.encode(note.encode_to_vec())
    }

    /// Takes what is known of a participant of another node.
    pub(super) fn apply(self, person: &mut Person) {
        let Some(mut info) = self.info else { return };
        person.ticket = self.ticket;
        person.sharing = self.sharing;
        person.receives = self.receives;
        person.receives.truncate(MAX_RECEIVED);
        let before = std::mem::take(&mut person.data_tracks);
        let data_tracks = std::mem::take(&mut info.data_tracks).into_iter();
        let data_tracks = data_tracks.take(MAX_DATA_TRACKS);
        person.data_tracks = data_tracks.map(|info| received(info, &before)).collect();
        person.state = info.state();
        person.kind = info.kind();
        person.kind_details = std::mem::take(&mut info.kind_details);
        person.sid = info.sid;
        person.identity = Some(info.identity);
        person.joined_ms = info.joined_at_ms;
        person.attributes = info.attributes;
        person.client_protocol = info.client_protocol;
        person.capabilities = info.capabilities;
        person.permission = info.permission.unwrap_or_default();
        let tracks = info.tracks.iter().map(|track| told(track, &person.tracks));
        person.tracks = tracks.collect();
    }
}

/// Returns when a participant of another node was let in, as its note says.
pub(crate) fn ticket_of(note: &str) -> u64 {
    Note::parse(note).map_or(0, |note| note.ticket)
}

/// Returns a data track of a participant at another node, with those who receive it already.
fn received(info: DataTrackInfo, known: &[DataTrack]) -> DataTrack {
    let before = known.iter().find(|it| it.info.sid == info.sid);
    DataTrack {
        receivers: before.map(|it| it.receivers.clone()).unwrap_or_default(),
        info,
    }
}

/// Reads a note, and makes tracks of it.
#[cfg(feature = "testing")]
pub(crate) fn read_note(text: &str) {
    let note = Note::parse(text).and_then(|note| note.info);
    for track in note.iter().flat_map(|info| &info.tracks) {
        drop(told(track, &[]));
    }
}

/// Returns a track of a participant at another node.
fn told(info: &TrackInfo, known: &[Track]) -> Track {
    let track = Track::elsewhere(info);
    let before = known.iter().find(|it| it.sid == track.sid);
    Track {
        subscribed: before.is_some_and(|it| it.subscribed),
        ..track
    }
}

impl Hall {
    /// Tells this door at other nodes of a participant, if there are any.
    pub(crate) fn note(&self, state: &mut State, id: &PersonId) {
        if self.rooms.others().is_none() {
            return;
        }
        if state.person(id).is_none_or(|person| person.is_elsewhere()) {
            return;
        }
        let note = {
            let people = self.people();
            let person = people.get(id);
            let person = person.filter(|it| it.member.is_some() || it.identity.is_some());
            person.map(|person| {
                let member = person.member.as_ref();
                let receives = member.map(|member| people.far_data_of(member));
                Note::of(person, &people.identity(id), receives.unwrap_or_default())
            })
        };
        if let Some(note) = note {
            state.set_note(id, Some(Arc::from(note)));
        }
    }

    /// The same for all participants of this node.
    pub(super) fn note_all(&self) {
        if self.rooms.others().is_none() {
            return;
        }
        let mut state = self.room.lock();
        let ids = self.people().described(&state);
        for id in ids {
            self.note(&mut state, &id);
        }
    }
}
