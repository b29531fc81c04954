//! The participants of a room as this door knows them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use livekit_protocol::{
    ConnectionQuality, DisconnectReason, ParticipantInfo, ParticipantPermission,
    SubscriptionPermission, participant_info,
};
use portunus_room::{PersonId, Profile, State, Stream};
use portunus_rtp::Mid;
use portunus_sdp::Kind;

use super::data_track::{DataTrack, Receiver};
use super::member::Member;
use super::note::Note;
use super::now_ms;
use super::track::Track;
use crate::frame;
use crate::ids::IdKind;

/// The participants of a room: those of this door, and those of others that were shown to it.
#[derive(Debug, Default)]
pub(crate) struct People {
    persons: HashMap<PersonId, Person>,
    /// Those who publish data tracks, or did.
    data_publishers: BTreeSet<PersonId>,
    /// The nodes that receive data tracks of this one, by the ids of the tracks.
    data_nodes: HashMap<String, BTreeSet<String>>,
}

/// A participant.
#[derive(Debug)]
pub(crate) struct Person {
    /// The id of its session.
    pub(crate) sid: String,
    /// When it was let in ([`super::entries`]). 0 if that is not known.
    pub(crate) ticket: u64,
    /// Its client, if it is of this door.
    pub(crate) member: Option<Arc<Member>>,
    /// Its identity, if it is not its id in the room. That of a client is known by the client.
    pub(crate) identity: Option<String>,
    /// Its state.
    pub(crate) state: participant_info::State,
    /// When it joined, in ms since 1970.
    pub(crate) joined_ms: i64,
    /// Its kind.
    pub(crate) kind: participant_info::Kind,
    /// Details of its kind.
    pub(crate) kind_details: Vec<i32>,
    /// Its attributes.
    pub(crate) attributes: HashMap<String, String>,
    /// Its permissions.
    pub(crate) permission: ParticipantPermission,
    /// The protocol between clients that its program knows.
    pub(crate) client_protocol: i32,
    /// The features of its program.
    pub(crate) capabilities: Vec<i32>,
    /// Who may subscribe to its tracks. `None` means all.
    pub(crate) sharing: Option<SubscriptionPermission>,
    /// The quality of its connection, once known.
    pub(crate) quality: Option<ConnectionQuality>,
    /// Why it has left.
    pub(crate) disconnect_reason: DisconnectReason,
    /// Its tracks.
    pub(crate) tracks: Vec<Track>,
    /// Its data tracks.
    pub(crate) data_tracks: Vec<DataTrack>,
    /// The data tracks that it receives, if it is at another node.
    pub(crate) receives: Vec<String>,
    /// What this door tells of it at another node, if it is there.
    noted: Option<Arc<str>>,
    /// The number of its last change.
    version: u32,
    /// Its encoded description, for the `join` of others.
    written: Option<Written>,
}

/// The cached encoding of a participant that publishes nothing. Each change of it drops the cache.
#[derive(Debug)]
struct Written {
    /// The profile that is encoded.
    profile: Profile,
    field: Bytes,
}

impl Person {
    /// Returns a participant who joins by this door.
    pub(crate) fn new(member: Arc<Member>) -> Self {
        Person {
            sid: member.sid.clone(),
            ticket: member.ticket,
            member: Some(member),
            state: participant_info::State::Joining,
            ..Person::foreign()
        }
    }

    /// Returns a participant without a client that the services bring.
    pub(crate) fn guest(
        identity: String,
        kind: participant_info::Kind,
        attributes: HashMap<String, String>,
    ) -> Self {
        Person {
            identity: Some(identity),
            kind,
            attributes,
            ..Person::foreign()
        }
    }

    /// Returns a participant of another door.
    fn foreign() -> Self {
        Person {
            sid: IdKind::Participant.random(),
            ticket: 0,
            member: None,
            identity: None,
            state: participant_info::State::Active,
            joined_ms: now_ms(),
            kind: participant_info::Kind::Standard,
            kind_details: Vec::new(),
            attributes: HashMap::new(),
            permission: ParticipantPermission {
                can_subscribe: true,
                can_publish: true,
                can_publish_data: true,
                ..ParticipantPermission::default()
            },
            client_protocol: 0,
            capabilities: Vec::new(),
            sharing: None,
            quality: None,
            disconnect_reason: DisconnectReason::UnknownReason,
            tracks: Vec::new(),
            data_tracks: Vec::new(),
            receives: Vec::new(),
            noted: None,
            version: 0,
            written: None,
        }
    }

    /// Returns the identity of a participant with this id.
    fn identity_at(&self, id: &PersonId) -> String {
        match (&self.member, &self.identity) {
            (Some(member), _) => member.identity.clone(),
            (None, Some(identity)) => identity.clone(),
            (None, None) => id.to_string(),
        }
    }

    /// Returns whether it is an agent.
    pub(crate) fn is_agent(&self) -> bool {
        self.permission.agent || self.kind == participant_info::Kind::Agent
    }

    /// Returns the track of an m-line.
    pub(crate) fn track_of(&self, mid: Mid) -> Option<&Track> {
        let mut tracks = self.tracks.iter();
        tracks.find(|track| track.mids().any(|own| own == mid))
    }

    /// Returns the track of an m-line to change it.
    pub(crate) fn track_of_mut(&mut self, mid: Mid) -> Option<&mut Track> {
        let mut tracks = self.tracks.iter_mut();
        tracks.find(|track| track.mids().any(|own| own == mid))
    }

    /// Returns the track of a stream. Streams of other doors become tracks when they are seen.
    fn track_of_stream(&mut self, stream: &Stream, nth: usize) -> Option<&Track> {
        let known = self.tracks.iter();
        let index = known.into_iter().position(|it| it.mid == Some(stream.mid));
        if index.is_none() && self.member.is_none() {
            self.tracks.push(Track::foreign(stream, nth, &self.sid));
            return self.tracks.last();
        }
        self.tracks.get(index?)
    }
}

impl People {
    /// Adds a participant of this door.
    pub(crate) fn add(&mut self, id: &PersonId, person: Person) {
        self.persons.insert(id.clone(), person);
    }

    /// Forgets a participant.
    pub(crate) fn remove(&mut self, id: &PersonId) -> Option<Person> {
        self.persons.remove(id)
    }

    pub(crate) fn get(&self, id: &PersonId) -> Option<&Person> {
        self.persons.get(id)
    }

    /// Notes that a participant publishes data tracks.
    pub(crate) fn publishes_data(&mut self, id: &PersonId) {
        self.data_publishers.insert(id.clone());
    }

    /// Returns the participants that publish data tracks.
    pub(crate) fn data_publishers(&mut self) -> Vec<PersonId> {
        let persons = &self.persons;
        self.data_publishers.retain(|id| {
            let person = persons.get(id);
            person.is_some_and(|person| !person.data_tracks.is_empty())
        });
        self.data_publishers.iter().cloned().collect()
    }

    pub(crate) fn get_mut(&mut self, id: &PersonId) -> Option<&mut Person> {
        let person = self.persons.get_mut(id)?;
        person.written = None;
        Some(person)
    }

    /// Returns a participant of the room. One of another door is added when it is seen first.
    fn seen(&mut self, state: &State, id: &PersonId) -> Option<&mut Person> {
        let in_room = state.person(id).filter(|person| !person.is_dummy())?;
        let person = self.persons.entry(id.clone());
        let person = person.or_insert_with(|| Person {
            // It is the same at all nodes.
            sid: IdKind::Participant.derived((state.name(), id.as_str(), in_room.session())),
            ..Person::foreign()
        });
        if person.member.is_none()
            && in_room.is_elsewhere()
            && in_room.note() != person.noted.as_ref()
        {
            person.noted = in_room.note().cloned();
            person.written = None;
            let note = in_room.note().and_then(|note| Note::parse(note));
            if let Some(note) = note {
                note.apply(person);
            }
        }
        Some(person)
    }

    /// Takes what is known of the participants at other nodes. Returns those of whom something else
    /// is known than before.
    pub(super) fn see_others(&mut self, state: &State) -> Vec<PersonId> {
        let mut changed = Vec::new();
        let elsewhere = state.people().filter(|person| person.is_elsewhere());
        for person in elsewhere {
            let id = person.id();
            let known = self.persons.get(id);
            let is_new = known.is_none();
            let is_changed = known.is_some_and(|known| known.noted.as_ref() != person.note());
            if is_new || is_changed {
                self.seen(state, id);
                let person = self.persons.get(id);
                if person.is_some_and(|person| !person.data_tracks.is_empty()) {
                    self.data_publishers.insert(id.clone());
                    if is_new {
                        changed.push(id.clone());
                    }
                }
            }
            if is_changed {
                changed.push(id.clone());
            }
        }
        self.find_data_nodes(state);
        changed
    }

    /// Finds the nodes that receive data tracks.
    fn find_data_nodes(&mut self, state: &State) {
        self.data_nodes.clear();
        let elsewhere = state.people().filter_map(|person| {
            let node = person.node()?;
            Some((node, self.persons.get(person.id())?))
        });
        for (node, person) in elsewhere {
            for track in &person.receives {
                let nodes = self.data_nodes.entry(track.clone()).or_default();
                nodes.insert(node.to_owned());
            }
        }
    }

    /// Returns the clients of this door that receive a data track of another node.
    pub(super) fn receivers_of(&self, track: &str) -> Vec<Receiver> {
        let publishers = self.data_publishers.iter();
        let publishers = publishers.filter_map(|id| self.persons.get(id));
        let far = publishers.filter(|person| person.member.is_none());
        let mut tracks = far.flat_map(|person| &person.data_tracks);
        let track = tracks.find(|it| it.info.sid == track);
        track
            .map(|track| track.receivers.clone())
            .unwrap_or_default()
    }

    /// Returns the nodes that receive a data track.
    pub(super) fn data_nodes(&self, track: &str) -> Option<&BTreeSet<String>> {
        self.data_nodes.get(track)
    }

    /// Returns the data tracks of other nodes that a client of this door receives.
    pub(super) fn far_data_of(&self, member: &Arc<Member>) -> Vec<String> {
        let publishers = self.data_publishers.iter();
        let publishers = publishers.filter_map(|id| self.persons.get(id));
        let far = publishers.filter(|person| person.member.is_none());
        let tracks = far.flat_map(|person| &person.data_tracks);
        let own = tracks.filter(|track| {
            let mut receivers = track.receivers.iter();
            receivers.any(|it| Arc::ptr_eq(&it.member, member))
        });
        own.map(|track| track.info.sid.clone()).collect()
    }

    /// Returns those at this node whom this door describes to others: its clients and guests.
    pub(super) fn described(&self, state: &State) -> Vec<PersonId> {
        let own = self.persons.iter().filter(|(id, person)| {
            let is_far = state.person(id).is_none_or(|it| it.is_elsewhere());
            (person.member.is_some() || person.identity.is_some()) && !is_far
        });
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the identity of a participant.
    pub(crate) fn identity(&self, id: &PersonId) -> String {
        let person = self.persons.get(id);
        person.map_or_else(|| id.to_string(), |person| person.identity_at(id))
    }

    /// Returns the identities of those who are named by identities or sessions. Empty means all, as
    /// nobody is named. Returns `None` if only unknown sessions are named.
    pub(crate) fn named(&self, identities: &[String], sids: &[String]) -> Option<Vec<String>> {
        let mut named = identities.to_vec();
        if !sids.is_empty() {
            let sids: HashSet<&str> = sids.iter().map(String::as_str).collect();
            let persons = self.persons.iter();
            let with_sid = persons.filter(|(_, person)| sids.contains(&*person.sid));
            named.extend(with_sid.map(|(id, person)| person.identity_at(id)));
            if named.is_empty() {
                return None;
            }
        }
        named.sort_unstable();
        named.dedup();
        Some(named)
    }

    /// Returns whether a participant has a client of this door.
    pub(crate) fn has_client(&self, id: &PersonId) -> bool {
        let person = self.persons.get(id);
        person.is_some_and(|person| person.member.is_some())
    }

    /// Forgets participants without a client of this door that are not in the room any more.
    pub(crate) fn forget_others(&mut self, state: &State) {
        self.persons
            .retain(|id, person| person.member.is_some() || state.person(id).is_some());
    }

    /// Returns the number of participants that are known.
    pub(crate) fn count(&self) -> usize {
        self.persons.len()
    }

    /// Returns the clients of this door.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.persons.values().filter_map(|it| it.member.as_ref())
    }

    /// Returns the quality of the connections of publishers where it is known, by the ids of sessions.
    pub(crate) fn qualities(&self) -> impl Iterator<Item = (String, ConnectionQuality)> {
        let persons = self
            .persons
            .values()
            .filter(|person| !person.tracks.is_empty());
        persons.filter_map(|person| Some((person.sid.clone(), person.quality?)))
    }

    /// Returns whether the others do not see a participant.
    /// One at another node counts once it was seen.
    pub(crate) fn is_hidden(&self, id: &PersonId) -> bool {
        let person = self.persons.get(id);
        person.is_some_and(|person| person.permission.hidden)
    }

    /// Notes that a participant changes, so that clients take the next description of it.
    pub(crate) fn change(&mut self, id: &PersonId) {
        if let Some(person) = self.get_mut(id) {
            person.version = person.version.saturating_add(1);
        }
    }

    /// Returns the tracks of a publisher whose media is up, with their m-lines.
    pub(crate) fn tracks(&mut self, state: &State, feed: &PersonId) -> Vec<(Mid, Track)> {
        let Some(publication) = state.published(feed) else {
            return Vec::new();
        };
        let Some(person) = self.seen(state, feed) else {
            return Vec::new();
        };
        let mut tracks = Vec::new();
        for (stream, nth) in media_of(publication.streams()) {
            if let Some(track) = person.track_of_stream(stream, nth) {
                tracks.push((stream.mid, track.clone()));
            }
        }
        tracks
    }

    /// Returns the track with this id, its publisher and its m-line.
    pub(crate) fn track(&self, sid: &str) -> Option<(&PersonId, &Track)> {
        let mut all = self.persons.iter();
        all.find_map(|(id, person)| {
            let track = person.tracks.iter().find(|track| track.sid == sid)?;
            Some((id, track))
        })
    }

    /// Returns the encoded description of a participant of the room, for the `join` of another one.
    pub(crate) fn other(&mut self, state: &State, id: &PersonId) -> Option<Bytes> {
        let in_room = state.person(id)?;
        let publishes = state.published(id).is_some();
        let known = self.persons.get(id).and_then(|it| it.written.as_ref());
        if let Some(written) = known.filter(|it| !publishes && it.profile == in_room.profile) {
            return Some(written.field.clone());
        }
        let field = frame::other_participant(&self.info(state, id)?);
        if !publishes && let Some(person) = self.persons.get_mut(id) {
            person.written = Some(Written {
                profile: in_room.profile.clone(),
                field: field.clone(),
            });
        }
        Some(field)
    }

    /// Returns the description of a participant.
    pub(crate) fn info(&mut self, state: &State, id: &PersonId) -> Option<ParticipantInfo> {
        let in_room = state.person(id);
        let person = match in_room {
            Some(_) => self.seen(state, id)?,
            None => self.persons.get_mut(id)?,
        };
        let mut info = ParticipantInfo {
            sid: person.sid.clone(),
            identity: person.identity_at(id),
            state: person.state.into(),
            joined_at: person.joined_ms / 1_000,
            joined_at_ms: person.joined_ms,
            version: person.version,
            permission: Some(person.permission.clone()),
            kind: person.kind.into(),
            kind_details: person.kind_details.clone(),
            attributes: person.attributes.clone(),
            disconnect_reason: person.disconnect_reason.into(),
            client_protocol: person.client_protocol,
            capabilities: person.capabilities.clone(),
            data_tracks: person
                .data_tracks
                .iter()
                .map(|it| it.info.clone())
                .collect(),
            ..ParticipantInfo::default()
        };
        if let Some(in_room) = in_room {
            let profile = &in_room.profile;
            info.name = profile.display.clone().unwrap_or_default();
            info.metadata = profile.metadata.clone().unwrap_or_default();
        }
        if let Some(publication) = state.published(id) {
            for (stream, nth) in media_of(publication.streams()) {
                if let Some(track) = person.track_of_stream(stream, nth) {
                    info.tracks.push(track.info(Some(stream)));
                }
            }
        }
        info.is_publisher = !info.tracks.is_empty();
        Some(info)
    }
}

/// Returns the enabled streams of audio and video, each with its number among those of its kind.
fn media_of(streams: &[Stream]) -> impl Iterator<Item = (&Stream, usize)> {
    let (mut audio, mut video) = (0, 0);
    let enabled = streams.iter().filter(|stream| !stream.disabled);
    enabled.filter_map(move |stream| {
        let count = match stream.kind {
            Kind::Audio => &mut audio,
            Kind::Video => &mut video,
            Kind::Data => return None,
        };
        let nth = *count;
        *count += 1;
        Some((stream, nth))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_sessions_name_participants() {
        let mut people = People::default();
        for (identity, sid) in [("al", "PA_1"), ("bo", "PA_2"), ("cy", "PA_3")] {
            let person = Person {
                sid: sid.to_owned(),
                ..Person::foreign()
            };
            people.add(&identity.into(), person);
        }
        let named = |identities: &[&str], sids: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|&it| it.into()).collect::<Vec<_>>();
            let named = people.named(&texts(identities), &texts(sids))?;
            Some(named.join(" "))
        };
        assert_eq!(named(&[], &[]).as_deref(), Some(""));
        assert_eq!(named(&["dee", "al"], &[]).as_deref(), Some("al dee"));
        assert_eq!(named(&[], &["PA_2", "PA_9"]).as_deref(), Some("bo"));
        assert_eq!(named(&["cy"], &["PA_3", "PA_1"]).as_deref(), Some("al cy"));
        assert_eq!(named(&[], &["PA_9"]), None);
    }
}
