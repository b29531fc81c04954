//! Text rooms in a cluster: a room of one id is one room on all nodes.
//!
//! A room is at *home* at the node that has it for the longest time: the one that made it. That node
//! has all its members, checks PIN, secret and tokens, and sends the messages. Requests of guests at
//! other nodes go there as they are, and answers and messages come back, once for each node
//! ([`RoomMessage`]). Of the rooms of other nodes a node knows what these tell it ([`listing`]),
//! and which of its own guests are members ([`visits`]). If the home is lost, a node with members
//! makes the room anew, with these.

mod directory;
mod guests;
mod listing;
mod moves;
mod visits;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use portunus_core::{Fields, Handle, Later, Object};
use portunus_resources::{Asker, Id};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::contact::{ContactId, FarAsker, NodeName, Outbox, RoomMessage};
use crate::other_nodes::OtherNodes;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::shared::Shared;
use directory::Directory;
use guests::FarGuests;
use listing::Listings;
use visits::Visits;

/// How long a home has to answer a request by the API.
const PATIENCE: Duration = Duration::from_secs(5);

/// The text rooms of a cluster, as the server and the plugin share them; cheap to clone. Without a
/// cluster there are no other nodes.
#[derive(Clone, Default)]
pub struct TextRooms(Arc<Inner>);

#[derive(Default)]
struct Inner {
    shared: OnceLock<Weak<Shared>>,
    /// The name of this node.
    node: OnceLock<NodeName>,
    outbox: Arc<Outbox>,
    /// What the other nodes know of the rooms of this one.
    directory: Mutex<Directory>,
    /// The rooms of the other nodes.
    listings: Mutex<Listings>,
    /// The guests of this node in rooms of the others.
    visits: Mutex<Visits>,
    /// The guests of other nodes in rooms of this one.
    guests: Mutex<FarGuests>,
}

impl fmt::Debug for TextRooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextRooms").finish_non_exhaustive()
    }
}

/// Reads what another node tells of a room, for the fuzz targets. What can be read is the same when
/// it is written and read again.
#[cfg(feature = "testing")]
pub fn read_listing(bytes: &[u8]) {
    use listing::Listing;
    let value = serde_json::from_slice(bytes).ok();
    if let Some(listing) = value.and_then(|value| Listing::parse(&value)) {
        assert_eq!(Listing::parse(&listing.to_value()), Some(listing));
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the server does.
impl TextRooms {
    /// Begins: this node has a name in the cluster. Returns a receiver that sees when rooms were
    /// made or removed, or `None` if the server has no text rooms.
    pub fn begin(&self, node: &str) -> Option<watch::Receiver<()>> {
        // A server is one node.
        let _ = self.0.node.set(node.into());
        Some(self.shared()?.rooms.changes())
    }

    /// Waits for the next message to another node.
    pub async fn next_message(&self) -> (String, Bytes) {
        let (node, message) = self.0.outbox.next().await;
        (node.as_ref().to_owned(), message)
    }

    /// Takes a message of another node.
    pub fn take(&self, node: &str, message: &[u8]) {
        let node = NodeName::from(node);
        match RoomMessage::parse(message) {
            Some(message) => self.message(&node, message),
            None => tracing::warn!(%node, "textroom: a malformed message is skipped"),
        }
    }

    /// Another node is reachable, or its connection was replaced: messages may be missing.
    pub fn resumed(&self, node: &str) {
        let node = node.into();
        self.tell_all_rooms(&node);
        self.present_all(&node);
    }

    /// Another node is lost. Its guests leave. Its rooms go on elsewhere.
    pub fn lost(&self, node: &str) {
        lock(&self.0.directory).lose(node);
        let of_node = lock(&self.0.guests).take_node(node);
        for mut guest in of_node {
            guest.go();
        }
        self.0.outbox.forget(node);
        lock(&self.0.listings).remove_node(node);
        let rooms = lock(&self.0.visits).lose_node(node);
        for room in rooms {
            self.settle(&room, true);
        }
    }

    /// Tells the other nodes which rooms have changed. Called after rooms were made or removed.
    pub fn look(&self) {
        self.tell_changed_rooms();
    }

    /// Does what is due. Called once a second.
    pub fn tidy(&self) {
        self.end_unused();
        self.look();
    }
}

/// What the plugin does.
impl OtherNodes for TextRooms {
    fn home(&self, id: &Id) -> Option<NodeName> {
        let (node, since) = {
            let listings = lock(&self.0.listings);
            if listings.is_empty() {
                return None;
            }
            let (node, listing) = listings.home(&id.to_string())?;
            (node.clone(), listing.origin.since)
        };
        let shared = self.shared()?;
        let own = match shared.rooms.exists(id) {
            true => shared.rooms.get(id).ok(),
            false => None,
        };
        let own = own.map(|room| room.lock().origin.since);
        let is_here = own.is_some_and(|own| (own, self.0.node.get()) < (since, Some(&node)));
        (!is_here).then_some(node)
    }

    fn listed(&self, with_private: bool) -> Vec<Value> {
        let Some(shared) = self.shared() else {
            return Vec::new();
        };
        let ids: HashSet<Id> = {
            let own = shared.rooms.all().into_iter();
            let own = own.map(|room| room.id.clone());
            own.filter(|id| self.home(id).is_none()).collect()
        };
        let listings = lock(&self.0.listings);
        listings.listed(shared.rooms.ids(), with_private, |id| !ids.contains(id))
    }

    fn say(&self, home: &NodeName, guest: &Handle, request: &str, asker: &Asker) {
        lock(&self.0.visits).visit(guest, home);
        let message = RoomMessage::Said {
            guest: guest.id().0,
            request: request.to_owned(),
            asker: FarAsker::of(asker),
        };
        self.send(home, &message);
    }

    fn ask(
        &self,
        home: &NodeName,
        guest: Option<&Handle>,
        request: Map<String, Value>,
        asker: &Asker,
    ) -> Later {
        let asked = {
            let mut visits = lock(&self.0.visits);
            if let Some(guest) = guest {
                visits.visit(guest, home);
            }
            visits.ask(home)
        };
        if let Some((ask, _)) = &asked {
            let message = RoomMessage::Asked {
                guest: guest.map_or(0, |guest| guest.id().0),
                ask: *ask,
                request,
                asker: FarAsker::of(asker),
            };
            self.send(home, &message);
        }
        let rooms = self.clone();
        Later::new(async move {
            let refused = || Value::from(Refusal::Unreachable.to_object());
            let Some((ask, answer)) = asked else {
                return refused();
            };
            let answer = timeout(PATIENCE, answer).await;
            lock(&rooms.0.visits).forget_ask(ask);
            answer.ok().and_then(Result::ok).unwrap_or_else(refused)
        })
    }

    fn gone(&self, guest: &Handle) {
        let Some(visitor) = lock(&self.0.visits).gone(guest) else {
            return;
        };
        for room in visitor.rooms.iter().filter_map(Weak::upgrade) {
            room.lock().gone(&ContactId::Here(guest.id()));
        }
        for node in &visitor.nodes {
            let guest = guest.id().0;
            self.send(node, &RoomMessage::Gone { guest });
        }
    }

    fn memberships(&self, guest: &Handle) -> Vec<Object> {
        let Some(shared) = self.shared() else {
            return Vec::new();
        };
        let (rooms, visited) = lock(&self.0.visits).memberships(guest);
        let membership = |room: &Id, username: &str| {
            let membership = Object::new().with("room", room.to_json());
            membership.with("username", username)
        };
        let visited = visited.iter().filter_map(|(room, username)| {
            let room = shared.rooms.ids().parse(room)?;
            Some(membership(&room, username))
        });
        let mut memberships: Vec<Object> = visited.collect();
        for room in rooms.iter().filter_map(Weak::upgrade) {
            let state = room.lock();
            if let Some(username) = state.username(&ContactId::Here(guest.id())) {
                memberships.push(membership(&room.id, username));
            }
        }
        memberships
    }

    fn destroyed(&self, id: &Id, permanently: bool) {
        let room = id.to_string();
        self.send_to_all_with(&room, || RoomMessage::Destroyed {
            room: room.clone(),
            permanently: permanently.then_some(0),
        });
    }

    fn edited_permanently(&self, id: &Id, request: &Map<String, Value>) {
        let room = id.to_string();
        self.send_to_all_with(&room, || RoomMessage::Edited {
            room: room.clone(),
            request: request.clone(),
        });
    }
}

impl TextRooms {
    /// Sets where the rooms are kept. The first place stays.
    pub(crate) fn keep_in(&self, shared: &Arc<Shared>) {
        // A server has one plugin for text rooms.
        let _ = self.0.shared.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.0.shared.get()?.upgrade()
    }

    fn send(&self, node: &NodeName, message: &RoomMessage) {
        self.0.outbox.push(node, message);
    }

    /// Sends a message to each node with a room of this id.
    fn send_to_all_with(&self, room: &str, message: impl Fn() -> RoomMessage) {
        let nodes = lock(&self.0.listings).nodes(room);
        for node in nodes {
            self.send(&node, &message());
        }
    }

    fn message(&self, node: &NodeName, message: RoomMessage) {
        match message {
            RoomMessage::Said {
                guest,
                request,
                asker,
            } => self.said(node, guest, &request, &asker.asker()),
            RoomMessage::Asked {
                guest,
                ask,
                request,
                asker,
            } => self.asked(node, guest, ask, &request, &asker.asker()),
            RoomMessage::Gone { guest } => {
                let gone = lock(&self.0.guests).take(node, guest);
                if let Some(mut guest) = gone {
                    guest.go();
                }
            }
            RoomMessage::Present { rooms, all } => self.present(node, rooms, all),
            RoomMessage::Entered { room, guest, name } => {
                lock(&self.0.visits).entered(node, &room, guest, name);
                let listing = {
                    let listings = lock(&self.0.listings);
                    let home = listings.home(&room);
                    home.map(|(_, listing)| listing.clone())
                };
                lock(&self.0.visits).note_listing(&room, listing);
            }
            RoomMessage::Left { room, guest } => lock(&self.0.visits).left(node, &room, guest),
            RoomMessage::Whispered { guest, texts } => {
                lock(&self.0.visits).whisper(node, guest, &texts);
            }
            RoomMessage::Published {
                room,
                message,
                news,
            } => lock(&self.0.visits).publish(node, &room, &message, news),
            RoomMessage::History { room, texts } => {
                lock(&self.0.visits).note_history(node, &room, texts);
            }
            RoomMessage::Names { room, names } => {
                let Some(shared) = self.shared() else { return };
                let Some(id) = shared.rooms.ids().parse(&room) else {
                    return;
                };
                let json = shared.surroundings.json;
                lock(&self.0.visits).names(node, &id, names, json);
            }
            RoomMessage::Answered { ask, answer } => {
                lock(&self.0.visits).answered(node, ask, answer);
            }
            RoomMessage::Rooms { rooms, gone } => self.note_rooms(node, &rooms, &gone),
            RoomMessage::AllRooms { rooms } => self.note_all_rooms(node, &rooms),
            RoomMessage::Destroyed { room, permanently } => self.end_room(&room, permanently),
            RoomMessage::Edited { room, request } => self.edit_room(&room, &request),
            RoomMessage::Reset => self.present_all(node),
            RoomMessage::Later => {}
        }
    }

    /// Ends a room of this node, which another node has destroyed.
    fn end_room(&self, room: &str, permanently: Option<u64>) {
        let Some(shared) = self.shared() else { return };
        let Some(id) = shared.rooms.ids().parse(room) else {
            return;
        };
        match permanently.map(Duration::from_secs) {
            Some(ago) => drop(shared.rooms.end_permanently_too(&id, ago)),
            None => shared.rooms.end_too(&id),
        }
    }

    /// Tells a node that has a room if the room was ended permanently: it may have been away.
    fn tell_ended(&self, node: &NodeName, room: &str) {
        let Some(shared) = self.shared() else { return };
        let id = shared.rooms.ids().parse(room);
        if let Some(ago) = id.and_then(|id| shared.rooms.is_listed_elsewhere(&id)) {
            let message = RoomMessage::Destroyed {
                room: room.to_owned(),
                permanently: Some(ago.as_secs()),
            };
            self.send(node, &message);
        }
    }

    /// Changes a room of this node permanently, as its home has done.
    fn edit_room(&self, room: &str, request: &Map<String, Value>) {
        let Some(shared) = self.shared() else { return };
        let Some(id) = shared.rooms.ids().parse(room) else {
            return;
        };
        let edit = |room: &mut RoomState| shared.change(room, Fields(request));
        if let Err(error) = shared.rooms.edit_permanently_too(&id, edit) {
            tracing::warn!(%id, %error, "textroom: a room is not changed as at its home");
        }
    }
}
