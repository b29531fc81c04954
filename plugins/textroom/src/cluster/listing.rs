//! The rooms of the other nodes, as these tell them.

use std::collections::{BTreeMap, HashMap};

use portunus_core::{Fields, Object};
use portunus_resources::{ConfiguredOptions, Id, Ids};
use serde_json::{Value, json};

use crate::contact::NodeName;
use crate::options::{OPTIONS, RoomOptions};
use crate::room::{Origin, RoomState};

/// The most rooms of one other node.
const MAX_OF_NODE: usize = 10_000;

/// What a node tells of a room of its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listing {
    pub(super) origin: Origin,
    /// The options, with the secret and the pin sealed.
    pub(super) options: RoomOptions,
    /// Whether members have to show a token, which only that node can check.
    pub(super) checks_tokens: bool,
    pub(super) members: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Listings {
    by_room: BTreeMap<String, BTreeMap<NodeName, Listing>>,
    /// The number of rooms of each node.
    counts: HashMap<NodeName, usize>,
}

impl Listing {
    /// Returns what the other nodes get to know of a room.
    pub(super) fn of(room: &RoomState) -> Self {
        let mut options = room.options.clone();
        options.access = options.access.sealed(&room.id.to_string());
        Listing {
            origin: room.origin,
            options,
            checks_tokens: room.allowed.is_checked(),
            members: room.members(),
        }
    }

    /// Returns it as JSON.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "since": self.origin.since,
            "shared": self.origin.is_shared,
            "options": self.options.to_section(),
            "tokens": self.checks_tokens,
            "members": self.members,
        })
    }

    /// Reads it. Returns `None` if it is malformed.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let is = |name: &str| value.get(name).and_then(Value::as_bool);
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let options = value.get("options")?.as_object()?;
        Some(Listing {
            origin: Origin {
                since: number("since")?,
                is_shared: is("shared").unwrap_or_default(),
                is_adopted: false,
            },
            options: OPTIONS.read(Fields(options)).ok()?,
            checks_tokens: is("tokens").unwrap_or_default(),
            members: number("members")
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or_default(),
        })
    }

    /// Returns the room's entry in `list`.
    fn listed(&self, id: &Id) -> Object {
        let options = self.options.clone().described(id);
        Object::new()
            .with("room", id.to_json())
            .with_all(OPTIONS.listed(&options))
            .with("pin_required", options.access.pin.is_some())
            .with("num_participants", self.members)
    }
}

impl Listings {
    pub(super) fn is_empty(&self) -> bool {
        self.by_room.is_empty()
    }

    /// Takes what a node tells of a room. Returns whether there was a place for it.
    pub(super) fn set(&mut self, node: &NodeName, room: &str, listing: Listing) -> bool {
        let nodes = self.by_room.get(room);
        if !nodes.is_some_and(|nodes| nodes.contains_key(node)) {
            let count = self.counts.entry(node.clone()).or_default();
            if *count >= MAX_OF_NODE {
                return false;
            }
            *count += 1;
        }
        let nodes = self.by_room.entry(room.to_owned()).or_default();
        nodes.insert(node.clone(), listing);
        true
    }

    pub(super) fn remove(&mut self, node: &str, room: &str) {
        let Some(nodes) = self.by_room.get_mut(room) else {
            return;
        };
        if nodes.remove(node).is_some()
            && let Some(count) = self.counts.get_mut(node)
        {
            *count = count.saturating_sub(1);
        }
        if nodes.is_empty() {
            self.by_room.remove(room);
        }
    }

    /// Returns the ids of a node's rooms.
    pub(super) fn of_node(&self, node: &str) -> Vec<String> {
        let rooms = self.by_room.iter();
        let of_node = rooms.filter(|(_, nodes)| nodes.contains_key(node));
        of_node.map(|(room, _)| room.clone()).collect()
    }

    /// Removes all rooms of a node. Returns their ids.
    pub(super) fn remove_node(&mut self, node: &str) -> Vec<String> {
        let of_node = self.of_node(node);
        for room in &of_node {
            self.remove(node, room);
        }
        self.counts.remove(node);
        of_node
    }

    /// Returns the node among the others that is the home of a room, as far as these are
    /// concerned: the one that has the room for the longest time.
    pub(super) fn home(&self, room: &str) -> Option<(&NodeName, &Listing)> {
        let nodes = self.by_room.get(room)?.iter();
        nodes.min_by_key(|(node, listing)| (listing.origin.since, (*node).clone()))
    }

    /// Returns the nodes that have a room.
    pub(super) fn nodes(&self, room: &str) -> Vec<NodeName> {
        let nodes = self.by_room.get(room);
        nodes.map_or_else(Vec::new, |nodes| nodes.keys().cloned().collect())
    }

    /// Returns the entries in `list` of the rooms for which `is_shown` is true.
    pub(super) fn listed(
        &self,
        ids: Ids,
        with_private: bool,
        is_shown: impl Fn(&Id) -> bool,
    ) -> Vec<Value> {
        let rooms = self.by_room.keys().filter_map(|room| {
            let id = ids.parse(room)?;
            let (_, listing) = self.home(room)?;
            let is_open = with_private || !listing.options.access.is_private;
            (is_open && is_shown(&id)).then(|| listing.listed(&id).into())
        });
        rooms.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn listing(since: u64) -> Listing {
        let origin = Origin {
            since,
            is_shared: false,
            is_adopted: false,
        };
        Listing {
            origin,
            options: RoomOptions {
                description: "Hall".to_owned(),
                history: 3,
                ..RoomOptions::default()
            },
            checks_tokens: false,
            members: 2,
        }
    }

    #[test]
    fn a_listing_is_the_same_when_it_was_written_and_read() {
        let mut hall = listing(7);
        hall.options.access.pin = Some("4321".to_owned());
        assert_eq!(Listing::parse(&hall.to_value()), Some(hall));
        for wrong in [
            json!(null),
            json!({}),
            json!({ "since": 1, "options": { "history": -1 } }),
        ] {
            assert_eq!(Listing::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_node_that_has_a_room_for_the_longest_time_is_its_home() {
        let [a, b, c] = ["a", "b", "c"].map(NodeName::from);
        let mut listings = Listings::default();
        assert!(listings.set(&c, "1", listing(1)));
        assert!(listings.set(&b, "1", listing(1)));
        assert!(listings.set(&a, "1", listing(2)));
        assert_eq!(listings.home("1").unwrap().0, &b);
        let list = listings.listed(Ids::Numbers, false, |_| true);
        let hall = json!({
            "room": 1, "description": "Hall", "history": 3, "pin_required": false,
            "num_participants": 2,
        });
        assert_eq!(list, [hall]);
        assert_eq!(listings.remove_node("b"), ["1"]);
        listings.remove("c", "1");
        assert_eq!(listings.home("1").unwrap().0, &a);
        assert_eq!(listings.remove_node("a"), ["1"]);
        assert!(listings.is_empty());
    }
}
