//! What this door tells itself at other nodes of a cluster about a participant: its description, so
//! that it has one identity, one session and the same tracks everywhere.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol::{ParticipantInfo, SubscriptionPermission, TrackInfo};
use portunus_room::{PersonId, State};
use prost::Message;

use super::Hall;
use super::people::Person;
use super::track::Track;

/// The longest note with attributes and permissions, in bytes. An item of the cluster has to hold it.
const LONGEST: usize = 24 << 10;

/// The description of a participant at another node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Note {
    #[prost(message, optional, tag = "1")]
    info: Option<ParticipantInfo>,
    /// Who may subscribe to its tracks.
    #[prost(message, optional, tag = "2")]
    sharing: Option<SubscriptionPermission>,
}

impl Note {
    /// Reads a note. Returns `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let note = Note::decode(&*bytes).ok()?;
        let info = note.info.as_ref()?;
        (!info.sid.is_empty() && !info.identity.is_empty()).then_some(note)
    }

    /// Returns the note about a participant of this door.
    fn of(person: &Person, identity: &str) -> String {
        let tracks = person.tracks.iter().filter(|track| track.mid.is_some());
        let info = ParticipantInfo {
            sid: person.sid.clone(),
            identity: identity.to_owned(),
            state: person.state.into(),
            joined_at_ms: person.joined_ms,
            permission: Some(person.permission.clone()),
            kind: person.kind.into(),
            attributes: person.attributes.clone(),
            client_protocol: person.client_protocol,
            capabilities: person.capabilities.clone(),
            tracks: tracks.map(|track| track.info(None)).collect(),
            ..ParticipantInfo::default()
        };
        let mut note = Note {
            info: Some(info),
            sharing: person.sharing.clone(),
        };
        if note.encoded_len() > LONGEST {
            if let Some(info) = &mut note.info {
                info.attributes.clear();
            }
            // Without the list nobody at other nodes may subscribe.
            note.sharing = note.sharing.map(|_| SubscriptionPermission::default());
        }
        STANDARD.encode(note.encode_to_vec())
    }

    /// Takes what is known of a participant of another node.
    pub(super) fn apply(self, person: &mut Person) {
        let Some(info) = self.info else { return };
        person.sharing = self.sharing;
        person.state = info.state();
        person.kind = info.kind();
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
        let note = {
            let people = self.people();
            let person = people.get(id).filter(|person| person.member.is_some());
            person.map(|person| Note::of(person, &people.identity(id)))
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
        let ids: Vec<PersonId> = self.people().members().map(|it| it.id.clone()).collect();
        for id in ids {
            self.note(&mut state, &id);
        }
    }
}
