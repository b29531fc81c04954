//! Clients of a room and observers of the server: how the room tells them what happens.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use portunus_sdp::LocalJsep;

use super::State;
use crate::{Connection, ConnectionId, Event, Notice, PersonId};

/// A client of a door: its PeerConnection, and the way to tell it what happens in the room.
///
/// The room calls all methods under its lock: they must neither block nor lock the room.
pub trait Client: Connection {
    /// Tells the client something, with an `offer` if there is one.
    fn send(&self, told: &Told<'_>, offer: Option<LocalJsep>);

    /// Tells the observers of the server what this client has done.
    fn notify(&self, room: &State, event: &Event<'_>);

    /// Other nodes want other layers of what the client publishes ([`State::wanted_layer`]).
    fn wanted(&self) {}

    /// A client of another node has the same id. `note` is what its door tells the same door here
    /// ([`State::set_note`]).
    fn contested(&self, note: Option<&str>) {
        let _ = note;
    }

    /// Returns whether it is told of participants who join in every room, also where
    /// [`crate::RoomSettings::notify_joining`] is off.
    fn hears_joins(&self) -> bool {
        false
    }

    /// Returns whether its door reads [`State::speaking`], so that speech has to be measured.
    fn hears_speech(&self) -> bool {
        false
    }
}

/// The observers of the server.
pub trait Watcher: fmt::Debug + Send + Sync {
    /// Returns whether there is an observer. The room skips work that only observers need if not.
    fn is_watching(&self) -> bool;

    /// Tells the observers about an event that no client has caused.
    fn notify(&self, room: &State, event: &Event<'_>);
}

/// A notice on its way to one client or to many. Each door writes it once for all its clients.
pub struct Told<'a> {
    /// The room.
    pub room: &'a State,
    /// The notice to write.
    pub notice: Notice<'a>,
    /// The written forms, one for each door.
    written: RefCell<Vec<Rc<dyn Any>>>,
}

impl<'a> Told<'a> {
    pub(super) fn new(room: &'a State, notice: Notice<'a>) -> Self {
        Told {
            room,
            notice,
            written: RefCell::default(),
        }
    }

    /// Returns the notice in a door's form. Calls `write` for the first client of the door only.
    pub fn written<T: 'static>(&self, write: impl FnOnce() -> T) -> Rc<T> {
        let mut all = self.written.borrow_mut();
        let known = all.iter().cloned().find_map(|it| it.downcast::<T>().ok());
        known.unwrap_or_else(|| {
            let written = Rc::new(write());
            all.push(written.clone());
            written
        })
    }
}

impl fmt::Debug for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notice.fmt(f)
    }
}

/// The clients of a room: those of its participants, and those of its subscriptions.
#[derive(Debug, Default)]
pub(super) struct Clients {
    participants: HashMap<PersonId, Arc<dyn Client>>,
    /// The number of participants whose door reads who speaks.
    listeners: usize,
    subscribers: HashMap<ConnectionId, Arc<dyn Client>>,
}

impl Clients {
    pub(super) fn add_participant(&mut self, id: PersonId, client: Arc<dyn Client>) {
        self.remove_participant(&id);
        self.listeners += usize::from(client.hears_speech());
        self.participants.insert(id, client);
    }

    /// Returns whether the door of a participant reads who speaks.
    pub(super) const fn hear_speech(&self) -> bool {
        self.listeners > 0
    }

    pub(super) fn remove_participant(&mut self, id: &PersonId) -> Option<Arc<dyn Client>> {
        let client = self.participants.remove(id)?;
        self.listeners -= usize::from(client.hears_speech());
        Some(client)
    }

    pub(super) fn participant(&self, id: &PersonId) -> Option<&dyn Client> {
        self.participants.get(id).map(|client| &**client)
    }

    /// Returns the clients of all participants that have one: of no remote ones, and no dummy.
    pub(super) fn participants(&self) -> impl Iterator<Item = (&PersonId, &dyn Client)> {
        let participants = self.participants.iter();
        participants.map(|(id, client)| (id, &**client))
    }

    pub(super) fn add_subscriber(&mut self, client: Arc<dyn Client>) {
        self.subscribers.insert(client.id(), client);
    }

    pub(super) fn remove_subscriber(&mut self, key: ConnectionId) {
        self.subscribers.remove(&key);
    }

    pub(super) fn subscriber(&self, key: ConnectionId) -> Option<&dyn Client> {
        self.subscribers.get(&key).map(|client| &**client)
    }

    /// Tells those who hear of all joins, except `subject`.
    pub(super) fn send_join(&self, subject: &PersonId, told: &Told<'_>) {
        let others = self.participants().filter(|(id, _)| *id != subject);
        for (_, client) in others.filter(|(_, client)| client.hears_joins()) {
            client.send(told, None);
        }
    }

    /// Tells all participants but `subject`.
    pub(super) fn send(&self, subject: Option<&PersonId>, told: &Told<'_>) {
        for (_, client) in self.participants().filter(|(id, _)| Some(*id) != subject) {
            client.send(told, None);
        }
    }
}
