//! Video rooms: a room of one name is one room on all nodes.
//!
//! Each node has a [`Room`] for its own clients. It tells the other nodes of each client by an item:
//! its profile and its publication. The clients of other nodes are participants
//! [elsewhere](portunus_room::State::join_elsewhere) in it.

mod data;
mod door_messages;
mod events;
mod gate;
mod homes;
mod listing;
mod message;
mod new_names;
mod ours;
mod permanent;
mod questions;
mod record;
mod sought;
mod spanned;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod theirs;
mod visits;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId, Place};
use portunus_media::MediaPlane;
use portunus_room::{Directory, Room, Rooms};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{Port, PortEvent};
use door_messages::DoorMessages;
use gate::{Gate, Waiting};
use listing::{Listing, OwnRooms, Told};
use message::RoomMessage;
use new_names::NewNames;
use questions::Questions;
use sought::Sought;
use spanned::Spanned;

/// The kind of video rooms.
pub const KIND: &str = "room.videoroom";
/// The kind of the directory of video rooms.
pub const DIRECTORY: &str = "directory.videoroom";

/// How long changes of a room are gathered after one was looked at.
const GATHERING: Duration = Duration::from_millis(10);
/// How often rooms that nobody uses any more are looked for.
const LOOK: Duration = Duration::from_secs(5);
/// How long a room is sought at other nodes.
const SEEK: Duration = Duration::from_secs(5);
/// The queue of rooms that have changed.
const CHANGES: usize = 1_024;
/// The queue of what clients need of other nodes.
const COMMANDS: usize = 1_024;
/// How often the others are told how many participants rooms have.
const COUNT: Duration = Duration::from_secs(1);

/// The rooms of this node, as far as other nodes are concerned.
struct Spanning {
    port: Port,
    media: MediaPlane,
    directory: Arc<dyn Directory>,
    /// Where the doors are.
    doors: Rooms,
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
    /// The rooms that other nodes have, and that are to be opened there first, with the clients that
    /// wait for it.
    opening: HashMap<HomeKey, Vec<Waiting>>,
    /// The nodes that wait until a room of this one is open.
    openers: HashMap<HomeKey, Vec<NodeId>>,
    /// The rooms that the other nodes have, and those of this one as they know them.
    listing: Listing,
    own: OwnRooms,
    questions: Questions,
    door_messages: DoorMessages,
    names: NewNames,
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

/// The ports of video rooms.
#[derive(Debug)]
pub struct RoomPorts {
    /// That of [`KIND`].
    pub rooms: (Port, mpsc::Receiver<PortEvent>),
    /// That of [`DIRECTORY`].
    pub directory: (Port, mpsc::Receiver<PortEvent>),
}

/// Joins the rooms of this node with those of the others, for as long as the server runs.
pub async fn run(ports: RoomPorts, rooms: Rooms, media: MediaPlane) {
    let RoomPorts {
        rooms: (port, mut events),
        directory: (directory_port, mut listed),
    } = ports;
    let Some(directory) = rooms.get().cloned() else {
        // No part of the server has rooms, so nothing is opened.
        while events.recv().await.is_some() {}
        return;
    };
    let (changed, mut changes) = mpsc::channel(CHANGES);
    let (commands, mut commanded) = mpsc::channel(COMMANDS);
    let listing = Listing::default();
    let mut made = directory.changes();
    let mut spanning = Spanning {
        port,
        media,
        directory,
        doors: rooms.clone(),
        rooms: HashMap::new(),
        open: HashMap::new(),
        made: HashSet::new(),
        adopted: HashSet::new(),
        sought: HashMap::new(),
        opening: HashMap::new(),
        openers: HashMap::new(),
        listing: listing.clone(),
        own: OwnRooms::open(directory_port).await,
        questions: Questions::default(),
        door_messages: DoorMessages::default(),
        names: NewNames::default(),
        is_listed: false,
        changed,
    };
    rooms.set_others(Arc::new(Gate::new(commands, listing)));
    spanning.list().await;
    // Those of the configuration are opened when they are used.
    spanning.made.clear();
    spanning.is_listed = true;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut counts = interval(COUNT);
    counts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => spanning.event(event).await,
                None => return,
            },
            Some(event) = listed.recv() => spanning.listed(event).await,
            Ok(()) = made.changed() => spanning.list().await,
            Some(name) = changes.recv() => {
                spanning.end_opening(&name).await;
                spanning.look(&name).await;
            }
            Some(command) = commanded.recv() => spanning.command(command).await,
            _ = ticks.tick() => spanning.release_unused().await,
            _ = counts.tick() => {
                spanning.count_people().await;
                spanning.confirm_doors().await;
            }
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
        for name in self.own.names() {
            if !self.rooms.contains_key(&name) {
                self.own.remove(&name).await;
            }
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
        // Without the node that has made it, its home tells of a room.
        let is_at_home = || self.open.get(&key).is_some_and(Spanned::is_at_home);
        if (!self.adopted.contains(name) || is_at_home())
            && let Some(definition) = self.directory.definition(name)
        {
            let told = Told::of(&room.lock());
            self.own.tell(name, &definition, told).await;
        }
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
        let mut spanned = Spanned::new(room, self.port.clone(), self.media.clone());
        // Its name may have been claimed before.
        if let Some(place) = self.names.take(key) {
            spanned.at_home(place);
        }
        self.open.insert(key.clone(), spanned);
        self.port.open(key).await;
    }

    /// Releases rooms that nobody uses any more.
    async fn release_unused(&mut self) {
        let now = Instant::now();
        let open = self.open.iter();
        let made = &self.made;
        let unused = open.filter_map(|(key, spanned)| {
            let is_unused = !spanned.is_used() && !spanned.is_visited(now);
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
        self.names.release_unused(now, &self.port).await;
        let sought = self
            .sought
            .extract_if(|_, sought| sought.since + SEEK <= now);
        for (key, _) in sought.collect::<Vec<_>>() {
            self.port.release(&key).await;
        }
    }

    /// Tells the others how many participants rooms have.
    async fn count_people(&mut self) {
        for name in self.own.take_changed() {
            if let Some(watched) = self.rooms.get(&name) {
                let told = Told::of(&watched.room.lock());
                self.own.tell_people(&name, told).await;
            }
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
                let message = RoomMessage::Destroy { permanently: None };
                self.send(&node, key, &message).await;
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
}

fn is_used(room: &Room) -> bool {
    room.lock().is_used_here()
}
