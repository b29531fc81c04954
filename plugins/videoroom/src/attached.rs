//! A client's handle: its requests, and what happens to its PeerConnection.

use std::sync::Arc;

use portunus_core::{
    Fields, Handle, HandleEvent, JsepKind, LocalJsep, Message, Object, PluginHandle, Reply, Rights,
};
use portunus_resources::{Id, Maker};
use serde_json::{Value, json};

use crate::Shared;
use crate::publication::Configure;
use crate::refusal::Refusal;
use crate::requests::REQUESTS;
use crate::room::{Join, Room, RoomState};
use crate::subscription::{Change, SubscriberConfigure, SubscriberJoin, Switch, Watch};

/// A handle as long as its client is there.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    role: Role,
}

/// What the handle has joined as; it does so once in its life.
enum Role {
    Fresh,
    Participant(Arc<Room>, Id),
    Subscriber(Arc<Room>),
    /// A subscription that was left.
    Left,
}

/// The requests that are answered by events.
const ASYNCHRONOUS: [&str; 13] = [
    "join",
    "watch",
    "joinandconfigure",
    "configure",
    "publish",
    "unpublish",
    "leave",
    "start",
    "pause",
    "subscribe",
    "unsubscribe",
    "update",
    "switch",
];

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached {
            handle,
            shared,
            role: Role::Fresh,
        }
    }

    /// Answers by events.
    fn request(&mut self, name: &str, message: &Message) -> Result<(), Refusal> {
        in_scope(name, message)?;
        let (shared, fields) = (Arc::clone(&self.shared), Fields(&message.body));
        let maker = Maker::of(message.rights, message.client);
        shared
            .rooms
            .guarded(fields, maker, || self.take(name, message))
    }

    fn take(&mut self, name: &str, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let rights = self.shared.check(name, fields, message.rights)?;
        let is_join = matches!(name, "join" | "joinandconfigure" | "watch");
        match &self.role {
            Role::Fresh if is_join => self.join(name, message, rights),
            Role::Fresh => Err(Refusal::JoinFirst),
            _ if is_join => Err(Refusal::AlreadyJoined),
            Role::Participant(room, id) => {
                let (room, id) = (room.clone(), id.clone());
                self.participant(&room, &id, name, message, rights)
            }
            Role::Subscriber(room) => {
                let room = room.clone();
                self.subscriber(&room, name, message)
            }
            Role::Left => Err(Refusal::NotInRoom),
        }
    }

    /// Answers at once.
    fn manage(&self, name: &str, message: &Message) -> Result<Reply, Refusal> {
        in_scope(name, message)?;
        let (shared, fields) = (&self.shared, Fields(&message.body));
        let maker = Maker::of(message.rights, message.client);
        shared.rooms.guarded(fields, maker, || {
            let rights = shared.check(name, fields, message.rights)?;
            let client = Some((&self.handle, &message.scope));
            shared.manage(name, fields, client, (rights, maker))
        })
    }

    fn join(&mut self, name: &str, message: &Message, rights: Rights) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let ids = self.shared.rooms.ids();
        let room = self.shared.rooms.named(fields)?;
        let mut state = room.lock();
        if state.destroyed {
            return Err(Refusal::NoSuchRoom(room.id.clone()));
        }
        // Of the wrong type they are refused with the secret and without it.
        for name in ["pin", "token"] {
            fields.string(name)?;
        }
        let by_secret = state.options.access.shows_secret(fields);
        if !by_secret {
            let client = (&self.handle, &message.scope);
            state.options.check_signed_token(&room.id, client, fields)?;
            state.options.access.check_pin(fields)?;
        }
        if name == "watch" {
            let watch = Watch::read(fields, ids)?;
            let jsep = message.jsep.as_ref();
            let (attached, local) = state.watch(&self.handle, &watch, jsep, by_secret)?;
            self.push(message, attached, Some(local));
            drop(state);
            self.role = Role::Subscriber(room);
            return Ok(());
        }
        match fields.required_string("ptype")? {
            "publisher" => {
                let mut join = Join::read(fields, ids)?;
                let token = fields.string("token")?;
                join.by_secret = by_secret;
                let configure = match name {
                    "join" => None,
                    _ => Some(Configure::read(fields, rights)?),
                };
                let id = state.join(&self.handle, join, ids)?;
                let jsep = message.jsep.as_ref();
                let key = self.handle.id();
                let configured = configure
                    .as_ref()
                    .map(|configure| {
                        self.guard_recording(&state, configure, message)?;
                        state.configure(&id, key, configure, jsep)
                    })
                    .transpose();
                let configured = match configured {
                    Ok(configured) => configured,
                    Err(refusal) => {
                        state.undo_join(&id);
                        return Err(refusal);
                    }
                };
                let (members, jsep) = match configured {
                    Some(configured) => (configured.members, configured.jsep),
                    None => (Object::new(), None),
                };
                let is_configured = configure.is_some();
                let joined = state.joined(&id).with_all(members);
                self.push(message, joined, jsep);
                state.notify_joined(&id, token);
                if is_configured {
                    state.notify_configured(&id);
                }
                drop(state);
                self.role = Role::Participant(room, id);
                Ok(())
            }
            "subscriber" => {
                if message.jsep.is_some() {
                    return Err(Refusal::Invalid("A subscriber does not offer"));
                }
                let join = SubscriberJoin::read(fields, ids)?;
                let (attached, offer) = state.join_subscriber(&self.handle, join, by_secret)?;
                self.push(message, attached, Some(offer));
                drop(state);
                self.role = Role::Subscriber(room);
                Ok(())
            }
            _ => Err(Refusal::value("ptype", "publisher or subscriber")),
        }
    }

    fn participant(
        &mut self,
        room: &Room,
        id: &Id,
        name: &str,
        message: &Message,
        rights: Rights,
    ) -> Result<(), Refusal> {
        let mut state = room.lock();
        let key = self.handle.id();
        let publishes = state.publishes(id, key)?;
        match name {
            "publish" | "configure" => {
                if name == "publish" && publishes {
                    return Err(Refusal::AlreadyPublished);
                }
                let configure = Configure::read(Fields(&message.body), rights)?;
                self.guard_recording(&state, &configure, message)?;
                let jsep = message.jsep.as_ref();
                let configured = state.configure(id, key, &configure, jsep)?;
                let event = state
                    .event()
                    .with("configured", "ok")
                    .with_all(configured.members);
                self.push(message, event, configured.jsep);
                state.notify_configured(id);
                if configured.changed {
                    state.tell_updated(id);
                }
            }
            "unpublish" => {
                state.media_ended(id)?;
                self.push(message, state.event().with("unpublished", "ok"), None);
                self.handle.close_pc();
            }
            "leave" => {
                state.leave(id, key)?;
                self.push(message, state.event().with("leaving", "ok"), None);
                self.handle.close_pc();
            }
            _ => return Err(Refusal::Invalid("Not a request of participants")),
        }
        Ok(())
    }

    /// Whoever may not record in a room is not told, but may not try its secret for ever.
    fn guard_recording(
        &self,
        state: &RoomState,
        configure: &Configure,
        message: &Message,
    ) -> Result<(), Refusal> {
        if configure.needs_secret(&state.options) {
            let secret = (&state.id, state.options.access.secret.as_deref());
            let maker = Maker::of(message.rights, message.client);
            let rooms = &self.shared.rooms;
            rooms.shows_secret(secret, Fields(&message.body), maker)?;
        }
        Ok(())
    }

    fn subscriber(&mut self, room: &Room, name: &str, message: &Message) -> Result<(), Refusal> {
        let mut state = room.lock();
        let key = self.handle.id();
        state.check_subscriber(key)?;
        let answer = match &message.jsep {
            Some(jsep) if jsep.kind == JsepKind::Offer => {
                return Err(Refusal::WrongSdpType("type"));
            }
            Some(jsep) => Some(&jsep.description),
            None => None,
        };
        if let Some(answer) = answer {
            state.accept(key, answer)?;
        }
        let fields = Fields(&message.body);
        let ids = self.shared.rooms.ids();
        let transaction = Some(message.transaction.as_str());
        let outcome = match name {
            "start" | "pause" => {
                state.pause(key, name == "pause")?;
                let done = if name == "pause" { "paused" } else { "started" };
                Ok(Some((state.event().with(done, "ok").into(), None)))
            }
            "configure" => SubscriberConfigure::read(fields)
                .and_then(|configure| state.configure_subscriber(key, &configure)),
            "subscribe" | "unsubscribe" | "update" => {
                Change::read(fields, ids, name).and_then(|change| state.change(key, change))
            }
            "switch" => {
                Switch::read(fields, ids).and_then(|switch| state.switch(key, switch, transaction))
            }
            "leave" => {
                state.leave_subscriber(key);
                self.push(message, state.event().with("left", "ok"), None);
                self.handle.close_pc();
                self.role = Role::Left;
                return Ok(());
            }
            _ => Err(Refusal::Invalid("Not a request of subscribers")),
        };
        let outcome = outcome.map(|event| {
            if let Some((event, offer)) = event {
                self.push(message, event, offer);
            }
        });
        if answer.is_some() {
            state.offer_pending(key);
        }
        outcome
    }

    fn push(&self, message: &Message, data: impl Into<Value>, jsep: Option<LocalJsep>) {
        self.handle.push(Some(&message.transaction), data, jsep);
    }

    /// Takes the client out of its room.
    fn go(&mut self) {
        let key = self.handle.id();
        match std::mem::replace(&mut self.role, Role::Left) {
            Role::Participant(room, id) => {
                room.lock().gone(&id, key);
            }
            Role::Subscriber(room) => room.lock().leave_subscriber(key),
            Role::Fresh | Role::Left => {}
        }
    }
}

/// Whether a request may name the room that it names.
fn in_scope(name: &str, message: &Message) -> Result<(), Refusal> {
    let room = message.body.get("room");
    Ok(message.scope.check(room, name == "create")?)
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let fields = Fields(&message.body);
        let name = match fields.required_string("request") {
            Ok(name) => name.to_ascii_lowercase(),
            Err(error) => return self.refuse(&message, &error.into()),
        };
        if REQUESTS.reach(&name).is_none() {
            return self.refuse(&message, &Refusal::UnknownRequest(name));
        }
        if !ASYNCHRONOUS.contains(&name.as_str()) {
            return match self.manage(&name, &message) {
                Ok(reply) => {
                    self.discard_offer(&message);
                    reply
                }
                Err(refusal) => self.refuse(&message, &refusal),
            };
        }
        if let Err(refusal) = self.request(&name, &message) {
            self.discard_offer(&message);
            self.push(&message, refusal.to_json(), None);
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        let key = self.handle.id();
        match &self.role {
            Role::Participant(room, id) => {
                let mut state = room.lock();
                if state.publishes(id, key).is_err() {
                    return;
                }
                match event {
                    HandleEvent::Up => {
                        if state.media_up(id) {
                            state.announce(id, room);
                        }
                    }
                    HandleEvent::SlowLink {
                        from_client: true, ..
                    } => {
                        let bitrate = state.bitrate(id);
                        let event = Object::new()
                            .with("videoroom", "slow_link")
                            .with_some("current-bitrate", bitrate);
                        self.handle.push(None, event, None);
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
                } => room.lock().layer_changed(key, route, layer, reason),
                HandleEvent::SlowLink {
                    from_client: false, ..
                } => {
                    let event = json!({ "videoroom": "slow_link" });
                    self.handle.push(None, event, None);
                }
                HandleEvent::Up => room.lock().notify_subscribed(key),
                HandleEvent::Hangup(_) => room.lock().subscriber_hung_up(key),
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
        let key = self.handle.id();
        match &self.role {
            Role::Participant(room, id) => {
                let state = room.lock().participant_state(id, key);
                state.unwrap_or_else(|_| json!({ "type": "publisher", "destroyed": 1 }))
            }
            Role::Subscriber(room) => room
                .lock()
                .subscriber_state(key)
                .unwrap_or_else(|| json!({ "type": "subscriber", "destroyed": 1 })),
            Role::Fresh | Role::Left => json!({ "type": "none" }),
        }
    }

    fn detach(&mut self) {
        self.go();
    }
}

impl Attached {
    fn refuse(&self, message: &Message, refusal: &Refusal) -> Reply {
        self.discard_offer(message);
        Reply::Success(refusal.to_json())
    }

    /// An offer that came with a request that is refused leaves nothing behind.
    fn discard_offer(&self, message: &Message) {
        let offers = |jsep: &portunus_core::Jsep| jsep.kind == JsepKind::Offer;
        if !message.jsep.as_ref().is_some_and(offers) {
            return;
        }
        self.handle.discard_offer();
        if let Role::Subscriber(room) = &self.role {
            room.lock().offer_replaced(self.handle.id());
        }
    }
}

/// A plugin's fault ends the handle without a word: it does not stay in the room.
impl Drop for Attached {
    fn drop(&mut self) {
        self.go();
    }
}
