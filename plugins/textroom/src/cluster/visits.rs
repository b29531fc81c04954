//! Guests of this node in rooms of the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Weak;

use portunus_core::{Handle, JsonForm, Object};
use portunus_resources::Id;
use serde_json::Value;
use tokio::sync::oneshot;

use super::listing::Listing;
use super::{TextRooms, lock};
use crate::contact::{Name, News, NodeName, Presence, RoomMessage, send};
use crate::room::{History, Room};

/// The most messages of a history.
const MAX_HISTORY: usize = 10_000;
/// The most requests that wait for answers.
const MAX_ASKS: usize = 10_000;

/// The guests of this node in rooms of the others, and their requests.
#[derive(Debug, Default)]
pub(super) struct Visits {
    rooms: BTreeMap<String, Visited>,
    guests: HashMap<u64, Visitor>,
    asks: HashMap<u64, Ask>,
    next_ask: u64,
}

/// A room of another node with members of this one.
#[derive(Debug)]
pub(super) struct Visited {
    home: NodeName,
    /// What the directory has said of it last.
    pub(super) listing: Option<Listing>,
    /// The members of this node.
    pub(super) own: BTreeMap<u64, Name>,
    /// All members, once the home has told them: the display names by the names.
    pub(super) names: Option<BTreeMap<String, Option<String>>>,
    pub(super) history: History,
}

/// A guest of this node that other nodes know.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) handle: Handle,
    /// These nodes.
    pub(super) nodes: BTreeSet<NodeName>,
    /// Its rooms that have come to this node.
    pub(super) rooms: Vec<Weak<Room>>,
}

/// A request that a home has to answer.
#[derive(Debug)]
struct Ask {
    home: NodeName,
    answer: oneshot::Sender<Value>,
}

impl Visits {
    /// Notes that a node knows a guest.
    pub(super) fn visit(&mut self, guest: &Handle, home: &NodeName) {
        self.visitor(guest).nodes.insert(home.clone());
    }

    fn visitor(&mut self, guest: &Handle) -> &mut Visitor {
        let visitor = self.guests.entry(guest.id().0);
        visitor.or_insert_with(|| Visitor {
            handle: guest.clone(),
            nodes: BTreeSet::new(),
            rooms: Vec::new(),
        })
    }

    /// Returns the number of a new request, and its answer. Returns `None` if too many wait.
    pub(super) fn ask(&mut self, home: &NodeName) -> Option<(u64, oneshot::Receiver<Value>)> {
        if self.asks.len() >= MAX_ASKS {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        self.next_ask = self.next_ask.wrapping_add(1);
        let home = home.clone();
        self.asks.insert(self.next_ask, Ask { home, answer });
        Some((self.next_ask, answered))
    }

    pub(super) fn forget_ask(&mut self, ask: u64) {
        self.asks.remove(&ask);
    }

    pub(super) fn answered(&mut self, home: &NodeName, ask: u64, answer: Value) {
        if self.asks.get(&ask).is_some_and(|it| it.home == *home)
            && let Some(ask) = self.asks.remove(&ask)
        {
            // Who asked may be gone.
            let _ = ask.answer.send(answer);
        }
    }

    /// Removes a guest. Returns it if other nodes know it.
    pub(super) fn gone(&mut self, guest: &Handle) -> Option<Visitor> {
        let number = guest.id().0;
        let visitor = self.guests.remove(&number)?;
        for room in self.rooms.values_mut() {
            room.own.remove(&number);
        }
        self.rooms.retain(|_, room| !room.own.is_empty());
        Some(visitor)
    }

    /// Returns the rooms of a guest that have come to this node, and others with its names there.
    pub(super) fn memberships(&self, guest: &Handle) -> (Vec<Weak<Room>>, Vec<(String, String)>) {
        let number = guest.id().0;
        let visitor = self.guests.get(&number);
        let rooms = visitor.map_or_else(Vec::new, |visitor| visitor.rooms.clone());
        let visited = self.rooms.iter().filter_map(|(room, visited)| {
            let name = visited.own.get(&number)?;
            Some((room.clone(), name.username.clone()))
        });
        (rooms, visited.collect())
    }

    /// A guest is a member of a room.
    pub(super) fn entered(&mut self, home: &NodeName, room: &str, guest: u64, name: Name) {
        // The home learns that a guest is gone by another message.
        if !self.guests.contains_key(&guest) {
            return;
        }
        let visited = self.rooms.entry(room.to_owned());
        let visited = visited.or_insert_with(|| Visited::new(home.clone()));
        if visited.home == *home {
            visited.own.insert(guest, name);
        }
    }

    /// Notes what the directory says of a room.
    pub(super) fn note_listing(&mut self, room: &str, listing: Option<Listing>) {
        if let (Some(visited), Some(listing)) = (self.rooms.get_mut(room), listing) {
            visited.listing = Some(listing);
        }
    }

    /// A guest is no member any more.
    pub(super) fn left(&mut self, home: &NodeName, room: &str, guest: u64) {
        if let Some(visited) = self.rooms.get_mut(room).filter(|it| it.home == *home) {
            visited.own.remove(&guest);
            if visited.own.is_empty() {
                self.rooms.remove(room);
            }
        }
    }

    /// Sends messages of a node to a guest that it knows.
    pub(super) fn whisper(&self, from: &NodeName, guest: u64, texts: &[String]) {
        let visitor = self.guests.get(&guest);
        if let Some(visitor) = visitor.filter(|it| it.nodes.contains(from)) {
            for text in texts {
                send(&visitor.handle, text);
            }
        }
    }

    /// Takes the history of a room.
    pub(super) fn note_history(&mut self, home: &NodeName, room: &str, texts: Vec<String>) {
        if let Some(visited) = self.rooms.get_mut(room).filter(|it| it.home == *home) {
            visited.history = History::new(MAX_HISTORY);
            for text in texts {
                visited.history.push(text);
            }
        }
    }

    /// Sends a message of a home to all members of a room, and notes what it changes.
    pub(super) fn publish(&mut self, home: &NodeName, room: &str, message: &str, news: News) {
        let Some(visited) = self.rooms.get_mut(room).filter(|it| it.home == *home) else {
            return;
        };
        let News { joined, gone, kept } = news;
        if let Some(kept) = kept {
            visited.history.push(match kept.is_empty() {
                true => message.to_owned(),
                false => kept,
            });
        }
        if let Some(names) = &mut visited.names {
            if let Some(Name { username, display }) = joined {
                names.insert(username, display);
            }
            if let Some(username) = gone {
                names.remove(&username);
            }
        }
        self.send(room, message);
    }

    fn send(&self, room: &str, message: &str) {
        let own = self.rooms.get(room).into_iter();
        let own = own.flat_map(|visited| visited.own.keys());
        for visitor in own.filter_map(|guest| self.guests.get(guest)) {
            send(&visitor.handle, message);
        }
    }

    /// Takes all members of a room. Members learn which of the others are new, or gone, since
    /// messages about them may be lost.
    pub(super) fn names(&mut self, home: &NodeName, id: &Id, names: Vec<Name>, json: JsonForm) {
        let room = id.to_string();
        let Some(visited) = self.rooms.get_mut(&room).filter(|it| it.home == *home) else {
            return;
        };
        let names = names.into_iter().map(|it| (it.username, it.display));
        let names: BTreeMap<_, _> = names.collect();
        let Some(before) = visited.names.replace(names.clone()) else {
            return;
        };
        let event = |what: &str, username: &str| {
            let event = Object::new().with("textroom", what);
            event.with("room", id.to_json()).with("username", username)
        };
        let gone = before.keys().filter(|name| !names.contains_key(*name));
        let gone = gone.map(|name| event("leave", name));
        let new = names.iter().filter(|(name, _)| !before.contains_key(*name));
        let new =
            new.map(|(name, display)| event("join", name).with_some("display", display.as_deref()));
        for event in gone.chain(new) {
            self.send(&room, &json.text(&Value::from(event)));
        }
    }

    /// Notes that a node is lost. Returns its rooms.
    pub(super) fn lose_node(&mut self, node: &str) -> Vec<String> {
        self.asks.retain(|_, ask| *ask.home != *node);
        let rooms = self.rooms.iter();
        let of_node = rooms.filter(|(_, visited)| *visited.home == *node);
        of_node.map(|(room, _)| room.clone()).collect()
    }

    /// Returns the home of a visited room.
    pub(super) fn home(&self, room: &str) -> Option<NodeName> {
        self.rooms.get(room).map(|visited| visited.home.clone())
    }

    /// Takes a room, to have it here.
    pub(super) fn take(&mut self, room: &str) -> Option<(Visited, HashMap<u64, Handle>)> {
        let visited = self.rooms.remove(room)?;
        let handles = visited.own.keys().filter_map(|guest| {
            let visitor = self.guests.get(guest)?;
            Some((*guest, visitor.handle.clone()))
        });
        let handles = handles.collect();
        Some((visited, handles))
    }

    /// Notes that a room of a guest has come to this node.
    pub(super) fn come(&mut self, guest: u64, room: Weak<Room>) {
        if let Some(visitor) = self.guests.get_mut(&guest) {
            visitor.rooms.retain(|known| known.strong_count() > 0);
            visitor.rooms.push(room);
        }
    }

    /// Has a room at a home from now on. Returns its members of this node.
    pub(super) fn move_to(&mut self, home: &NodeName, room: &str) -> Option<Presence> {
        let visited = self.rooms.get_mut(room)?;
        visited.home = home.clone();
        let presence = visited.presence(room);
        for (guest, _) in &presence.members {
            if let Some(visitor) = self.guests.get_mut(guest) {
                visitor.nodes.insert(home.clone());
            }
        }
        Some(presence)
    }

    /// Adds a room of this node that has a home elsewhere from now on, with its members of this
    /// node, and all names.
    pub(super) fn add(
        &mut self,
        home: &NodeName,
        room: &str,
        members: Vec<(Handle, Name)>,
        names: Vec<Name>,
    ) {
        let mut visited = Visited::new(home.clone());
        let names = names.into_iter().map(|it| (it.username, it.display));
        visited.names = Some(names.collect());
        for (handle, name) in members {
            self.visit(&handle, home);
            visited.own.insert(handle.id().0, name);
        }
        self.rooms.insert(room.to_owned(), visited);
    }

    /// Returns the members that this node has at a home.
    fn at(&self, home: &NodeName) -> Vec<Presence> {
        let rooms = self.rooms.iter().filter(|(_, it)| it.home == *home);
        rooms.map(|(room, it)| it.presence(room)).collect()
    }
}

impl Visited {
    fn new(home: NodeName) -> Self {
        Visited {
            home,
            listing: None,
            own: BTreeMap::new(),
            names: None,
            history: History::new(MAX_HISTORY),
        }
    }

    fn presence(&self, room: &str) -> Presence {
        let members = self.own.iter();
        Presence {
            room: room.to_owned(),
            members: members.map(|(guest, it)| (*guest, it.clone())).collect(),
        }
    }
}

impl TextRooms {
    /// Tells a node which members this one has in its rooms.
    pub(super) fn present_all(&self, home: &NodeName) {
        let rooms = lock(&self.0.visits).at(home);
        self.send(home, &RoomMessage::Present { rooms, all: true });
    }
}
