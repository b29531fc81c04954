//! The clients of this node in rooms of other nodes.
//!
//! The home of the room has the participant. This node has its PeerConnection, and passes on what
//! the home tells it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::media::ingest::IngestId;
use portunus_core::media::{RouteId, RouteOptions, SourceRef, TrackRef};
use portunus_core::{ExtensionMap, Handle, HandleId, Notice, Object};
use portunus_dsp::AudioCodec;
use portunus_relay::{Offer, SourceDescription, SourceId};
use portunus_resources::{FarAuthor, Id};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ClusterRooms;
use super::message::{CallId, FarEntry, FarMedia, FarMessage, StayId};
use crate::codec::{codec_name, sdp_codec};
use crate::refusal::Refusal;

/// How long the home has time to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most clients of this node in rooms of others.
const MAX_STAYS: usize = 50_000;
/// The most requests that wait for their answers.
const MAX_CALLS: usize = 10_000;
/// The most events that wait until a client knows that it is in the room.
const MAX_EARLY: usize = 1_000;

/// The clients of this node in rooms of other nodes.
#[derive(Debug, Default)]
pub(super) struct Edge(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The last number of a stay or a request.
    last: u64,
    stays: HashMap<StayId, Staying>,
    calls: HashMap<CallId, Call>,
    mixes: HashMap<(String, SourceId), TakenMix>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Call {
    node: String,
    tell: oneshot::Sender<FarAnswer>,
}

#[derive(Debug)]
enum FarAnswer {
    Entered(FarEntry),
    Answer(Value),
}

/// A client in a room of another node.
#[derive(Debug)]
struct Staying {
    handle: Handle,
    node: String,
    room: Id,
    /// The events that came before the client knows that it is in the room.
    early: Option<Vec<Value>>,
    /// What the home knows of its media.
    media: FarMedia,
    /// The offered track of the client.
    track: Option<(TrackRef, SourceId)>,
    /// The track by which it hears.
    hears_by: Option<TrackRef>,
    /// The mix that it receives.
    mix: Option<Offer>,
    route: Option<RouteId>,
}

/// A mix of another node that clients of this one hear.
#[derive(Debug)]
struct TakenMix {
    ingest: Option<IngestId>,
    listeners: usize,
}

/// The media of a client, as it was negotiated.
#[derive(Debug, Clone)]
pub(crate) struct ClientMedia {
    pub(crate) track: TrackRef,
    /// `None` if there is no common codec.
    pub(crate) codec: Option<AudioCodec>,
    /// Whether the client sends, and whether it receives.
    pub(crate) talks: bool,
    pub(crate) hears: bool,
    /// The header extensions of its packets.
    pub(crate) extensions: ExtensionMap,
    /// Whether its packets carry audio levels.
    pub(crate) levels: bool,
    /// Whether it accepts in-band FEC.
    pub(crate) fec: bool,
    /// Whether it may send redundant audio.
    pub(crate) red: bool,
}

/// A client's stay in a room of another node. Dropping it ends the stay.
#[derive(Debug)]
pub(crate) struct Stay {
    rooms: ClusterRooms,
    node: String,
    number: StayId,
}

/// A client that the home of a room has let in.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) stay: Stay,
    pub(crate) room: Id,
    pub(crate) entry: FarEntry,
}

/// The request of a client to enter a room of another node.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) handle: Handle,
    pub(crate) node: String,
    pub(crate) room: Id,
    pub(crate) listens: bool,
    pub(crate) author: FarAuthor,
    pub(crate) body: Map<String, Value>,
}

impl Edge {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether clients of this node are in rooms of that one, or ask for something there.
    pub(super) fn uses(&self, node: &str) -> bool {
        let known = self.known();
        known.stays.values().any(|stay| stay.node == node)
            || known.calls.values().any(|call| call.node == node)
    }

    pub(super) fn entered(&self, call: CallId, node: &str, entry: FarEntry) {
        self.answer(call, node, FarAnswer::Entered(entry));
    }

    pub(super) fn answered(&self, call: CallId, node: &str, answer: Value) {
        self.answer(call, node, FarAnswer::Answer(answer));
    }

    fn answer(&self, call: CallId, node: &str, answer: FarAnswer) {
        let call = {
            let mut known = self.known();
            let is_its = known.calls.get(&call).is_some_and(|it| it.node == node);
            is_its.then(|| known.calls.remove(&call)).flatten()
        };
        if let Some(call) = call {
            // The client may be gone.
            let _ = call.tell.send(answer);
        }
    }

    /// Sends an event of the home to clients.
    pub(super) fn tell(&self, node: &str, stays: &[StayId], event: Value) {
        let mut known = self.known();
        let mut handles = Vec::new();
        for stay in stays {
            let stay = known.stays.get_mut(stay);
            let Some(stay) = stay.filter(|stay| stay.node == node) else {
                continue;
            };
            match &mut stay.early {
                Some(early) if early.len() < MAX_EARLY => early.push(event.clone()),
                Some(_) => {}
                None => handles.push(stay.handle.clone()),
            }
        }
        // Under the lock, so that events stay in order.
        let notice = Notice::new(event);
        for handle in handles {
            handle.send_notice(&notice);
        }
    }

    /// Routes what a client hears to it.
    pub(super) fn mix(&self, rooms: &ClusterRooms, node: &str, stay: StayId, offer: Offer) {
        let mut known = self.known();
        let is_its = |it: &Staying| it.node == node;
        if !known.stays.get(&stay).is_some_and(is_its) {
            return;
        }
        known.leave_mix(rooms, stay);
        known.hear(rooms, stay, offer);
    }

    /// The home has ended a stay.
    pub(super) fn closed(&self, rooms: &ClusterRooms, node: &str, stay: StayId) {
        let is_its = |it: &Staying| it.node == node;
        let ended = {
            let mut known = self.known();
            let is_its = known.stays.get(&stay).is_some_and(is_its);
            is_its.then(|| known.remove(rooms, stay)).flatten()
        };
        if let Some(stay) = ended {
            stay.handle.close_pc();
        }
    }

    /// The other node has a room no longer.
    pub(super) fn room_ended(&self, rooms: &ClusterRooms, node: &str, room: &str) {
        self.end(rooms, |stay| {
            stay.node == node && stay.room.to_string() == room
        });
    }

    /// Nothing is agreed with a node any more.
    pub(super) fn void(&self, rooms: &ClusterRooms, node: &str) {
        // Dropping a call refuses it.
        self.known().calls.retain(|_, call| call.node != node);
        self.end(rooms, |stay| stay.node == node);
    }

    /// Ends stays. Their clients are told that the room has ended.
    fn end(&self, rooms: &ClusterRooms, ends: impl Fn(&Staying) -> bool) {
        let ended: Vec<Staying> = {
            let mut known = self.known();
            let stays = known.stays.iter();
            let ended = stays.filter(|(_, stay)| ends(stay)).map(|(id, _)| *id);
            let ended: Vec<StayId> = ended.collect();
            let ended = ended.into_iter();
            ended.filter_map(|id| known.remove(rooms, id)).collect()
        };
        for stay in ended {
            // A client that does not know yet that it is in the room is refused.
            if stay.early.is_none() {
                stay.handle.push(None, destroyed(&stay.room), None);
            }
            stay.handle.close_pc();
        }
    }

    /// Takes the mixes of a node anew.
    pub(super) fn linked(&self, rooms: &ClusterRooms, node: &str) {
        let mut known = self.known();
        let mut stays = Vec::new();
        for (id, stay) in &mut known.stays {
            if stay.node == node && stay.mix.is_some() {
                stay.route = None;
                stays.push(*id);
            }
        }
        for ((of, _), mix) in &mut known.mixes {
            if of == node {
                // It has ended with the link before.
                mix.ingest = None;
            }
        }
        for id in stays {
            known.route(rooms, id);
        }
    }
}

impl Known {
    fn next(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }

    /// Removes a stay with its media.
    fn remove(&mut self, rooms: &ClusterRooms, id: StayId) -> Option<Staying> {
        self.leave_mix(rooms, id);
        let stay = self.stays.remove(&id)?;
        if let Some((_, offer)) = stay.track {
            rooms.withdraw(offer);
        }
        Some(stay)
    }

    /// Lets a client hear a mix.
    fn hear(&mut self, rooms: &ClusterRooms, id: StayId, offer: Offer) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let key = (stay.node.clone(), offer.id);
        stay.mix = Some(offer);
        let mix = self.mixes.entry(key).or_insert(TakenMix {
            ingest: None,
            listeners: 0,
        });
        mix.listeners = mix.listeners.saturating_add(1);
        self.route(rooms, id);
    }

    /// Routes the mix that a client hears, as far as there is one.
    fn route(&mut self, rooms: &ClusterRooms, id: StayId) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.route.is_some() {
            return;
        }
        let Some((offer, to)) = stay.mix.as_ref().zip(stay.hears_by) else {
            return;
        };
        let Some(mix) = self.mixes.get_mut(&(stay.node.clone(), offer.id)) else {
            return;
        };
        if mix.ingest.is_none() {
            let sources = rooms.sources(&stay.node);
            mix.ingest = sources.and_then(|sources| sources.take(offer));
        }
        let Some(ingest) = mix.ingest else { return };
        let (source, options) = (SourceRef::from(ingest), RouteOptions::default());
        stay.route = stay.handle.route_from(source, to.mid, options);
    }

    /// Ends what a client hears.
    fn leave_mix(&mut self, rooms: &ClusterRooms, id: StayId) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if let Some(route) = stay.route.take() {
            stay.handle.remove_route(route);
        }
        let Some(offer) = stay.mix.take() else { return };
        let key = (stay.node.clone(), offer.id);
        let Some(mix) = self.mixes.get_mut(&key) else {
            return;
        };
        mix.listeners = mix.listeners.saturating_sub(1);
        if mix.listeners == 0
            && let Some(mix) = self.mixes.remove(&key)
            && let Some((ingest, sources)) = mix.ingest.zip(rooms.sources(&key.0))
        {
            sources.release(ingest);
        }
    }
}

impl ClusterRooms {
    /// Asks the home of a room to let a client in. Returns the refusal of the home, as it is sent
    /// to the client.
    pub(crate) fn enter(
        &self,
        entrance: Entrance,
    ) -> impl Future<Output = Result<Entered, Value>> + Send + use<> {
        let rooms = self.clone();
        async move {
            let Entrance {
                handle,
                node,
                room,
                listens,
                author,
                body,
            } = entrance;
            let (tell, answer) = oneshot::channel();
            let (call, number) = {
                let mut known = rooms.0.edge.known();
                if known.stays.len() >= MAX_STAYS || known.calls.len() >= MAX_CALLS {
                    return Err(full());
                }
                let (call, number) = (known.next(), known.next());
                let staying = Staying {
                    handle,
                    node: node.clone(),
                    room: room.clone(),
                    early: Some(Vec::new()),
                    media: FarMedia::default(),
                    track: None,
                    hears_by: None,
                    mix: None,
                    route: None,
                };
                known.stays.insert(number, staying);
                let of = node.clone();
                known.calls.insert(call, Call { node: of, tell });
                (call, number)
            };
            // It ends the stay if this future is dropped.
            let stay = Stay {
                rooms: rooms.clone(),
                node: node.clone(),
                number,
            };
            let message = FarMessage::Enter {
                call,
                stay: number,
                listens,
                author,
                body,
            };
            rooms.send(&node, &message);
            match rooms.answer(call, answer).await {
                Some(FarAnswer::Entered(entry)) => Ok(Entered { stay, room, entry }),
                Some(FarAnswer::Answer(refusal)) => Err(refusal),
                None => Err(silent(&node)),
            }
        }
    }

    /// Asks the home of a room for something. `stay` is the stay of the client that asks, if it is
    /// in the room.
    pub(crate) fn ask(
        &self,
        node: String,
        stay: Option<StayId>,
        author: FarAuthor,
        body: Map<String, Value>,
    ) -> impl Future<Output = Value> + Send + use<> {
        let rooms = self.clone();
        async move {
            let (tell, answer) = oneshot::channel();
            let call = {
                let mut known = rooms.0.edge.known();
                if known.calls.len() >= MAX_CALLS {
                    return full();
                }
                let (call, of) = (known.next(), node.clone());
                known.calls.insert(call, Call { node: of, tell });
                call
            };
            let message = FarMessage::Ask {
                call,
                stay,
                author,
                body,
            };
            rooms.send(&node, &message);
            match rooms.answer(call, answer).await {
                Some(FarAnswer::Answer(answer)) => answer,
                Some(FarAnswer::Entered(_)) | None => silent(&node),
            }
        }
    }

    async fn answer(
        &self,
        call: CallId,
        answer: oneshot::Receiver<FarAnswer>,
    ) -> Option<FarAnswer> {
        let answer = timeout(PATIENCE, answer).await;
        self.0.edge.known().calls.remove(&call);
        answer.ok()?.ok()
    }

    /// Returns the stay of a client in this room of another node.
    pub(crate) fn stay_of(&self, handle: HandleId, room: &Id) -> Option<StayId> {
        let known = self.0.edge.known();
        let mut stays = known.stays.iter();
        let found = stays.find(|(_, stay)| stay.handle.id() == handle && stay.room == *room);
        found.map(|(number, _)| *number)
    }
}

/// Returns the event that tells a client of the end of its room.
pub(crate) fn destroyed(room: &Id) -> Object {
    Object::new()
        .with("audiobridge", "destroyed")
        .with("room", room.to_json())
}

/// The refusal if too many clients are elsewhere.
fn full() -> Value {
    Refusal::Unknown("Too many clients of this node are in rooms of other nodes".to_owned())
        .to_json()
}

/// The refusal if a home does not answer.
fn silent(node: &str) -> Value {
    Refusal::Unknown(format!("The node {node} of this room does not answer")).to_json()
}

impl Stay {
    /// Returns the node of the room.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Returns its number, for [`ClusterRooms::ask`].
    pub(crate) fn number(&self) -> StayId {
        self.number
    }

    /// Returns whether the home has not ended it.
    pub(crate) fn is_there(&self) -> bool {
        self.rooms.0.edge.known().stays.contains_key(&self.number)
    }

    /// The client knows that it is in the room: it gets the events since. Returns false if the
    /// stay has ended meanwhile.
    pub(crate) fn welcomed(&self) -> bool {
        let mut known = self.rooms.0.edge.known();
        let Some(stay) = known.stays.get_mut(&self.number) else {
            return false;
        };
        for event in stay.early.take().into_iter().flatten() {
            stay.handle.push(None, event, None);
        }
        true
    }

    /// Ends the stay, because the client has asked for it.
    pub(crate) fn leave(self) {
        self.end(false);
    }

    fn end(&self, lost: bool) {
        let removed = self.rooms.0.edge.known().remove(&self.rooms, self.number);
        if removed.is_some() {
            let stay = self.number;
            let message = FarMessage::Leave { stay, lost };
            self.rooms.send(&self.node, &message);
        }
    }

    /// The client begins a new stream.
    pub(crate) fn reset_decoder(&self) {
        let stay = self.number;
        self.rooms
            .send(&self.node, &FarMessage::ResetDecoder { stay });
    }

    /// Tells the home of the media of the client, and routes what it hears. `codec` is that of a
    /// participant. `None` means a listener.
    pub(crate) fn set_media(
        &self,
        client: Option<&ClientMedia>,
        codec: Option<AudioCodec>,
        is_up: bool,
    ) {
        let mut known = self.rooms.0.edge.known();
        let Some(stay) = known.stays.get_mut(&self.number) else {
            return;
        };
        let usable = client.filter(|client| codec.is_none() || client.codec == codec);
        let talks = usable.filter(|client| client.talks).zip(codec);
        let track = talks.map(|(client, _)| client.track);
        let mut offer = stay.media.offer.take();
        if stay.track.map(|(track, _)| track) != track {
            if let Some((_, before)) = stay.track.take() {
                self.rooms.withdraw(before);
            }
            offer = talks.and_then(|(client, codec)| {
                let of = SourceDescription::new(sdp_codec(codec));
                let of = of.with_extensions(&client.extensions);
                self.rooms.offer(client.track.into(), of)
            });
            stay.track = track.zip(offer.as_ref().map(|offer| offer.id));
        }
        let hears = usable.filter(|client| client.hears);
        let hears_by = hears.map(|client| client.track);
        if stay.hears_by != hears_by {
            // The PeerConnection may be another one.
            if let Some(route) = stay.route.take() {
                stay.handle.remove_route(route);
            }
            stay.hears_by = hears_by;
        }
        let media = FarMedia {
            is_up,
            offer,
            hears: hears.and_then(|client| Some(codec_name(client.codec?).to_owned())),
            levels: usable.is_some_and(|client| client.levels),
            fec: usable.is_some_and(|client| client.fec),
            red: usable.is_some_and(|client| client.red),
        };
        stay.media = media.clone();
        known.route(&self.rooms, self.number);
        let stay = self.number;
        let message = FarMessage::Media { stay, media };
        self.rooms.send(&self.node, &message);
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.end(true);
    }
}
