//! A client's handle: its requests, and what happens to its PeerConnection.

mod peer_events;
mod preparations;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::{
    Asked, Author, Fields, Handle, HandleEvent, JsepKind, LocalJsep, Message, Object, PluginHandle,
    PluginRequest, Preparation, Reply,
};
use portunus_resources::{Asker, Id, Maker, RoomContent};
use portunus_room::{
    self as room, Configured, Join, Outcome, Permissions, PersonId, Room as Conference, State,
    Switch,
};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::entry::Entry;
use crate::messages::Show;
use crate::options::DoorOptions;
use crate::preparation::named;
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::requests::fields::{self, ConfigureRequest, JoinRequest};
use crate::requests::{Management, Participation};
use crate::room::{Door, Room};
use crate::shared::Shared;

/// A handle as long as its client is there.
pub(crate) struct ClientHandle {
    client: Arc<Client>,
    shared: Arc<Shared>,
    role: Role,
    /// The outcome of the work before the next request.
    prepared: Arc<Mutex<Prepared>>,
}

/// The room that the handle is in.
#[derive(Clone)]
struct Place {
    room: Arc<Room>,
    /// The conference of the room. Most requests need only this.
    conference: Arc<Conference>,
}

/// The role in which the handle has joined. A handle joins once.
enum Role {
    Fresh,
    Participant(Place, PersonId),
    Subscriber(Place),
    /// A subscription that was left.
    Left,
}

impl ClientHandle {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        let ids = shared.rooms.ids();
        ClientHandle {
            client: Arc::new(Client { handle, ids }),
            shared,
            role: Role::Fresh,
            prepared: Arc::new(Mutex::new(Prepared::Nothing)),
        }
    }

    fn take_prepared(&self) -> Prepared {
        let mut prepared = lock(&self.prepared);
        std::mem::replace(&mut *prepared, Prepared::Nothing)
    }

    /// Answers by events.
    fn request(
        &mut self,
        asked: Asked<Participation>,
        message: &Message,
        prepared: &Prepared,
    ) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let asker = Asker::client(&self.client.handle, message);
        asker.check_scope(fields, "room", false)?;
        let shared = Arc::clone(&self.shared);
        shared.rooms.guarded(fields, asker.maker, || {
            let rights = shared.rooms.rights(fields, asker.rights);
            let request = asked.permit(fields, rights)?;
            self.take(request, message, &Asker { rights, ..asker }, prepared)
        })
    }

    fn take(
        &mut self,
        request: Participation,
        message: &Message,
        asker: &Asker,
        prepared: &Prepared,
    ) -> Result<(), Refusal> {
        let joins = request.begins();
        match &self.role {
            Role::Fresh if joins => self.join(request, message, asker, prepared),
            Role::Fresh => Err(Refusal::JoinFirst),
            _ if joins => Err(Refusal::AlreadyJoined),
            Role::Participant(room, id) => {
                let (room, id) = (room.clone(), id.clone());
                self.participant(&room, &id, request, (message, asker), prepared)
            }
            Role::Subscriber(room) => {
                let conference = room.conference.clone();
                self.subscriber(&conference, request, message)
            }
            Role::Left => Err(room::Refusal::NotInRoom.into()),
        }
    }

    fn join(
        &mut self,
        request: Participation,
        message: &Message,
        asker: &Asker,
        prepared: &Prepared,
    ) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let ids = self.shared.rooms.ids();
        let room = self.shared.rooms.named(fields)?;
        let door = room.lock();
        let place = Place {
            room: room.clone(),
            conference: door.conference.clone(),
        };
        let mut state = door.conference.lock();
        if state.is_destroyed() {
            return Err(Refusal::NoSuchRoom(room.id.clone()));
        }
        let entry = match prepared {
            Prepared::Entered(entry) => Some(entry),
            _ => None,
        };
        let by_secret = match entry {
            Some(entry) => door.take_entry(entry, asker, fields)?,
            None => door.admit(asker, fields)?,
        };
        let (client, key) = (self.client.clone(), self.client.key());
        let (jsep, is_watch) = (message.jsep.as_ref(), request == Participation::Watch);
        self.role = if is_watch {
            let watch = fields::watch(fields, ids)?;
            let local = state.watch(client, &watch, jsep, by_secret)?;
            self.push(message, self.show(&state).attached(key), Some(local));
            Role::Subscriber(place)
        } else {
            match fields.required_string("ptype")? {
                "publisher" => {
                    let admission = Admission { by_secret, entry };
                    let joined =
                        self.join_publisher(&mut state, &door, request, admission, message, asker);
                    let id = joined?;
                    Role::Participant(place, id)
                }
                "subscriber" if jsep.is_some() => {
                    return Err(Refusal::Invalid("A subscriber does not offer"));
                }
                "subscriber" => {
                    let (join, feed) = fields::join_subscriber(fields, ids)?;
                    let offer = state.join_subscriber(client, join, by_secret)?;
                    let show = self.show(&state);
                    let attached = show.attached(key);
                    let attached = match feed.and_then(|feed| state.person(&feed)) {
                        Some(publisher) => attached
                            .with_all(show.named(publisher))
                            .with("warning", "deprecated_api"),
                        None => attached,
                    };
                    self.push(message, attached, Some(offer));
                    Role::Subscriber(place)
                }
                _ => return Err(Refusal::value("ptype", "publisher or subscriber")),
            }
        };
        Ok(())
    }

    /// Joins as a publisher. Returns the id.
    fn join_publisher(
        &self,
        state: &mut State,
        door: &Door,
        request: Participation,
        admission: Admission<'_>,
        message: &Message,
        asker: &Asker,
    ) -> Result<PersonId, Refusal> {
        let (fields, ids) = (Fields(&message.body), self.shared.rooms.ids());
        let Admission { by_secret, entry } = admission;
        let given = entry.and_then(|entry| entry.id.clone());
        let id = match &given {
            Some(_) => given.clone(),
            None => fields::wanted_id(fields, ids)?,
        };
        let joining: JoinRequest<'_> = fields.read()?;
        let configure = match request {
            Participation::JoinAndConfigure => {
                let mut configure = ConfigureRequest::read(fields, asker.rights)?;
                configure.configure.has_place = given.is_some();
                Some(configure)
            }
            _ => None,
        };
        match &given {
            Some(id) => state.yield_id(id),
            None if by_secret => {}
            None => door.allowed.check(joining.token)?,
        }
        let id = id.unwrap_or_else(|| fields::free_id(state, ids));
        let join = Join {
            id: id.clone(),
            profile: joining.profile,
            permissions: Permissions::ALL,
            talk: joining.talk,
        };
        state.join(self.client.clone(), join)?;
        let is_configured = configure.is_some();
        let (agreed, answer) = match configure {
            Some(configure) => {
                let (room_id, options) = (door.id(), &door.options);
                let configured = self.configure(state, room_id, options, &id, configure, message);
                let (configured, agreed) = configured.inspect_err(|_| state.undo_join(&id))?;
                (agreed, configured.answer)
            }
            None => (Object::new(), None),
        };
        self.push(
            message,
            self.show(state).joined(&id).with_all(agreed),
            answer,
        );
        if let Some(person) = state.person(&id) {
            let show = self.show(state);
            let joined = || show.has_joined(person, joining.token).into();
            self.client.handle.notify(joined);
        }
        if is_configured {
            self.notify_configured(state, &id);
        }
        Ok(id)
    }

    /// Changes the settings of a participant. Returns the outcome, and the members of the answer
    /// about the streams.
    fn configure(
        &self,
        room: &mut State,
        room_id: &Id,
        options: &DoorOptions,
        id: &PersonId,
        mut request: ConfigureRequest,
        message: &Message,
    ) -> Result<(Configured, Object), Refusal> {
        if options.lock_record {
            let secret = options.access.secret.as_deref();
            // A client without the right to record gets no refusal, but wrong secrets count.
            if request.records() {
                let maker = Maker::of(message.rights, message.client);
                let rooms = &self.shared.rooms;
                rooms.shows_secret(room_id, secret, Fields(&message.body), maker)?;
            }
            request = request.locked(secret);
        }
        let jsep = message.jsep.as_ref();
        let configured = room.configure(id, self.client.key(), &request.configure, jsep)?;
        let agreed = jsep.map(|jsep| self.show(room).agreed(id, &jsep.description));
        Ok((configured, agreed.unwrap_or_default()))
    }

    /// Tells the observers of the server that a participant has changed its settings.
    fn notify_configured(&self, room: &State, id: &PersonId) {
        let Some(person) = room.person(id) else {
            return;
        };
        let show = self.show(room);
        self.client.handle.notify(|| {
            show.event_of("configured")
                .with("id", show.id(id))
                .with("bitrate", person.settings.bitrate)
                .into()
        });
    }

    fn participant(
        &mut self,
        place: &Place,
        id: &PersonId,
        request: Participation,
        (message, asker): (&Message, &Asker),
        prepared: &Prepared,
    ) -> Result<(), Refusal> {
        let options = place.room.lock().options.clone();
        let mut state = place.conference.lock();
        let key = self.client.key();
        let publishes = state.publishes(id, key)?;
        match request {
            Participation::Publish | Participation::Configure => {
                if request == Participation::Publish && publishes {
                    return Err(Refusal::AlreadyPublished);
                }
                let mut configure = ConfigureRequest::read(Fields(&message.body), asker.rights)?;
                configure.configure.has_place = matches!(prepared, Prepared::Place);
                let room_id = &place.room.id;
                let (configured, agreed) =
                    self.configure(&mut state, room_id, &options, id, configure, message)?;
                let event = self.show(&state).event().with("configured", "ok");
                self.push(message, event.with_all(agreed), configured.answer);
                self.notify_configured(&state, id);
                if configured.changed {
                    state.send_updated(id);
                }
            }
            Participation::Unpublish => {
                state.media_ended(id)?;
                let event = self.show(&state).event().with("unpublished", "ok");
                self.push(message, event, None);
                self.client.handle.close_pc();
            }
            Participation::Leave => {
                state.leave(id, key)?;
                let event = self.show(&state).event().with("leaving", "ok");
                self.push(message, event, None);
                self.client.handle.close_pc();
            }
            _ => return Err(Refusal::Invalid("Not a request of participants")),
        }
        Ok(())
    }

    fn subscriber(
        &mut self,
        conference: &Conference,
        request: Participation,
        message: &Message,
    ) -> Result<(), Refusal> {
        let mut state = conference.lock();
        let key = self.client.key();
        state.check_subscriber(key)?;
        if let Some(jsep) = &message.jsep {
            if jsep.kind == JsepKind::Offer {
                return Err(room::Refusal::WrongSdpType.into());
            }
            state.accept(key, &jsep.description)?;
        }
        if request == Participation::Leave {
            state.leave_subscriber(key);
            let left = self.show(&state).event().with("left", "ok");
            self.push(message, left, None);
            self.client.handle.close_pc();
            self.role = Role::Left;
            return Ok(());
        }
        let outcome = self.change(&mut state, request, message);
        if message.jsep.is_some() {
            state.offer_pending(key);
        }
        outcome
    }

    /// Does what a subscriber asks for, and answers.
    fn change(
        &self,
        room: &mut State,
        request: Participation,
        message: &Message,
    ) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let (ids, key) = (self.shared.rooms.ids(), self.client.key());
        let (event, offer) = match request {
            Participation::Start => {
                room.pause(key, false)?;
                (self.show(room).event().with("started", "ok"), None)
            }
            Participation::Pause => {
                room.pause(key, true)?;
                (self.show(room).event().with("paused", "ok"), None)
            }
            Participation::Configure => {
                let configure = fields::subscriber_configure(fields)?;
                let outcome = room.configure_subscriber(key, &configure)?;
                let configured = self.show(room).event().with("configured", "ok");
                match outcome {
                    Outcome::Done => (configured, None),
                    // The next offer answers it.
                    Outcome::Later => return Ok(()),
                    Outcome::Offer(offer) => (configured, Some(offer)),
                }
            }
            Participation::Subscribe | Participation::Unsubscribe | Participation::Update => {
                let change = fields::change(fields, ids, request)?;
                let outcome = room.change(key, change)?;
                let show = self.show(room);
                match outcome {
                    Outcome::Done => (show.head("updated"), None),
                    Outcome::Later => (show.head("updating"), None),
                    Outcome::Offer(offer) => (show.offered(key), Some(offer)),
                }
            }
            Participation::Switch => {
                let switch = fields::switch(fields, ids)?;
                let feed = match &switch {
                    Switch::Feed(feed) => Some(feed.clone()),
                    Switch::Streams(_) => None,
                };
                let switched = room.switch(key, switch)?;
                let show = self.show(room);
                if switched.offer.is_some() {
                    self.push(message, show.offered(key), switched.offer);
                }
                let switch = || show.event_of("switched").into();
                self.client.handle.notify(switch);
                let event = show
                    .event()
                    .with("switched", "ok")
                    .with("changes", switched.changes)
                    .with("streams", show.lines(key));
                let event = match feed.and_then(|feed| room.person(&feed)) {
                    Some(publisher) => event
                        .with("id", show.id(publisher.id()))
                        .with_some("display", publisher.profile.display.as_deref()),
                    None => event,
                };
                (event, None)
            }
            _ => return Err(Refusal::Invalid("Not a request of subscribers")),
        };
        self.push(message, event, offer);
        Ok(())
    }

    fn show<'a>(&self, room: &'a State) -> Show<'a> {
        Show::new(self.client.ids, room)
    }

    fn push(&self, message: &Message, data: impl Into<Value>, jsep: Option<LocalJsep>) {
        let transaction = Some(message.transaction.as_str());
        self.client.handle.push(transaction, data, jsep);
    }

    /// Takes the client out of its room.
    fn go(&mut self) {
        let key = self.client.key();
        match std::mem::replace(&mut self.role, Role::Left) {
            Role::Participant(room, id) => {
                room.conference.lock().gone(&id, key);
            }
            Role::Subscriber(room) => room.conference.lock().leave_subscriber(key),
            Role::Fresh | Role::Left => {}
        }
    }
}

impl PluginHandle for ClientHandle {
    fn prepare_for(&self, body: &Map<String, Value>, author: &Author) -> Option<Preparation> {
        let fields = Fields(body);
        let asker = Asker::author(&self.client.handle, author);
        let work = match (named::<Management>(body), named::<Participation>(body)) {
            (Some(request), _) => self.shared.prepare_management(request, fields, &asker),
            (None, Some(request)) => self.prepare_participation(request, fields, author, &asker),
            (None, None) => None,
        };
        let (work, prepared) = (work?, self.prepared.clone());
        Some(Box::pin(async move {
            let outcome = work.await;
            *lock(&prepared) = outcome;
        }))
    }

    fn abandon(&mut self) {
        drop(self.take_prepared());
    }

    fn message(&mut self, message: Message) -> Reply {
        let subscribed = match &self.role {
            Role::Subscriber(room) if message.offer.is_some() => Some(room.conference.clone()),
            _ => None,
        };
        let reply = self.reply(&message);
        // The offer is refused, but it has replaced ours, which will have no answer.
        if let Some(conference) = subscribed {
            conference.lock().offer_replaced(self.client.key());
        }
        reply
    }

    fn event(&mut self, event: HandleEvent) {
        match &self.role {
            Role::Participant(place, id) => self.participant_event(&place.conference, id, event),
            Role::Subscriber(place) => self.subscriber_event(&place.conference, event),
            Role::Fresh | Role::Left => {}
        }
    }

    fn query(&self) -> Value {
        let key = self.client.key();
        match &self.role {
            Role::Participant(room, id) => {
                let state = room.conference.lock();
                match state.publishes(id, key).ok().and_then(|_| state.person(id)) {
                    Some(person) => self.show(&state).participant_state(person),
                    None => json!({ "type": "publisher", "destroyed": 1 }),
                }
            }
            Role::Subscriber(room) => {
                let state = self.show(&room.conference.lock()).subscriber_state(key);
                state.unwrap_or_else(|| json!({ "type": "subscriber", "destroyed": 1 }))
            }
            Role::Fresh | Role::Left => json!({ "type": "none" }),
        }
    }

    fn detach(&mut self) {
        self.go();
    }
}

impl ClientHandle {
    fn reply(&mut self, message: &Message) -> Reply {
        let name = match Fields(&message.body).required_string("request") {
            Ok(name) => name,
            Err(error) => return refuse(&error.into()),
        };
        let prepared = self.take_prepared();
        if let Some(asked) = Asked::<Participation>::named(name) {
            let outcome = match prepared {
                Prepared::Answer(answer) => Err(answer),
                prepared => self
                    .request(asked, message, &prepared)
                    .map_err(|refusal| refusal.to_json()),
            };
            if let Err(answer) = outcome {
                self.push(message, answer, None);
            }
            return Reply::Ack(None);
        }
        let prepared = match prepared {
            Prepared::Answer(answer) => return Reply::Success(answer),
            prepared => prepared,
        };
        let asker = Asker::client(&self.client.handle, message);
        let fields = Fields(&message.body);
        let reply = self.shared.manage_named(name, fields, asker, prepared);
        reply.unwrap_or_else(|refusal| refuse(&refusal))
    }
}

/// How a client was let in.
#[derive(Clone, Copy)]
struct Admission<'a> {
    /// It has shown the room's secret, so a token of the room's list is not needed.
    by_secret: bool,
    /// What the home of the room has decided, if that is another node.
    entry: Option<&'a Entry>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refuse(refusal: &Refusal) -> Reply {
    Reply::Success(refusal.to_json())
}

/// A panic of the plugin drops the handle. It must not stay in the room.
impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.go();
    }
}
