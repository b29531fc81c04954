//! A client's handle: its requests, and what happens to its PeerConnection.

mod change;
mod configure;
mod connection;
mod join;
mod listen;
mod rtp;

use std::sync::{Arc, Weak};

use portunus_core::{
    Fields, Handle, HandleEvent, Jsep, JsepKind, Later, LocalJsep, Message, Object, PluginHandle,
    Reply,
};
use portunus_resources::{Id, Maker};
use serde_json::{Value, json};

use crate::manage::Asker;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::requests::REQUESTS;
use crate::room::{Room, shown};

use connection::Connection;

/// A handle as long as its client is there.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    place: Place,
    connection: Connection,
}

/// Where a client is. A room that was destroyed ends, however long the client stays.
#[derive(Debug, Clone)]
enum Place {
    Idle,
    /// In a room, as this participant, unless it was thrown out meanwhile.
    In(Weak<Room>, Id),
    /// It hears a room and is not in it.
    Listening(Weak<Room>),
}

/// The requests that are answered by events.
const ASYNCHRONOUS: [&str; 6] = [
    "join",
    "configure",
    "changeroom",
    "leave",
    "hangup",
    "listen",
];

/// An event that answers a request, with an offer or answer.
type Answered = Result<(Value, Option<LocalJsep>), Refusal>;

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached {
            handle,
            shared,
            place: Place::Idle,
            connection: Connection::default(),
        }
    }

    /// The room that the client is in, and as whom.
    fn here(&mut self) -> Option<(Arc<Room>, Id)> {
        let Place::In(room, id) = &self.place else {
            return None;
        };
        let room = room.upgrade();
        let room = room.filter(|room| room.lock().has(id, self.handle.id()));
        let Some(room) = room else {
            self.place = Place::Idle;
            return None;
        };
        Some((room, id.clone()))
    }

    /// The room that the client listens to.
    fn heard(&mut self) -> Option<Arc<Room>> {
        let Place::Listening(room) = &self.place else {
            return None;
        };
        let room = room.upgrade();
        let room = room.filter(|room| room.lock().has_listener(self.handle.id()));
        if room.is_none() {
            self.place = Place::Idle;
        }
        room
    }

    /// Does what is answered by an event.
    fn request(&mut self, name: &str, message: &Message) -> Answered {
        in_scope(name, message)?;
        let shared = Arc::clone(&self.shared);
        let maker = Maker::of(message.rights, message.client);
        shared
            .rooms
            .guarded(Fields(&message.body), maker, || self.take(name, message))
    }

    fn take(&mut self, name: &str, message: &Message) -> Answered {
        let fields = Fields(&message.body);
        let rights = self.shared.check(name, fields, message.rights)?;
        self.connection.refresh(&self.handle);
        match name {
            "join" => self.join(message, rights),
            "configure" => self.configure(message, rights),
            "listen" => self.listen(message),
            "changeroom" => self.change_room(message).map(alone),
            "leave" => self.leave().map(alone),
            // It is closed once the client is told.
            _ => Ok(alone(json!({ "audiobridge": "hangingup" }))),
        }
    }

    /// Answers at once.
    fn manage(&mut self, name: &str, message: &Message) -> Result<Reply, Refusal> {
        in_scope(name, message)?;
        let (shared, fields) = (Arc::clone(&self.shared), Fields(&message.body));
        let maker = Maker::of(message.rights, message.client);
        shared.rooms.guarded(fields, maker, || {
            let rights = shared.check(name, fields, message.rights)?;
            if name == "resetdecoder" {
                let (room, id) = self.here().ok_or(Refusal::NotInRoom("reset"))?;
                room.lock().reset_decoder(&id);
                return Ok(Reply::Success(json!({ "audiobridge": "success" })));
            }
            let asker = Asker {
                client: Some((&self.handle, &message.scope)),
                rights,
                maker,
            };
            shared.manage(name, fields, asker)
        })
    }

    /// Takes the client out of where it is, with its PeerConnection.
    fn go(&mut self) {
        let handle = self.handle.id();
        match std::mem::replace(&mut self.place, Place::Idle) {
            Place::Idle => {}
            Place::In(room, id) => {
                if let Some(room) = room.upgrade() {
                    room.lock().lost(&id, handle);
                }
            }
            Place::Listening(room) => {
                if let Some(room) = room.upgrade() {
                    room.lock().remove_listener(handle);
                }
            }
        }
    }

    /// An offer that is not answered leaves nothing behind.
    fn discard_offer(&self, message: &Message) {
        let offers = |jsep: &Jsep| jsep.kind == JsepKind::Offer;
        if message.jsep.as_ref().is_some_and(offers) {
            self.handle.discard_offer();
        }
    }
}

/// An event without an offer or answer.
fn alone(event: Value) -> (Value, Option<LocalJsep>) {
    (event, None)
}

/// Whether a request may name the room that it names.
fn in_scope(name: &str, message: &Message) -> Result<(), Refusal> {
    let room = message.body.get("room");
    Ok(message.scope.check(room, name == "create")?)
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let name = match Fields(&message.body).required_string("request") {
            Ok(name) => name.to_ascii_lowercase(),
            Err(error) => {
                self.discard_offer(&message);
                return Reply::Success(Refusal::from(error).to_json());
            }
        };
        if REQUESTS.reach(&name).is_some() && ASYNCHRONOUS.contains(&name.as_str()) {
            let (event, jsep) = match self.request(&name, &message) {
                Ok(answered) => answered,
                Err(refusal) => (refusal.to_json(), None),
            };
            if jsep.is_none() {
                self.discard_offer(&message);
            }
            let is_refused = event.get("error_code").is_some();
            self.handle.push(Some(&message.transaction), event, jsep);
            if name == "hangup" && !is_refused {
                self.hang_up();
            }
            return Reply::Ack(None);
        }
        self.discard_offer(&message);
        let managed = match REQUESTS.reach(&name) {
            Some(_) => self.manage(&name, &message),
            None => Err(Refusal::UnknownRequest(name)),
        };
        managed.unwrap_or_else(|refusal| Reply::Success(refusal.to_json()))
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Up => {
                self.connection.came_up();
                if let Some((room, id)) = self.here() {
                    room.lock().came_up(&id, self.handle.id());
                }
            }
            HandleEvent::Hangup(_) => {
                self.connection = Connection::default();
                self.go();
            }
            // The mixer hears who talks.
            HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::Data(_)
            | HandleEvent::DataChannel { .. } => {}
        }
    }

    fn query(&self) -> Value {
        self.state().into()
    }

    fn query_later(&self) -> Option<Later> {
        let Place::In(room, id) = &self.place else {
            return None;
        };
        let figures = room.upgrade()?.lock().figures(id, self.handle.id())?;
        let state = self.state();
        Some(Later::new(async move {
            let figures = figures.await.as_ref().map(shown);
            match figures {
                Some(figures) => state.with_all(figures).into(),
                None => state.into(),
            }
        }))
    }

    fn detach(&mut self) {
        self.go();
    }
}

impl Attached {
    /// The handle's state, for administrators.
    fn state(&self) -> Object {
        let key = self.handle.id();
        let state = match &self.place {
            Place::Idle => None,
            Place::In(room, id) => {
                let room = room.upgrade();
                room.and_then(|room| room.lock().participant_state(id, key))
            }
            Place::Listening(room) => {
                let room = room.upgrade();
                let room = room.filter(|room| room.lock().has_listener(key));
                room.map(|room| {
                    Object::new()
                        .with("state", "listening")
                        .with("room", room.id.to_json())
                })
            }
        };
        let state = state.unwrap_or_else(|| Object::new().with("state", "idle"));
        state
            .with("plugin-offer", self.connection.is_ours())
            .with("started", self.connection.is_up())
            .with("hangingup", 0)
            .with("destroyed", 0)
    }
}

/// A plugin's fault ends the handle without a word: it does not stay in the room.
impl Drop for Attached {
    fn drop(&mut self) {
        self.go();
    }
}
