//! The rooms that the nodes have, whether somebody uses them or not: each node tells the others of its
//! own by the items of one directory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use portunus_cluster::{HomeKey, NodeId};
use portunus_room::{FarRoom, State};
use serde::{Deserialize, Serialize};

use crate::{Port, PortError};

/// The name of the directory.
const NAME: &str = "rooms";
/// The item that says that a node decides about its rooms for others. No room has this name.
const DECIDES: &str = "\u{0}decides";
/// The item that says that the doors of a node answer those of others. No room has this name.
const ANSWERS: &str = "\u{0}answers";
/// The longest name of a room that other nodes can list, in bytes.
const MAX_NAME: usize = 512;
/// The most rooms of a node that are listed.
const MAX_ROOMS: usize = 10_000;

/// What a node says of a room of its own. Later versions may add members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedRoom {
    /// The definition, as the keeper of rooms writes it.
    #[serde(with = "text")]
    pub(crate) definition: Arc<str>,
    /// The number of participants that the node knows of.
    #[serde(default)]
    pub(crate) people: usize,
    /// The number of those who publish.
    #[serde(default)]
    pub(crate) publishers: usize,
    /// What a door says of the room.
    #[serde(default, with = "note", skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<Arc<str>>,
}

/// What is told of a room of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) people: usize,
    pub(crate) publishers: usize,
    pub(crate) note: Option<Arc<str>>,
}

impl Told {
    /// Returns what is to be told of a room.
    pub(crate) fn of(state: &State) -> Self {
        Told {
            people: state.people().count(),
            publishers: state.publisher_count(),
            note: state.room_note().cloned(),
        }
    }
}

/// A text that is shared, and may be missing.
mod note {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Arc::from))
    }
}

/// A text that is shared.
mod text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Arc::from)
    }
}

impl ListedRoom {
    const fn counts(&self) -> (usize, usize) {
        (self.people, self.publishers)
    }

    /// Reads the value of an item. Returns `None` if it is malformed.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }

    /// Returns the value of the item.
    pub(crate) fn to_value(&self) -> Vec<u8> {
        // The type has no maps, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The rooms of the other nodes; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    rooms: Arc<Mutex<ByName>>,
    /// The nodes that decide about their rooms. Those of earlier versions do not.
    deciding: Arc<Mutex<BTreeSet<NodeId>>>,
    /// The nodes whose doors answer.
    answering: Arc<Mutex<BTreeSet<NodeId>>>,
}

type ByName = BTreeMap<String, BTreeMap<NodeId, ListedRoom>>;

impl Listing {
    fn by_name(&self) -> MutexGuard<'_, ByName> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deciding(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answering(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        let answering = self.answering.lock();
        answering.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an item of a node, or (`None`) that it is gone. Returns the room if it is one of a room.
    pub(crate) fn take(
        &self,
        item: &str,
        node: &NodeId,
        value: Option<&Bytes>,
    ) -> Option<ListedRoom> {
        let mut marked = match item {
            DECIDES => Some(self.deciding()),
            ANSWERS => Some(self.answering()),
            _ => None,
        };
        if let Some(marked) = &mut marked {
            match value {
                Some(_) => marked.insert(node.clone()),
                None => marked.remove(node),
            };
            return None;
        }
        let room = value.and_then(|value| ListedRoom::parse(value));
        self.set(item, node, room.clone());
        room
    }

    /// Returns whether a node decides about its rooms for others.
    pub(crate) fn decides(&self, node: &NodeId) -> bool {
        self.deciding().contains(node)
    }

    /// Returns whether the doors of a node answer those of others.
    pub(crate) fn answers(&self, node: &NodeId) -> bool {
        self.answering().contains(node)
    }

    /// Takes what a node says of a room of its own, or (`None`) that it has the room no longer.
    fn set(&self, name: &str, node: &NodeId, room: Option<ListedRoom>) {
        let mut by_name = self.by_name();
        match room {
            Some(room) => {
                let nodes = by_name.entry(name.to_owned()).or_default();
                nodes.insert(node.clone(), room);
            }
            None => {
                let Some(nodes) = by_name.get_mut(name) else {
                    return;
                };
                nodes.remove(node);
                if nodes.is_empty() {
                    by_name.remove(name);
                }
            }
        }
    }

    /// Returns the node that comes first of those that have a room.
    pub(crate) fn keeper(&self, name: &str) -> Option<NodeId> {
        let by_name = self.by_name();
        let (node, _) = by_name.get(name)?.first_key_value()?;
        Some(node.clone())
    }

    /// Returns all other nodes that know rooms as this one does.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.deciding().iter().cloned().collect()
    }

    /// Returns all definitions of a room. The keeper of rooms knows which is the latest.
    pub(crate) fn definitions(&self, name: &str) -> Vec<Arc<str>> {
        let by_name = self.by_name();
        let rooms = by_name.get(name).into_iter().flatten();
        rooms.map(|(_, room)| room.definition.clone()).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name().contains_key(name)
    }

    /// Returns the rooms of all other nodes, each once.
    pub(crate) fn rooms(&self) -> Vec<FarRoom> {
        let by_name = self.by_name();
        let rooms = by_name.iter();
        let rooms = rooms.filter_map(|(name, nodes)| far_room(name, nodes));
        rooms.collect()
    }

    /// Returns a room of other nodes.
    pub(crate) fn room(&self, name: &str) -> Option<FarRoom> {
        far_room(name, self.by_name().get(name)?)
    }
}

fn far_room(name: &str, nodes: &BTreeMap<NodeId, ListedRoom>) -> Option<FarRoom> {
    let (_, first) = nodes.first_key_value()?;
    let people = nodes.values().map(|room| room.people).max();
    let publishers = nodes.values().map(|room| room.publishers).max();
    let notes = nodes.values().filter_map(|room| room.note.clone());
    Some(FarRoom {
        name: name.to_owned(),
        definition: first.definition.clone(),
        people: people.unwrap_or_default(),
        publishers: publishers.unwrap_or_default(),
        notes: notes.collect(),
    })
}

/// The rooms of this node, as the others know them.
#[derive(Debug)]
pub(crate) struct OwnRooms {
    port: Port,
    key: Option<HomeKey>,
    told: HashMap<String, ListedRoom>,
    /// The rooms whose number of participants may have changed.
    changed: HashSet<String>,
}

impl OwnRooms {
    /// Opens the directory.
    pub(crate) async fn open(port: Port) -> Self {
        // The name is valid.
        let key = port.key(NAME).ok();
        let mut own = OwnRooms {
            port,
            key,
            told: HashMap::new(),
            changed: HashSet::new(),
        };
        own.reopen().await;
        own
    }

    /// Opens the directory anew, as it has ended. It has to be told of all rooms.
    pub(crate) async fn reopen(&mut self) {
        self.told.clear();
        if let Some(key) = &self.key {
            self.port.open(key).await;
            // It is short.
            let _ = self.port.set(key, DECIDES, Bytes::new()).await;
            let _ = self.port.set(key, ANSWERS, Bytes::new()).await;
        }
    }

    /// Tells the others of a room: at once if it is defined otherwise than before.
    pub(crate) async fn tell(&mut self, name: &str, definition: &str, told: Told) {
        let before = self.told.get(name);
        let is_same = before
            .is_some_and(|before| *before.definition == *definition && before.note == told.note);
        match before {
            Some(before) if is_same && before.counts() == (told.people, told.publishers) => {}
            Some(_) if is_same => drop(self.changed.insert(name.to_owned())),
            _ => {
                let room = ListedRoom {
                    definition: definition.into(),
                    people: told.people,
                    publishers: told.publishers,
                    note: told.note,
                };
                self.set(name, room).await;
            }
        }
    }

    /// Returns the rooms whose number of participants is to be told.
    pub(crate) fn take_changed(&mut self) -> HashSet<String> {
        std::mem::take(&mut self.changed)
    }

    /// Tells the others how many participants a room has.
    pub(crate) async fn tell_people(&mut self, name: &str, told: Told) {
        let counts = (told.people, told.publishers);
        let before = self.told.get(name).filter(|it| it.counts() != counts);
        if let Some(before) = before.cloned() {
            let (people, publishers) = counts;
            let room = ListedRoom {
                people,
                publishers,
                ..before
            };
            self.set(name, room).await;
        }
    }

    /// The room is gone.
    pub(crate) async fn remove(&mut self, name: &str) {
        if self.told.remove(name).is_some()
            && let Some(key) = &self.key
        {
            self.port.remove(key, name).await;
        }
    }

    /// Returns the names of the rooms that were told of.
    pub(crate) fn names(&self) -> Vec<String> {
        self.told.keys().cloned().collect()
    }

    async fn set(&mut self, name: &str, room: ListedRoom) {
        let Some(key) = &self.key else { return };
        let is_new = !self.told.contains_key(name);
        if name.len() > MAX_NAME || is_new && self.told.len() >= MAX_ROOMS {
            return;
        }
        let mut set = self.port.set(key, name, room.to_value().into()).await;
        if set.is_err() && room.note.is_some() {
            let shorter = ListedRoom {
                note: None,
                ..room.clone()
            };
            set = self.port.set(key, name, shorter.to_value().into()).await;
        }
        match set {
            Ok(()) => {}
            Err(error @ PortError::Long(_)) => {
                tracing::warn!(name, %error, "cluster: a room is not listed at other nodes");
                self.port.remove(key, name).await;
            }
        }
        self.told.insert(name.to_owned(), room);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn room(people: usize) -> ListedRoom {
        ListedRoom {
            definition: "{}".into(),
            people,
            publishers: 0,
            note: None,
        }
    }

    #[test]
    fn a_room_of_two_nodes_is_listed_once_as_long_as_one_has_it() {
        let listing = Listing::default();
        let [a, b] = ["a", "b"].map(|name| NodeId::new(name).unwrap());
        listing.set("hall", &b, Some(room(2)));
        listing.set("hall", &a, Some(room(1)));
        assert_eq!(listing.keeper("hall"), Some(a.clone()));
        assert_eq!(listing.rooms().len(), 1);
        assert_eq!(listing.rooms().first().unwrap().people, 2);
        listing.set("hall", &a, None);
        assert_eq!(listing.keeper("hall"), Some(b.clone()));
        listing.set("hall", &b, None);
        assert!(!listing.decides(&a));
        assert_eq!(listing.take(DECIDES, &a, Some(&Bytes::new())), None);
        assert!(listing.decides(&a) && !listing.decides(&b));
        assert_eq!(listing.take(ANSWERS, &b, Some(&Bytes::new())), None);
        assert!(listing.answers(&b) && !listing.answers(&a));
        assert_eq!(listing.nodes(), std::slice::from_ref(&a));
        assert!(!listing.has("hall") && listing.rooms().is_empty());
    }

    #[test]
    fn an_item_is_the_same_when_it_was_written_and_read() {
        assert_eq!(ListedRoom::parse(&room(7).to_value()), Some(room(7)));
        let later = br#"{ "definition": "{}", "later": 1 }"#;
        assert_eq!(ListedRoom::parse(later), Some(room(0)));
        assert_eq!(ListedRoom::parse(b"[]"), None);
        let noted = ListedRoom {
            note: Some("AA==".into()),
            publishers: 2,
            ..room(7)
        };
        assert_eq!(ListedRoom::parse(&noted.to_value()), Some(noted));
    }
}
