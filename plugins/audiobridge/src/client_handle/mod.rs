//! A client's handle: its requests, and the events of its PeerConnection.

mod admission;
mod changes;
mod connection;
mod departure;
mod elsewhere;
mod listener;
mod rtp;

use std::sync::{Arc, Mutex, Weak};

use portunus_core::{
    Answered, Asked, Author, Fields, Handle, HandleEvent, Later, LocalJsep, Message, Object,
    PluginHandle, Preparation, Reply,
};
use portunus_resources::{Asker, Id};
use serde_json::{Map, Value, json};

use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::room::{Room, stats_json};
use crate::shared::Shared;

pub(crate) use admission::JoinRequest;
pub(crate) use changes::ok;
pub(crate) use listener::ListenRequest;

use connection::Connection;
use elsewhere::{Elsewhere, Prepared};

/// The handle of a client.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    place: Place,
    connection: Connection,
    /// The answer of another node to the request that comes next.
    prepared: Arc<Mutex<Option<Prepared>>>,
}

/// The place of a client. A destroyed room is dropped even if the client stays.
#[derive(Debug)]
enum Place {
    Idle,
    /// In a room as this participant, unless it was kicked meanwhile.
    In(Weak<Room>, Id),
    /// Listening to a room.
    Listening(Weak<Room>),
    /// In a room of another node, or listening to it.
    Elsewhere(Box<Elsewhere>),
}

/// The event for the client, with an offer or answer.
type Answer = Result<(Value, Option<LocalJsep>), Refusal>;

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached {
            handle,
            shared,
            place: Place::Idle,
            connection: Connection::default(),
            prepared: Arc::default(),
        }
    }

    /// Returns the room that the client is in, and its id there.
    fn participation(&mut self) -> Option<(Arc<Room>, Id)> {
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

    /// Returns the room that the client listens to.
    fn listened_room(&mut self) -> Option<Arc<Room>> {
        let Place::Listening(room) = &self.place else {
            return None;
        };
        let room = room.upgrade();
        let room = room.filter(|room| room.lock().listeners.has(self.handle.id()));
        if room.is_none() {
            self.place = Place::Idle;
        }
        room
    }

    fn request(&mut self, asked: Asked<Participation>, message: &Message) -> Answer {
        let (shared, fields) = (Arc::clone(&self.shared), Fields(&message.body));
        let asker = Asker::client(&self.handle, message);
        asker.check_scope(fields, "room", false)?;
        shared.rooms.guarded(fields, asker.maker, || {
            let rights = shared.rooms.rights(fields, asker.rights);
            let request = asked.permit(fields, rights)?;
            self.take(request, message, &Asker { rights, ..asker })
        })
    }

    fn take(&mut self, request: Participation, message: &Message, asker: &Asker) -> Answer {
        self.connection.refresh(&self.handle);
        match request {
            Participation::Join => self.join(message, asker),
            Participation::Configure => self.configure(message, asker.rights),
            Participation::Listen => self.listen(message, asker),
            Participation::ChangeRoom => self.change_room(message, asker).map(alone),
            Participation::Leave => self.leave().map(alone),
            // The PeerConnection is closed after the answer.
            Participation::Hangup => Ok(alone(json!({ "audiobridge": "hangingup" }))),
            Participation::ResetDecoder if self.is_elsewhere() => {
                self.reset_decoder_elsewhere();
                Ok(alone(json!({ "audiobridge": "success" })))
            }
            Participation::ResetDecoder => {
                let (room, id) = self.participation().ok_or(Refusal::NotInRoom("reset"))?;
                room.lock().reset_decoder(&id);
                Ok(alone(json!({ "audiobridge": "success" })))
            }
        }
    }

    /// Removes the client from its room, with its PeerConnection.
    fn end_participation(&mut self) {
        let handle = self.handle.id();
        match std::mem::replace(&mut self.place, Place::Idle) {
            // Dropping a stay elsewhere ends it.
            Place::Idle | Place::Elsewhere(_) => {}
            Place::In(room, id) => {
                if let Some(room) = room.upgrade() {
                    room.lock().lost(&id, handle);
                }
            }
            Place::Listening(room) => {
                if let Some(room) = room.upgrade() {
                    room.lock().listeners.remove(handle);
                }
            }
        }
    }
}

/// An answer without SDP.
fn alone(event: Value) -> (Value, Option<LocalJsep>) {
    (event, None)
}

impl PluginHandle for Attached {
    fn prepare_for(&self, body: &Map<String, Value>, author: &Author) -> Option<Preparation> {
        self.prepare_elsewhere(Fields(body), author)
    }

    fn abandon(&mut self) {
        drop(self.take_prepared());
    }

    fn message(&mut self, message: Message) -> Reply {
        let fields = Fields(&message.body);
        let refused = |refusal: Refusal| Reply::Success(refusal.to_json());
        let name = match fields.required("request") {
            Ok(name) => name,
            Err(error) => return refused(error.into()),
        };
        if let Some(asked) = Asked::<Management>::named(name) {
            let asker = Asker::client(&self.handle, &message);
            let managed = self.shared.manage(asked, fields, asker);
            return managed.unwrap_or_else(refused);
        }
        let Some(asked) = Asked::<Participation>::named(name) else {
            return refused(Refusal::UnknownRequest(name.to_ascii_lowercase()));
        };
        let answer = match self.take_prepared() {
            Some(prepared) => self.take_elsewhere(asked, &message, prepared),
            None => self.request(asked, &message),
        };
        let hangs_up = asked == Asked::unnamed(Participation::Hangup) && answer.is_ok();
        let (answer, jsep) = answer.unwrap_or_else(|refusal| alone(refusal.to_json()));
        match asked.answered() {
            Answered::Reply => Reply::Success(answer),
            Answered::Event => {
                self.handle.push(Some(&message.transaction), answer, jsep);
                self.welcome_elsewhere();
                if hangs_up {
                    self.hang_up();
                }
                Reply::Ack(None)
            }
        }
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Up => {
                self.connection.came_up();
                if let Some((room, id)) = self.participation() {
                    room.lock().came_up(&id, self.handle.id());
                }
                self.tell_media();
            }
            HandleEvent::Hangup(_) => {
                self.connection = Connection::default();
                self.end_participation();
            }
            // The mixer detects who talks.
            HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Paused { .. }
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
        let stats = room.upgrade()?.lock().stats(id, self.handle.id())?;
        let state = self.state();
        Some(Later::new(async move {
            let stats = stats.await.as_ref().map(stats_json);
            match stats {
                Some(stats) => state.with_all(stats).into(),
                None => state.into(),
            }
        }))
    }

    fn detach(&mut self) {
        self.end_participation();
    }
}

impl Attached {
    /// Returns the handle's state for administrators.
    fn state(&self) -> Object {
        let key = self.handle.id();
        let state = match &self.place {
            Place::Idle => None,
            Place::Elsewhere(place) => place.state(),
            Place::In(room, id) => {
                let room = room.upgrade();
                room.and_then(|room| room.lock().participant_state(id, key))
            }
            Place::Listening(room) => {
                let room = room.upgrade();
                let room = room.filter(|room| room.lock().listeners.has(key));
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

/// Removes the client if the handle ends by a fault of the plugin.
impl Drop for Attached {
    fn drop(&mut self) {
        self.end_participation();
    }
}
