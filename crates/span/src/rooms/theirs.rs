//! The participants of a room at other nodes, and how they are shown here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_cluster::NodeId;
use portunus_media::{IngestId, MediaPlane};
use portunus_relay::SourceId;
use portunus_room::{FarOrigin, Permissions, PersonId, Relayed, RelayedStream, Room, State, hear};
use portunus_rtp::Mid;

use super::message::RoomMessage;
use super::record::{PersonRecord, PublicationRecord};
use crate::Port;

/// The participants of a room at other nodes.
#[derive(Debug)]
pub(crate) struct Theirs {
    room: Arc<Room>,
    port: Port,
    media: MediaPlane,
    /// What the nodes say. Two may have the same id for a moment.
    records: HashMap<PersonId, BTreeMap<NodeId, PersonRecord>>,
    /// How many participants each node has.
    people: BTreeMap<NodeId, usize>,
    shown: HashMap<PersonId, Shown>,
    by_source: HashMap<(NodeId, SourceId), PersonId>,
    /// What the next look is to tell.
    untold: Vec<(NodeId, RoomMessage)>,
}

/// A participant that is shown here.
#[derive(Debug)]
struct Shown {
    node: NodeId,
    record: PersonRecord,
    /// Whether it was kicked here, and its node was told.
    is_kicked: bool,
    /// Requests to its node to mute or unmute streams that the node has not confirmed.
    asked: HashMap<Mid, Asked>,
}

/// A request to a node to mute or unmute a stream.
#[derive(Debug, Clone, Copy)]
struct Asked {
    mute: bool,
    at: Instant,
}

/// After this time a node that has not confirmed is taken at its word: two changes in short order
/// may have left it as it was, and a message may be lost.
const CONFIRMS: Duration = Duration::from_secs(5);

impl Theirs {
    pub(crate) fn new(room: Arc<Room>, port: Port, media: MediaPlane) -> Self {
        Theirs {
            room,
            port,
            media,
            records: HashMap::new(),
            people: BTreeMap::new(),
            shown: HashMap::new(),
            by_source: HashMap::new(),
            untold: Vec::new(),
        }
    }

    /// Takes what a node says about a participant, or (`None`) that it is gone.
    pub(crate) fn set(&mut self, id: &PersonId, node: NodeId, record: Option<PersonRecord>) {
        let room = self.room.clone();
        let mut state = room.lock();
        // What clients of this node have done meanwhile is newer than the record.
        if let Some(shown) = self.shown.get_mut(id) {
            look_at(id, shown, &state, &mut self.untold);
        }
        let records = self.records.entry(id.clone()).or_default();
        let count = self.people.entry(node.clone()).or_default();
        match record {
            Some(record) => {
                let before = records.insert(node.clone(), record);
                *count = count.saturating_add(usize::from(before.is_none()));
            }
            None => {
                let before = records.remove(&node);
                *count = count.saturating_sub(usize::from(before.is_some()));
            }
        }
        if *count == 0 {
            self.people.remove(&node);
        }
        if records.is_empty() {
            self.records.remove(id);
        }
        self.settle(&mut state, id);
    }

    /// Returns the nodes with participants.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.people.keys()
    }

    /// A node has a new media link: its sources are taken anew.
    pub(crate) fn linked(&self, node: &NodeId) {
        let mut state = self.room.lock();
        for (id, shown) in self.shown.iter().filter(|(_, it)| it.node == *node) {
            // It may be gone, or have been kicked.
            let _ = state.update_elsewhere(id, streams(&shown.record));
        }
    }

    /// A source has ended.
    pub(crate) fn source_ended(&self, node: &NodeId, source: SourceId, ingest: IngestId) {
        if let Some(id) = self.by_source.get(&(node.clone(), source)) {
            self.room.lock().source_ended(id, ingest);
        }
    }

    /// Looks at what clients of this node have done to them. Returns what to tell to which nodes.
    pub(crate) fn look(&mut self, state: &mut State) -> Vec<(NodeId, RoomMessage)> {
        let mut messages = std::mem::take(&mut self.untold);
        for (id, shown) in &mut self.shown {
            look_at(id, shown, state, &mut messages);
        }
        // Those whose id was taken here. Who is shown has a record.
        if self.records.len() > self.shown.len() {
            let waiting = self.records.keys();
            let waiting = waiting.filter(|id| !self.shown.contains_key(*id));
            for id in waiting.cloned().collect::<Vec<_>>() {
                self.settle(state, &id);
            }
        }
        messages
    }

    /// Removes all of them, as the room is no longer used here.
    pub(crate) fn end(&mut self) {
        let room = self.room.clone();
        let mut state = room.lock();
        self.records.clear();
        self.people.clear();
        for id in self.shown.keys().cloned().collect::<Vec<_>>() {
            self.hide(&mut state, &id);
        }
    }

    /// Shows a participant as its node says.
    fn settle(&mut self, state: &mut State, id: &PersonId) {
        let records = self.records.get(id);
        let known = self.shown.get(id).map(|shown| shown.node.clone());
        let same = known.as_ref().and_then(|node| records?.get_key_value(node));
        let next = same.or_else(|| records?.first_key_value());
        let next = next.map(|(node, record)| (node.clone(), record.clone()));
        match (known, next) {
            (None, None) => {}
            (None, Some((node, record))) => self.show(state, id, node, record),
            (Some(_), None) => self.hide(state, id),
            (Some(known), Some((node, record)))
                if known == node && self.is_same_session(id, &record) =>
            {
                self.update(state, id, record);
            }
            (Some(_), Some((node, record))) => {
                self.hide(state, id);
                self.show(state, id, node, record);
            }
        }
    }

    /// Returns whether a participant that is shown goes on. Its client may have been replaced by
    /// another one of the same node.
    fn is_same_session(&self, id: &PersonId, record: &PersonRecord) -> bool {
        let shown = self.shown.get(id);
        shown.is_none_or(|shown| shown.record.session == record.session)
    }

    fn show(&mut self, state: &mut State, id: &PersonId, node: NodeId, record: PersonRecord) {
        let from = FarOrigin {
            node: node.as_str(),
            session: record.session,
            note: record.note(),
        };
        let joined = state.join_elsewhere(id, record.profile(), Permissions::ALL, from);
        if joined.is_err() {
            // It is shown once the id is free.
            return;
        }
        state.connects_elsewhere(id, record.connecting);
        if let Some(publication) = &record.publication {
            self.publish(state, id, &node, publication, &record);
        }
        let shown = Shown {
            node,
            record,
            is_kicked: false,
            asked: HashMap::new(),
        };
        self.note_sources(id, &shown.node, &shown.record);
        self.shown.insert(id.clone(), shown);
    }

    fn hide(&mut self, state: &mut State, id: &PersonId) {
        state.connects_elsewhere(id, false);
        if let Some(shown) = self.shown.remove(id) {
            self.forget_sources(&shown.node, &shown.record);
            // It may have been kicked.
            let _ = state.leave_elsewhere(id);
        }
    }

    fn update(&mut self, state: &mut State, id: &PersonId, record: PersonRecord) {
        let Some(shown) = self.shown.get_mut(id) else {
            return;
        };
        let node = shown.node.clone();
        let before = std::mem::replace(&mut shown.record, record.clone());
        let is_kicked = shown.is_kicked;
        self.forget_sources(&node, &before);
        self.note_sources(id, &node, &record);
        let Some(shown) = self.shown.get_mut(id).filter(|_| !is_kicked) else {
            return;
        };
        // A record that does not confirm the last request is older than the request.
        for stream in record.streams() {
            let Some(mid) = stream.mid() else { continue };
            let confirms =
                |asked: &Asked| asked.mute == stream.moderated || asked.at.elapsed() >= CONFIRMS;
            if shown.asked.get(&mid).is_some_and(confirms) {
                shown.asked.remove(&mid);
            }
        }
        state.connects_elsewhere(id, record.connecting);
        // Before the publication, of which the doors may know more.
        state.set_note(id, record.note());
        let pending: HashSet<Mid> = shown.asked.keys().copied().collect();
        if before.profile() != record.profile() {
            state.rename_elsewhere(id, record.profile());
        }
        match (&before.publication, &record.publication) {
            (None, None) => {}
            (Some(_), None) => drop(state.unpublish_elsewhere(id)),
            (Some(old), Some(new)) if is_extended(old, new) => {
                drop(state.update_elsewhere(id, streams(&record)));
                for (old, new) in old.streams.iter().zip(&new.streams) {
                    let is_pending = new.mid().is_some_and(|mid| pending.contains(&mid));
                    if old.moderated != new.moderated && !is_pending {
                        moderate(state, id, new.mid(), new.moderated);
                    }
                }
            }
            (old, Some(new)) => {
                if old.is_some() {
                    drop(state.unpublish_elsewhere(id));
                }
                self.publish(state, id, &node, new, &record);
            }
        }
    }

    fn publish(
        &self,
        state: &mut State,
        id: &PersonId,
        node: &NodeId,
        publication: &PublicationRecord,
        record: &PersonRecord,
    ) {
        let sources = self.port.sources(node);
        let (media, hears) = Relayed::new(self.media.clone(), sources);
        let published = state.publish_elsewhere(id, media, publication.e2ee, streams(record));
        if let Err(refusal) = published {
            tracing::warn!(%id, %node, %refusal, "cluster: a publisher of another node is refused");
            return;
        }
        tokio::spawn(hear(Arc::downgrade(&self.room), id.clone(), hears));
        for stream in publication.streams.iter().filter(|it| it.moderated) {
            moderate(state, id, stream.mid(), true);
        }
    }

    fn note_sources(&mut self, id: &PersonId, node: &NodeId, record: &PersonRecord) {
        let sources = sources(node, record).map(|source| (source, id.clone()));
        self.by_source.extend(sources);
    }

    fn forget_sources(&mut self, node: &NodeId, record: &PersonRecord) {
        for source in sources(node, record) {
            self.by_source.remove(&source);
        }
    }
}

/// Looks at what clients of this node have done to a participant.
fn look_at(
    id: &PersonId,
    shown: &mut Shown,
    state: &State,
    messages: &mut Vec<(NodeId, RoomMessage)>,
) {
    let person = state.person(id);
    if !person.is_some_and(|person| person.is_elsewhere()) {
        // A client of this node may have taken its place.
        let is_kicked = person.is_some() || state.was_kicked(id);
        if is_kicked && !std::mem::replace(&mut shown.is_kicked, true) {
            let kick = RoomMessage::Kick {
                id: id.to_string(),
                session: shown.record.session,
                replaced: person.is_some(),
            };
            messages.push((shown.node.clone(), kick));
        }
        return;
    }
    for record in shown.record.streams() {
        let stream = record
            .mid()
            .and_then(|mid| state.publication(id)?.stream(mid));
        let Some(stream) = stream else { continue };
        let mute = stream.is_moderated();
        let told = shown.asked.get(&stream.mid).map(|asked| asked.mute);
        if mute != told.unwrap_or(record.moderated) {
            let at = Instant::now();
            shown.asked.insert(stream.mid, Asked { mute, at });
            let moderate = RoomMessage::Moderate {
                id: id.to_string(),
                mid: stream.mid.as_str().to_owned(),
                mute,
            };
            messages.push((shown.node.clone(), moderate));
        }
    }
}

/// Returns whether a publication goes on, with more streams or other ones in their places.
fn is_extended(old: &PublicationRecord, new: &PublicationRecord) -> bool {
    old.e2ee == new.e2ee && old.streams.len() <= new.streams.len()
}

fn moderate(state: &mut State, id: &PersonId, mid: Option<Mid>, mute: bool) {
    let Some(mid) = mid else { return };
    let stream = state.publication(id).and_then(|it| it.stream(mid));
    if stream.is_some_and(|stream| stream.is_moderated() != mute) {
        // The stream is there.
        let _ = state.moderate(id, mid.as_str(), mute);
    }
}

fn sources(node: &NodeId, record: &PersonRecord) -> impl Iterator<Item = (NodeId, SourceId)> {
    let offers = record.streams().iter().filter_map(|it| it.offer.as_ref());
    offers.map(|offer| (node.clone(), offer.id))
}

fn streams(record: &PersonRecord) -> Vec<RelayedStream> {
    let streams = record.streams().iter().enumerate();
    let streams = streams.filter_map(|(index, of)| {
        Some(RelayedStream {
            stream: of.stream(index)?,
            offer: of.offer.clone(),
            open: !of.paused,
        })
    });
    streams.collect()
}
