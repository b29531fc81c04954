//! A client's handle: its requests, and what happens to its PeerConnection.

use std::sync::Arc;

use portunus_core::{
    Answered, Asked, Fields, Handle, HandleEvent, JsepKind, LocalJsep, Message, Object,
    PluginHandle, Reply, Rights,
};
use portunus_resources::Maker;
use portunus_room::{self as room, Configured, Join, Outcome, Permissions, PersonId, Switch};
use serde_json::{Value, json};

use crate::Shared;
use crate::client::Client;
use crate::read::{self, ConfigureRequest};
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::room::{Locked, Room};
use crate::show::Show;

/// A handle as long as its client is there.
pub(crate) struct Attached {
    client: Arc<Client>,
    shared: Arc<Shared>,
    role: Role,
}

/// What the handle has joined as; it does so once in its life.
enum Role {
    Fresh,
    Participant(Arc<Room>, PersonId),
    Subscriber(Arc<Room>),
    /// A subscription that was left.
    Left,
}

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        let ids = shared.rooms.ids();
        Attached {
            client: Arc::new(Client { handle, ids }),
            shared,
            role: Role::Fresh,
        }
    }

    /// Answers by events.
    fn request(&mut self, asked: Asked<Request>, message: &Message) -> Result<(), Refusal> {
        let (shared, fields) = (Arc::clone(&self.shared), Fields(&message.body));
        let maker = Maker::of(message.rights, message.client);
        shared.rooms.guarded(fields, maker, || {
            let (request, rights) = shared.permit(asked, message)?;
            self.take(request, message, rights)
        })
    }

    fn take(&mut self, request: Request, message: &Message, rights: Rights) -> Result<(), Refusal> {
        let joins = request.joins();
        match &self.role {
            Role::Fresh if joins => self.join(request, message, rights),
            Role::Fresh => Err(Refusal::JoinFirst),
            _ if joins => Err(Refusal::AlreadyJoined),
            Role::Participant(room, id) => {
                let (room, id) = (room.clone(), id.clone());
                self.participant(&room, &id, request, message, rights)
            }
            Role::Subscriber(room) => {
                let room = room.clone();
                self.subscriber(&room, request, message)
            }
            Role::Left => Err(room::Refusal::NotInRoom.into()),
        }
    }

    /// Answers at once.
    fn manage(&self, asked: Asked<Request>, message: &Message) -> Result<Reply, Refusal> {
        let (shared, fields) = (&self.shared, Fields(&message.body));
        let maker = Maker::of(message.rights, message.client);
        shared.rooms.guarded(fields, maker, || {
            let (request, rights) = shared.permit(asked, message)?;
            let client = Some((&self.client, &message.scope));
            shared.manage(request, fields, client, (rights, maker))
        })
    }

    fn join(&mut self, request: Request, message: &Message, rights: Rights) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let ids = self.shared.rooms.ids();
        let room = self.shared.rooms.named(fields)?;
        let mut state = room.lock();
        state.check_there()?;
        // Of the wrong type they are refused with the secret and without it.
        for name in ["pin", "token"] {
            fields.string(name)?;
        }
        let options = &state.door.options;
        let by_secret = options.access.shows_secret(fields);
        if !by_secret {
            let client = (&self.client.handle, &message.scope);
            options.check_signed_token(&room.id, client, fields)?;
            options.access.check_pin(fields)?;
        }
        let (client, key) = (self.client.clone(), self.client.key());
        let jsep = message.jsep.as_ref();
        if request == Request::Watch {
            let watch = read::watch(fields, ids)?;
            let local = state.watch(client, &watch, jsep, by_secret)?;
            self.push(message, state.show().attached(key), Some(local));
            drop(state);
            self.role = Role::Subscriber(room);
            return Ok(());
        }
        match fields.required_string("ptype")? {
            "publisher" => {
                let id = read::wanted_id(fields, ids)?;
                let profile = read::profile(fields)?;
                let token = fields.string("token")?;
                let talk = read::talk(fields)?;
                let configure = match request {
                    Request::JoinAndConfigure => Some(read::configure(fields, rights)?),
                    _ => None,
                };
                if !by_secret {
                    state.door.allowed.check(token)?;
                }
                let id = id.unwrap_or_else(|| state.free_id());
                let join = Join {
                    id: id.clone(),
                    profile,
                    permissions: Permissions::ALL,
                    talk,
                };
                state.join(client, join)?;
                let is_configured = configure.is_some();
                let configured = configure
                    .map(|configure| self.configure(&mut state, &id, configure, message))
                    .transpose();
                let configured = configured.inspect_err(|_| state.undo_join(&id))?;
                let joined = state.show().joined(&id);
                let (joined, answer) = match configured {
                    Some((configured, agreed)) => (joined.with_all(agreed), configured.answer),
                    None => (joined, None),
                };
                self.push(message, joined, answer);
                if let Some(person) = state.person(&id) {
                    let joined = |show: Show<'_>| show.has_joined(person, token).into();
                    state.notify(Some(&self.client), joined);
                }
                if is_configured {
                    self.notify_configured(&state, &id);
                }
                drop(state);
                self.role = Role::Participant(room, id);
                Ok(())
            }
            "subscriber" => {
                if jsep.is_some() {
                    return Err(Refusal::Invalid("A subscriber does not offer"));
                }
                let (join, feed) = read::join_subscriber(fields, ids)?;
                let offer = state.join_subscriber(client, join, by_secret)?;
                let show = state.show();
                let attached = show.attached(key);
                let attached = match feed.and_then(|feed| state.person(&feed)) {
                    Some(publisher) => attached
                        .with_all(show.named(publisher))
                        .with("warning", "deprecated_api"),
                    None => attached,
                };
                self.push(message, attached, Some(offer));
                drop(state);
                self.role = Role::Subscriber(room);
                Ok(())
            }
            _ => Err(Refusal::value("ptype", "publisher or subscriber")),
        }
    }

    /// Changes how a participant publishes. Returns the outcome, and what the answer says of the streams.
    fn configure(
        &self,
        room: &mut Locked<'_>,
        id: &PersonId,
        request: ConfigureRequest,
        message: &Message,
    ) -> Result<(Configured, Object), Refusal> {
        let mut request = request;
        let options = &room.door.options;
        if options.lock_record {
            let secret = options.access.secret.as_deref();
            // Whoever may not record in a room is not told, but may not try its secret for ever.
            if request.records {
                let maker = Maker::of(message.rights, message.client);
                let secret = (&room.room.id, secret);
                let rooms = &self.shared.rooms;
                rooms.shows_secret(secret, Fields(&message.body), maker)?;
            }
            request = request.locked(secret);
        }
        let jsep = message.jsep.as_ref();
        let configured = room.configure(id, self.client.key(), &request.configure, jsep)?;
        let agreed = jsep.map(|jsep| room.show().agreed(id, &jsep.description));
        Ok((configured, agreed.unwrap_or_default()))
    }

    /// Tells whoever watches the server that a participant has set how its media is treated.
    fn notify_configured(&self, room: &Locked<'_>, id: &PersonId) {
        let Some(person) = room.person(id) else {
            return;
        };
        room.notify(Some(&self.client), |show| {
            show.event_of("configured")
                .with("id", show.id(id))
                .with("bitrate", person.settings.bitrate)
                .into()
        });
    }

    fn participant(
        &mut self,
        room: &Room,
        id: &PersonId,
        request: Request,
        message: &Message,
        rights: Rights,
    ) -> Result<(), Refusal> {
        let mut state = room.lock();
        let key = self.client.key();
        let publishes = state.publishes(id, key)?;
        match request {
            Request::Publish | Request::Configure => {
                if request == Request::Publish && publishes {
                    return Err(Refusal::AlreadyPublished);
                }
                let configure = read::configure(Fields(&message.body), rights)?;
                let (configured, agreed) = self.configure(&mut state, id, configure, message)?;
                let event = state.show().event().with("configured", "ok");
                self.push(message, event.with_all(agreed), configured.answer);
                self.notify_configured(&state, id);
                if configured.changed {
                    state.tell_updated(id);
                }
            }
            Request::Unpublish => {
                state.media_ended(id)?;
                let event = state.show().event().with("unpublished", "ok");
                self.push(message, event, None);
                self.client.handle.close_pc();
            }
            Request::Leave => {
                state.leave(id, key)?;
                let event = state.show().event().with("leaving", "ok");
                self.push(message, event, None);
                self.client.handle.close_pc();
            }
            _ => return Err(Refusal::Invalid("Not a request of participants")),
        }
        Ok(())
    }

    fn subscriber(
        &mut self,
        room: &Room,
        request: Request,
        message: &Message,
    ) -> Result<(), Refusal> {
        let mut state = room.lock();
        let key = self.client.key();
        state.check_subscriber(key)?;
        let answer = match &message.jsep {
            Some(jsep) if jsep.kind == JsepKind::Offer => {
                return Err(room::Refusal::WrongSdpType.into());
            }
            Some(jsep) => Some(&jsep.description),
            None => None,
        };
        if let Some(answer) = answer {
            state.accept(key, answer)?;
        }
        if request == Request::Leave {
            state.leave_subscriber(key);
            let left = state.show().event().with("left", "ok");
            self.push(message, left, None);
            self.client.handle.close_pc();
            self.role = Role::Left;
            return Ok(());
        }
        let outcome = self.change(&mut state, request, message);
        if answer.is_some() {
            state.offer_pending(key);
        }
        outcome
    }

    /// Does what a subscriber asks for, and answers.
    fn change(
        &self,
        room: &mut Locked<'_>,
        request: Request,
        message: &Message,
    ) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let (ids, key) = (self.shared.rooms.ids(), self.client.key());
        let (event, offer) = match request {
            Request::Start => {
                room.pause(key, false)?;
                (room.show().event().with("started", "ok"), None)
            }
            Request::Pause => {
                room.pause(key, true)?;
                (room.show().event().with("paused", "ok"), None)
            }
            Request::Configure => {
                let configure = read::subscriber_configure(fields)?;
                let outcome = room.configure_subscriber(key, &configure)?;
                let configured = room.show().event().with("configured", "ok");
                match outcome {
                    Outcome::Done => (configured, None),
                    // What waits is told with the next offer.
                    Outcome::Later => return Ok(()),
                    Outcome::Offer(offer) => (configured, Some(offer)),
                }
            }
            Request::Subscribe | Request::Unsubscribe | Request::Update => {
                let change = read::change(fields, ids, request)?;
                let outcome = room.change(key, change)?;
                let show = room.show();
                match outcome {
                    Outcome::Done => (show.told("updated"), None),
                    Outcome::Later => (show.told("updating"), None),
                    Outcome::Offer(offer) => (show.offered(key), Some(offer)),
                }
            }
            Request::Switch => {
                let switch = read::switch(fields, ids)?;
                let feed = match &switch {
                    Switch::Feed(feed) => Some(feed.clone()),
                    Switch::Streams(_) => None,
                };
                let switched = room.switch(key, switch)?;
                let show = room.show();
                if switched.offer.is_some() {
                    self.push(message, show.offered(key), switched.offer);
                }
                room.notify(Some(&self.client), |show| show.event_of("switched").into());
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

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let subscribed = match &self.role {
            Role::Subscriber(room) if message.offer.is_some() => Some(room.conference.clone()),
            _ => None,
        };
        let reply = self.reply(&message);
        // A subscriber's offer is refused, but has taken the place of ours, which nobody will answer.
        if let Some(conference) = subscribed {
            conference.lock().offer_replaced(self.client.key());
        }
        reply
    }

    fn event(&mut self, event: HandleEvent) {
        let key = self.client.key();
        match &self.role {
            Role::Participant(room, id) => {
                let mut state = room.conference.lock();
                if state.publishes(id, key).is_err() {
                    return;
                }
                match event {
                    HandleEvent::Up => {
                        if state.media_up(id) {
                            state.announce(id, &room.conference);
                        }
                    }
                    HandleEvent::SlowLink {
                        from_client: true, ..
                    } => {
                        let bitrate = state.person(id).map(|person| person.settings.bitrate);
                        let event = Object::new()
                            .with("videoroom", "slow_link")
                            .with_some("current-bitrate", bitrate);
                        self.client.handle.push(None, event, None);
                    }
                    HandleEvent::Talking {
                        mid,
                        talking,
                        average,
                    } => state.heard(id, mid, talking, average),
                    HandleEvent::Speech { mid, activity } => state.speech(id, mid, activity),
                    // A PeerConnection that was never agreed on has nothing that ends.
                    HandleEvent::Hangup(_) => drop(state.media_ended(id)),
                    HandleEvent::SlowLink { .. }
                    | HandleEvent::Media { .. }
                    | HandleEvent::Layer { .. }
                    | HandleEvent::Remb(_)
                    // Nobody has subscribed to it.
                    | HandleEvent::Data(_)
                    | HandleEvent::DataChannel { .. } => {}
                }
            }
            Role::Subscriber(room) => match event {
                HandleEvent::Layer {
                    route,
                    layer,
                    reason,
                } => {
                    let mut state = room.conference.lock();
                    state.layer_changed(key, route, layer, reason);
                }
                HandleEvent::SlowLink {
                    from_client: false, ..
                } => {
                    let event = json!({ "videoroom": "slow_link" });
                    self.client.handle.push(None, event, None);
                }
                HandleEvent::Up => {
                    let state = room.lock();
                    if state.subscriber(key).is_some() {
                        let subscribed = |show: Show<'_>| show.event_of("subscribed").into();
                        state.notify(Some(&self.client), subscribed);
                    }
                }
                HandleEvent::Hangup(_) => room.conference.lock().subscriber_hung_up(key),
                HandleEvent::Talking { .. }
                | HandleEvent::Speech { .. }
                | HandleEvent::SlowLink { .. }
                | HandleEvent::Media { .. }
                | HandleEvent::Remb(_)
                | HandleEvent::Data(_)
                | HandleEvent::DataChannel { .. } => {}
            },
            Role::Fresh | Role::Left => {}
        }
    }

    fn query(&self) -> Value {
        let key = self.client.key();
        match &self.role {
            Role::Participant(room, id) => {
                let state = room.lock();
                match state.publishes(id, key).ok().and_then(|_| state.person(id)) {
                    Some(person) => state.show().participant_state(person),
                    None => json!({ "type": "publisher", "destroyed": 1 }),
                }
            }
            Role::Subscriber(room) => {
                let state = room.lock().show().subscriber_state(key);
                state.unwrap_or_else(|| json!({ "type": "subscriber", "destroyed": 1 }))
            }
            Role::Fresh | Role::Left => json!({ "type": "none" }),
        }
    }

    fn detach(&mut self) {
        self.go();
    }
}

impl Attached {
    fn reply(&mut self, message: &Message) -> Reply {
        let name = match Fields(&message.body).required_string("request") {
            Ok(name) => name,
            Err(error) => return refuse(&error.into()),
        };
        let Some(asked) = Asked::<Request>::named(name) else {
            return refuse(&Refusal::UnknownRequest(name.to_ascii_lowercase()));
        };
        match asked.answered() {
            Answered::Reply => {
                let reply = self.manage(asked, message);
                reply.unwrap_or_else(|refusal| refuse(&refusal))
            }
            Answered::Event => {
                if let Err(refusal) = self.request(asked, message) {
                    self.push(message, refusal.to_json(), None);
                }
                Reply::Ack(None)
            }
        }
    }
}

fn refuse(refusal: &Refusal) -> Reply {
    Reply::Success(refusal.to_json())
}

/// A plugin's fault ends the handle without a word: it does not stay in the room.
impl Drop for Attached {
    fn drop(&mut self) {
        self.go();
    }
}
