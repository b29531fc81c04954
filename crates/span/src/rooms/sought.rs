//! A room that another node may have, for a client that wants to join it here.

use bytes::Bytes;
use portunus_cluster::{NodeId, Place};
use tokio::time::Instant;

use super::gate::Waiting;

/// The item with the definition of a room.
pub(crate) const DEFINITION: &str = "room";
/// The most items that are kept.
const MAX_ITEMS: usize = 20_000;

/// A room that is not here yet.
#[derive(Debug)]
pub(crate) struct Sought {
    pub(crate) since: Instant,
    /// Where it is at home, once that is known.
    pub(crate) home: Option<Place>,
    /// What other nodes have of it: whose, the name, the value.
    pub(crate) items: Vec<Item>,
    /// Clients that wait for it.
    pub(crate) waiting: Vec<Waiting>,
}

/// An item of another node.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) value: Option<Bytes>,
}

impl Sought {
    pub(crate) fn new(client: Waiting, now: Instant) -> Self {
        Sought {
            since: now,
            home: None,
            items: Vec::new(),
            waiting: vec![client],
        }
    }

    /// Keeps an item until the room is here.
    pub(crate) fn add(&mut self, item: Item) {
        if self.items.len() < MAX_ITEMS {
            self.items.push(item);
        }
    }

    /// Returns the definition of the room, if a node has one.
    pub(crate) fn definition(&self) -> Option<&str> {
        let mut items = self.items.iter();
        let value = items.find_map(|item| item.value.as_ref().filter(|_| item.name == DEFINITION));
        std::str::from_utf8(value?).ok()
    }
}
