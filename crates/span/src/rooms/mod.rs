//! Video rooms: a room of one name is one room on all nodes.
//!
//! Each node has its own [`Room`] with its own clients. What its clients are and publish goes to
//! the other nodes as items; what those have is shown as participants
//! [elsewhere](portunus_room::State::join_elsewhere).

mod gate;
mod message;
mod ours;
mod record;
mod spanned;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod theirs;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId, Place};
use portunus_media::MediaPlane;
use portunus_room::{Directory, PersonId, Room, Rooms, State};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{Port, PortEvent};
use gate::{Gate, Visit};
use message::RoomMessage;
use record::PersonRecord;
use spanned::Spanned;

/// The kind of video rooms.
pub const KIND: &str = "room.videoroom";

/// How long changes of a room are gathered after one was looked at.
const GATHERING: Duration = Duration::from_millis(10);
/// How often rooms that nobody uses any more are looked for.
const LOOK: Duration = Duration::from_secs(5);
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
        changed,
    };
    spanning.list().await;
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
        // They may have changed before they were watched.
        for name in new {
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
        if !self.open.contains_key(&key) {
            if !is_used(&room) {
                return;
            }
            self.open(&key, room).await;
        }
        if let Some(spanned) = self.open.get_mut(&key) {
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
        if !self.open.contains_key(&key) {
            let is_new = !self.rooms.contains_key(&visit.name);
            if is_new && self.directory.find(&visit.name).is_some() {
                self.list().await;
            }
            let Some(watched) = self.rooms.get(&visit.name) else {
                return;
            };
            let room = watched.room.clone();
            self.open(&key, room).await;
        }
        if let Some(spanned) = self.open.get_mut(&key) {
            spanned.visit(visit.done, Instant::now());
        }
    }

    /// Releases rooms that nobody uses any more.
    async fn release_unused(&mut self) {
        let now = Instant::now();
        let open = self.open.iter_mut();
        let unused = open.filter_map(|(key, spanned)| {
            let is_unused = !is_used(&spanned.room) && !spanned.is_visited(now);
            is_unused.then(|| key.clone())
        });
        for key in unused.collect::<Vec<_>>() {
            self.close(&key);
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
                let Some(spanned) = self.open.get_mut(&key) else {
                    return;
                };
                let record = match value.as_deref().map(PersonRecord::parse).transpose() {
                    Ok(record) => record,
                    Err(error) => {
                        tracing::warn!(%key, %node, %error, "cluster: skipped");
                        return;
                    }
                };
                spanned.theirs.set(&PersonId::from(item), node, record);
            }
            PortEvent::Home { key, place } => {
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.at_home(place);
                }
            }
            PortEvent::Complete { key } => {
                if let Some(spanned) = self.open.get_mut(&key) {
                    spanned.complete();
                }
            }
            PortEvent::Ended { key } => {
                if let Some(mut spanned) = self.open.remove(&key) {
                    spanned.end(&self.port);
                    self.directory.destroy(&key.name());
                }
            }
            PortEvent::Message { key, from, body } => self.message(&key, &from, &body),
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
            RoomMessage::Destroy => self.directory.destroy(&key.name()),
            RoomMessage::Later => {}
        }
    }
}

fn is_used(room: &Room) -> bool {
    room.lock().is_used_here()
}
