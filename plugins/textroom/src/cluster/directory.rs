//! What the nodes tell each other of their rooms.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::listing::Listing;
use super::{TextRooms, lock};
use crate::contact::{NodeName, RoomMessage};

/// The rooms in a message, whose descriptions have 4 KiB at most.
const IN_MESSAGE: usize = 200;

/// What the other nodes know of the rooms of this one.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The nodes that can be reached.
    nodes: BTreeSet<NodeName>,
    /// The rooms of this node, as these nodes know them.
    told: BTreeMap<String, Value>,
}

impl Directory {
    /// A node cannot be reached any more.
    pub(super) fn lose(&mut self, node: &str) {
        self.nodes.remove(node);
    }
}

impl TextRooms {
    fn own_rooms(&self) -> BTreeMap<String, Value> {
        let rooms = self.shared().map(|shared| shared.rooms.all());
        let rooms = rooms.unwrap_or_default().into_iter();
        let own = rooms.map(|room| {
            let listing = Listing::of(&room.lock());
            (room.id.to_string(), listing.to_value())
        });
        own.collect()
    }

    /// Tells all nodes which rooms of this one have changed.
    pub(super) fn tell_changed_rooms(&self) {
        let own = self.own_rooms();
        let mut directory = lock(&self.0.directory);
        let Directory { nodes, told } = &mut *directory;
        let changed = own
            .iter()
            .filter(|(room, value)| told.get(*room) != Some(value));
        let changed: BTreeMap<_, _> = changed.map(|(id, it)| (id.clone(), it.clone())).collect();
        let gone = told.keys().filter(|room| !own.contains_key(*room));
        let gone: Vec<String> = gone.cloned().collect();
        *told = own;
        if changed.is_empty() && gone.is_empty() {
            return;
        }
        for node in nodes.iter() {
            self.tell_rooms(node, &changed, gone.clone());
        }
    }

    fn tell_rooms(&self, node: &NodeName, rooms: &BTreeMap<String, Value>, gone: Vec<String>) {
        if !gone.is_empty() {
            let rooms = BTreeMap::new();
            self.send(node, &RoomMessage::Rooms { rooms, gone });
        }
        let all: Vec<(&String, &Value)> = rooms.iter().collect();
        for some in all.chunks(IN_MESSAGE) {
            let some = some.iter();
            let message = RoomMessage::Rooms {
                rooms: some
                    .map(|(id, it)| ((*id).clone(), (*it).clone()))
                    .collect(),
                gone: Vec::new(),
            };
            self.send(node, &message);
        }
    }

    /// Tells a node all rooms of this one.
    pub(super) fn tell_all_rooms(&self, node: &NodeName) {
        // What has changed since the last look goes to the others.
        self.tell_changed_rooms();
        let mut directory = lock(&self.0.directory);
        directory.nodes.insert(node.clone());
        let rooms = directory.told.keys().cloned().collect();
        self.send(node, &RoomMessage::AllRooms { rooms });
        self.tell_rooms(node, &directory.told, Vec::new());
    }

    /// Takes what another node tells of its rooms.
    pub(super) fn note_rooms(
        &self,
        node: &NodeName,
        rooms: &BTreeMap<String, Value>,
        gone: &[String],
    ) {
        for room in gone {
            lock(&self.0.listings).remove(node, room);
            self.settle(room, false);
        }
        for (room, value) in rooms {
            let Some(listing) = Listing::parse(value) else {
                tracing::warn!(%node, room, "textroom: a malformed room is skipped");
                continue;
            };
            self.tell_ended(node, room);
            if lock(&self.0.listings).set(node, room, listing) {
                self.settle(room, false);
            } else {
                tracing::warn!(%node, "textroom: a node has too many rooms");
            }
        }
    }

    /// Forgets rooms that another node does not have any more.
    pub(super) fn note_all_rooms(&self, node: &NodeName, rooms: &BTreeSet<String>) {
        let known = lock(&self.0.listings).of_node(node);
        let gone: Vec<String> = known
            .into_iter()
            .filter(|room| !rooms.contains(room))
            .collect();
        self.note_rooms(node, &BTreeMap::new(), &gone);
    }
}
