//! Video rooms: a room of one name is one room on all nodes.
//!
//! Each node has a [`Room`] for its own clients. It tells the other nodes of each client by an item:
//! its profile and its publication. The clients of other nodes are participants
//! [elsewhere](portunus_room::State::join_elsewhere) in it.

mod data;
mod gate;
mod message;
mod ours;
mod record;
mod sought;
mod spanned;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod theirs;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId, Place};
use portunus_media::MediaPlane;
use portunus_room::{Directory, PersonId, Room, Rooms, State};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{Port, PortEvent};
use data::{payload, wanted_of};
use gate::{Gate, Visit};
use message::RoomMessage;
use ours::person_of;
use record::PersonRecord;
use sought::{Item, Sought};
use spanned::Spanned;

/// The kind of video rooms.
pub const KIND: &str = "room.videoroom";

/// How long changes of a room are gathered after one was looked at.
const GATHERING: Duration = Duration::from_millis(10);
/// How often rooms that nobody uses any more are looked for.
const LOOK: Duration = Duration::from_secs(5);
/// How long a room is sought at other nodes.
const SEEK: Duration = Duration::from_secs(5);
/// The queue of rooms that have changed.
const CHANGES: usize = 1_024;
/// The queue of clients that wait for a room.
const VISITS: usize = 1_024;

/// The rooms of this node, as far as other nodes are concerned.
struct Spanning {
    port: Port,
    media: MediaPlane,
    directory: Arc<dyn Directory>,
    /// All rooms, with the tasks that watch them.
    rooms: HashMap<String, Watched>,
    /// The rooms that are used here.
    open: HashMap<HomeKey, Spanned>,
    /// The rooms that were made here since the start, which other nodes can have.
    made: HashSet<String>,
    /// The rooms that are here because clients wanted to join those of other nodes.
    adopted: HashSet<String>,
    /// The rooms that other nodes may have.
    sought: HashMap<HomeKey, Sought>,
    /// Whether the rooms of the start are known.
    is_listed: bool,
    changed: mpsc::Sender<String>,
}

/// A room of this node.
struct Watched {
    room: Arc<Room>,
    task: JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Joins the rooms of this node with those of the others, for as long as the server runs.
pub async fn run(
    port: Port,
    mut events: mpsc::Receiver<PortEvent>,
    rooms: Rooms,
    media: MediaPlane,
) {
    let Some(directory) = rooms.get().cloned() else {
        // No part of the server has rooms, so nothing is opened.
        while events.recv().await.is_some() {}
        return;
    };
    let (changed, mut changes) = mpsc::channel(CHANGES);
    let (visits, mut visited) = mpsc::channel(VISITS);
    rooms.set_others(Arc::new(Gate(visits)));
    let mut made = directory.changes();
    let mut spanning = Spanning {
        port,
        media,
        directory,
        rooms: HashMap::new(),
        open: HashMap::new(),
        made: HashSet::new(),
        adopted: HashSet::new(),
        sought: HashMap::new(),
        is_listed: false,
        changed,
    };
    spanning.list().await;
    // Other nodes have the same rooms of the configuration.
    spanning.made.clear();
    spanning.is_listed = true;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => spanning.event(event).await,
                None => return,
            },
            Ok(()) = made.changed() => spanning.list().await,
            Some(name) = changes.recv() => spanning.look(&name).await,
            Some(visit) = visited.recv() => spanning.visit(visit).await,
            _ = ticks.tick() => spanning.release_unused().await,
        }
    }
}

/// Tells of each change of a room.
async fn watch_room(name: String, mut changes: watch::Receiver<()>, changed: mpsc::Sender<String>) {
    while changes.changed().await.is_ok() {
        if changed.send(name.clone()).await.is_err() {
            return;
        }
        sleep(GATHERING).await;
    }
}

impl Spanning {
    /// Looks which rooms there are.
    async fn list(&mut self) {
        let mut before = std::mem::take(&mut self.rooms);
        let mut new = Vec::new();
        for (name, room) in self.directory.list() {
            let known = before.remove(&name);
            let known = known.filter(|known| Arc::ptr_eq(&known.room, &room));
            let watched = known.unwrap_or_else(|| {
                let changes = room.lock().changes();
                new.push(name.clone());
                let changed = self.changed.clone();
                let task = tokio::spawn(watch_room(name.clone(), changes, changed));
                Watched { room, task }
            });
            self.rooms.insert(name, watched);
        }
        let open = self.open.iter();
        let gone = open.filter(|(key, spanned)| {
            let present = self.rooms.get(&key.name());
            !present.is_some_and(|present| Arc::ptr_eq(&present.room, &spanned.room))
        });
        for key in gone.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.destroyed(&key).await;
        }
        let rooms = &self.rooms;
        self.adopted.retain(|name| rooms.contains_key(name));
        self.made.retain(|name| rooms.contains_key(name));
        for name in new {
            if !self.adopted.contains(&name) {
                self.made.insert(name.clone());
            }
            // It may have changed before it was watched.
            self.look(&name).await;
        }
    }

    /// Looks at a room that may have changed.
    async fn look(&mut self, name: &str) {
        let Some(watched) = self.rooms.get(name) else {
            return;
        };
        let room = watched.room.clone();
        let Ok(key) = self.port.key(name) else {
            // A name that is too long for a key stays on its node.
            return;
        };
        let is_made = self.made.contains(name) && self.is_listed;
        if !self.open.contains_key(&key) {
            if !is_used(&room) && !is_made {
                return;
            }
            self.open(&key, room).await;
        }
        let definition = match is_made || self.adopted.contains(name) {
            true => self.directory.definition(name),
            false => None,
        };
        if let Some(spanned) = self.open.get_mut(&key) {
            spanned.define(&key, definition, &self.port).await;
            spanned.look(&key, &self.port).await;
        }
    }

    async fn open(&mut self, key: &HomeKey, room: Arc<Room>) {
        let spanned = Spanned::new(room, self.port.clone(), self.media.clone());
        self.open.insert(key.clone(), spanned);
        self.port.open(key).await;
    }

    /// A client wants to join a room.
    async fn visit(&mut self, visit: Visit) {
        let Ok(key) = self.port.key(&visit.name) else {
            return;
        };
        if let Some(sought) = self.sought.get_mut(&key) {
            sought.waiting.push(visit.done);
            return;
        }
        if !self.rooms.contains_key(&visit.name) {
            if self.directory.find(&visit.name).is_some() {
                self.list().await;
            } else if self.port.has_home(&key).await {
                let sought = Sought::new(visit.done, Instant::now());
                self.sought.insert(key.clone(), sought);
                self.port.open(&key).await;
                return;
            }
        }
        let Some(watched) = self.rooms.get(&visit.name) else {
            return;
        };
        let room = watched.room.clone();
        if !self.open.contains_key(&key) {
            self.open(&key, room).await;
        }
        if let Some(spanned) = self.open.get_mut(&key) {
            spanned.visit(visit.done, Instant::now());
        }
    }

    /// All that other nodes have of a room that was sought is here: it is made, if one has its
    /// definition.
    async fn found(&mut self, key: &HomeKey) {
        let Some(sought) = self.sought.remove(key) else {
            return;
        };
        let name = key.name();
        if let Some(definition) = sought.definition() {
            self.adopted.insert(name.clone());
            match self.directory.adopt(&name, definition) {
                Ok(()) => tracing::info!(%key, "cluster: a room of another node is here, too"),
                Err(error) => tracing::warn!(%key, %error, "cluster: a room stays at its node"),
            }
            self.list().await;
        }
        let Some(room) = self.rooms.get(&name).map(|it| it.room.clone()) else {
            self.port.release(key).await;
            return;
        };
        if !self.open.contains_key(key) {
            self.open(key, room).await;
        }
        for Item { node, name, value } in sought.items {
            self.item(key, node, &name, value);
        }
        if let Some(spanned) = self.open.get_mut(key) {
            spanned.home = sought.home;
            spanned.complete();
            spanned.visited(Instant::now());
        }
    }

    /// Releases rooms that nobody uses any more.
    async fn release_unused(&mut self) {
        let now = Instant::now();
        let open = self.open.iter();
        let made = &self.made;
        let unused = open.filter_map(|(key, spanned)| {
            let is_unused = !is_used(&spanned.room) && !spanned.is_visited(now);
            (is_unused && !made.contains(&key.name())).then(|| key.clone())
        });
        for key in unused.collect::<Vec<_>>() {
            self.close(&key);
            self.port.release(&key).await;
            let name = key.name();
            if self.adopted.remove(&name) {
                self.directory.destroy(&name);
            }
        }
        let sought = self
            .sought
            .extract_if(|_, sought| sought.since + SEEK <= now);
        for (key, _) in sought.collect::<Vec<_>>() {
            self.port.release(&key).await;
        }
    }

    fn close(&mut self, key: &HomeKey) -> Option<Spanned> {
        let mut spanned = self.open.remove(key)?;
        spanned.end(&self.port);
        Some(spanned)
    }

    /// A room that is used was destroyed here, which ends it for all.
    async fn destroyed(&mut self, key: &HomeKey) {
        let Some(spanned) = self.close(key) else {
            return;
        };
        match spanned.home {
            Some(Place::There { node, .. }) => {
                self.send(&node, key, &RoomMessage::Destroy).await;
                self.port.release(key).await;
            }
            _ => self.port.end(key).await,
        }
    }

    async fn send(&self, to: &NodeId, key: &HomeKey, message: &RoomMessage) {
        let sent = self.port.send(to, key, message.to_bytes().into()).await;
        if let Err(error) = sent {
            tracing::warn!(%key, %error, "cluster: a message about a room is left out");
        }
    }

    async fn event(&mut self, event: PortEvent) {
        match event {
            PortEvent::Item {
                key,
                node,
                item,
                value,
            } => {
                if let Some(sought) = self.sought.get_mut(&key) {
                    let name = item;
                    sought.add(Item { node, name, value });
                } else {
                    self.item(&key, node, &item, value);
                    if wanted_of(&item).is_some() {
                        self.look(&key.name()).await;
                    }
                }
            }
            PortEvent::Home { key, place } => {
                let is_elsewhere = matches!(
                    place,
                    Place::There {
                        is_reachable: true,
                        ..
                    }
                );
                if let Some(sought) = self.sought.get_mut(&key) {
                    sought.home = Some(place.clone());
                }
                if !is_elsewhere {
                    self.found(&key).await;
                }
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.at_home(place);
                }
            }
            PortEvent::Complete { key } => {
                self.found(&key).await;
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.complete();
                }
            }
            PortEvent::Ended { key } => {
                self.sought.remove(&key);
                if let Some(mut spanned) = self.open.remove(&key) {
                    spanned.end(&self.port);
                    self.directory.destroy(&key.name());
                }
            }
            PortEvent::Message { key, from, body } => self.message(&key, &from, &body),
            // Their items are told, and taken back, by themselves.
            PortEvent::Resumed { .. } | PortEvent::Lost { .. } => {}
            PortEvent::Linked { node } => {
                for spanned in self.open.values_mut() {
                    spanned.theirs.linked(&node);
                }
            }
            PortEvent::Wanted { source, demand } => {
                for spanned in self.open.values() {
                    if let Some((id, mid)) = spanned.ours.stream_of(source) {
                        let mut state = spanned.room.lock();
                        state.set_far_layer(id, *mid, demand.top());
                        return;
                    }
                }
            }
            PortEvent::SourceEnded {
                node,
                source,
                ingest,
            } => {
                for spanned in self.open.values() {
                    spanned.theirs.source_ended(&node, source, ingest);
                }
            }
        }
    }

    /// Takes an item of another node.
    fn item(&mut self, key: &HomeKey, node: NodeId, item: &str, value: Option<Bytes>) {
        let Some(spanned) = self.open.get_mut(key) else {
            return;
        };
        if let Some(id) = wanted_of(item) {
            return spanned.data.set(&id, node, value.is_some());
        }
        let Some(id) = person_of(item) else { return };
        match value.as_deref().map(PersonRecord::parse).transpose() {
            Ok(record) => spanned.theirs.set(&id, node, record),
            Err(error) => tracing::warn!(%key, %node, %error, "cluster: skipped"),
        }
    }

    /// Does what a client of another node has asked for. That node has checked its rights.
    fn message(&self, key: &HomeKey, from: &NodeId, body: &[u8]) {
        let (Some(spanned), Some(message)) = (self.open.get(key), RoomMessage::parse(body)) else {
            return;
        };
        let is_ours = |state: &State, id: &PersonId| {
            state
                .person(id)
                .is_some_and(|person| !person.is_elsewhere())
        };
        match message {
            RoomMessage::Kick { id } => {
                let id = PersonId::from(id);
                let mut state = spanned.room.lock();
                if is_ours(&state, &id) {
                    tracing::info!(%key, %id, node = %from, "cluster: kicked by another node");
                    // It is there.
                    let _ = state.kick(&id, None);
                }
            }
            RoomMessage::Moderate { id, mid, mute } => {
                let id = PersonId::from(id);
                let mut state = spanned.room.lock();
                if is_ours(&state, &id) {
                    // The stream may be gone meanwhile.
                    let _ = state.moderate(&id, &mid, mute);
                }
            }
            RoomMessage::Data { id, text, bytes } => {
                if let Some(payload) = payload(text, bytes) {
                    let id = PersonId::from(id);
                    spanned.room.lock().send_far_data(&id, &payload);
                }
            }
            RoomMessage::Destroy => self.directory.destroy(&key.name()),
            RoomMessage::Later => {}
        }
    }
}

fn is_used(room: &Room) -> bool {
    room.lock().is_used_here()
}
