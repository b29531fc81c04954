//! The rooms of the other nodes, and which of several nodes with one room is its home.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most rooms of one other node.
const MAX_OF_NODE: usize = 10_000;

/// A room of a node as the others know it, as JSON. Later versions may add members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoomRecord {
    /// The members of its entry in lists.
    pub listed: Map<String, Value>,
    /// Only administrators see it in lists.
    pub is_private: bool,
    /// Somebody is in it.
    pub is_used: bool,
}

impl RoomRecord {
    /// Reads a record.
    pub fn parse(value: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(value)
    }

    /// Returns the bytes.
    pub fn to_value(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The rooms of the other nodes, and their runs.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// By the room's id and the node.
    rooms: BTreeMap<String, BTreeMap<String, RoomRecord>>,
    /// The number of rooms of each node.
    counts: HashMap<String, usize>,
    runs: HashMap<String, u64>,
}

impl Directory {
    /// Sets a room of a node. Returns false if that node has too many.
    pub(super) fn set(&mut self, node: &str, id: &str, record: RoomRecord) -> bool {
        let count = self.counts.entry(node.to_owned()).or_default();
        let nodes = self.rooms.get(id);
        if !nodes.is_some_and(|nodes| nodes.contains_key(node)) {
            if *count >= MAX_OF_NODE {
                return false;
            }
            *count = count.saturating_add(1);
        }
        let nodes = self.rooms.entry(id.to_owned()).or_default();
        nodes.insert(node.to_owned(), record);
        true
    }

    /// Removes a room of a node.
    pub(super) fn remove(&mut self, node: &str, id: &str) {
        let Some(nodes) = self.rooms.get_mut(id) else {
            return;
        };
        if nodes.remove(node).is_some()
            && let Some(count) = self.counts.get_mut(node)
        {
            *count = count.saturating_sub(1);
        }
        if nodes.is_empty() {
            self.rooms.remove(id);
        }
    }

    /// Notes that a node is there. Returns its run before, if that was another one.
    pub(super) fn arrive(&mut self, node: &str, run: u64) -> Option<u64> {
        let before = self.runs.insert(node.to_owned(), run);
        before.filter(|before| *before != run)
    }

    /// Notes that a node is gone. Returns its run.
    pub(super) fn depart(&mut self, node: &str) -> Option<u64> {
        self.runs.remove(node)
    }

    /// Returns whether another node has a room with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.rooms.contains_key(id)
    }

    /// Returns the node at which a room is at home, or `None` if that is this one, or no other node
    /// has it. `own`: this node with its name has the room, too, and uses it or not.
    ///
    /// A room that somebody is in stays where it is. Otherwise the lowest name counts.
    pub(super) fn home_of(&self, id: &str, own: Option<(&str, bool)>) -> Option<&str> {
        if matches!(own, Some((_, true))) {
            return None;
        }
        let (node, record) = self.first(id)?;
        let is_ours = own.is_some_and(|(own, _)| !record.is_used && own < node);
        (!is_ours).then_some(node)
    }

    /// Returns the other node that comes first for a room, with what it says of it.
    pub(super) fn first(&self, id: &str) -> Option<(&str, &RoomRecord)> {
        let nodes = self.rooms.get(id)?;
        let used = nodes.iter().find(|(_, record)| record.is_used);
        let first = used.or_else(|| nodes.iter().next());
        first.map(|(node, record)| (node.as_str(), record))
    }

    /// Returns the other nodes with a room of this id.
    pub(super) fn nodes(&self, id: &str) -> Vec<String> {
        let nodes = self.rooms.get(id).into_iter().flatten();
        nodes.map(|(node, _)| node.clone()).collect()
    }

    /// Returns the ids of all rooms.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.rooms.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(is_used: bool) -> RoomRecord {
        RoomRecord {
            is_used,
            ..RoomRecord::default()
        }
    }

    #[test]
    fn a_room_in_use_stays_where_it_is_and_otherwise_the_lowest_name_counts() {
        let mut directory = Directory::default();
        let home = |directory: &Directory, own| directory.home_of("1", own).map(str::to_owned);
        assert_eq!(home(&directory, None), None);
        assert_eq!(home(&directory, Some(("m", false))), None);
        directory.set("x", "1", record(false));
        assert_eq!(home(&directory, None).as_deref(), Some("x"));
        assert_eq!(home(&directory, Some(("m", false))), None);
        directory.set("b", "1", record(false));
        assert_eq!(home(&directory, Some(("m", false))).as_deref(), Some("b"));
        directory.set("x", "1", record(true));
        assert_eq!(home(&directory, Some(("a", false))).as_deref(), Some("x"));
        assert_eq!(home(&directory, Some(("m", true))), None);
        directory.remove("x", "1");
        directory.remove("b", "1");
        assert!(!directory.has("1"));
    }

    #[test]
    fn what_a_node_may_tell_is_bounded() {
        let mut directory = Directory::default();
        for id in 0..MAX_OF_NODE {
            assert!(directory.set("x", &id.to_string(), record(false)));
        }
        assert!(!directory.set("x", "more", record(false)));
        assert!(
            directory.set("x", "7", record(true)),
            "a known one may change"
        );
        directory.remove("x", "7");
        assert!(directory.set("x", "more", record(false)));
    }

    #[test]
    fn a_new_run_of_a_node_is_noticed() {
        let mut directory = Directory::default();
        assert_eq!(directory.arrive("x", 1), None);
        assert_eq!(directory.arrive("x", 1), None);
        assert_eq!(directory.arrive("x", 2), Some(1));
        assert_eq!(directory.depart("x"), Some(2));
        assert_eq!(directory.depart("x"), None);
    }
}
