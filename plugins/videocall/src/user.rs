//! A user's handle: its requests, and the events of its PeerConnection.

use portunus_core::media::{DataMessage, DataPayload, Layer, LayerReason, RouteId};
use portunus_core::sdp::Description;
use portunus_core::{
    ClientRecording, Fields, Handle, HandleEvent, Jsep, JsepError, JsepKind, Message, Object,
    PluginHandle, Reply,
};
use serde_json::{Value, json};

use crate::calls::VideoCalls;
use crate::descriptions::{offer_of, with_rids, without_rids};
use crate::far::{CallMessage, Described};
use crate::request::{Changes, Refusal, Request};
use crate::users::{Call, CallState, End, Line, User, UserId, Users, hangup, number};

/// A user as long as its handle is attached.
pub(crate) struct Attached(Side);

/// A user with its handle; cheap to clone. It may outlive the handle.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) id: UserId,
    pub(crate) handle: Handle,
    pub(crate) calls: VideoCalls,
}

impl Attached {
    pub(crate) fn new(handle: Handle, calls: VideoCalls) -> Self {
        let id = calls.users().add(handle.clone());
        Attached(Side { id, handle, calls })
    }
}

impl Side {
    /// The result for this user.
    fn answer(
        &self,
        users: &mut Users,
        request: Request,
        message: &Message,
    ) -> Result<Value, Refusal> {
        let fields = Fields(&message.body);
        match request {
            Request::List => Ok(json!({ "list": users.names().collect::<Vec<_>>() })),
            Request::Register => {
                let name = fields.required("username")?;
                users.register(self.id, name)?;
                Ok(json!({ "event": "registered", "username": name }))
            }
            Request::Call => self.call(users, message),
            Request::Accept => self.accept(users, message.jsep.as_ref()),
            Request::Set => self.set(users, &fields.read()?, message),
            Request::Hangup => {
                let name = users.get(self.id).and_then(|user| user.name.clone());
                let reason = fields.member("reason").ok().flatten();
                let reason = reason.unwrap_or("We did the hangup");
                users.end_call(self.id, End::Request(reason));
                Ok(hangup(name, "Explicit hangup"))
            }
        }
    }

    /// Returns the user's name, and whom it calls, if it may call somebody now.
    pub(crate) fn caller<'m>(
        &self,
        users: &Users,
        message: &'m Message,
    ) -> Result<(String, &'m str), Refusal> {
        let me = users.get(self.id).ok_or(Refusal::NotRegistered)?;
        let my_name = me.name.clone().ok_or(Refusal::NotRegistered)?;
        if me.call.state != CallState::Idle {
            return Err(Refusal::AlreadyInCall);
        }
        let name = Fields(&message.body).required("username")?;
        if name == my_name {
            return Err(Refusal::Oneself);
        }
        Ok((my_name, name))
    }

    fn call(&self, users: &mut Users, message: &Message) -> Result<Value, Refusal> {
        let (my_name, name) = self.caller(users, message)?;
        let callee = users
            .named(name)
            .ok_or_else(|| Refusal::NoSuchUser(name.to_owned()))?;
        let busy = || Ok(hangup(Some(my_name.clone()), "User busy"));
        let Some(other) = users
            .get(callee)
            .filter(|user| user.call.state == CallState::Idle)
        else {
            return busy();
        };
        let jsep = offer_of(message)?;
        let handle = other
            .handle()
            .ok_or_else(|| Refusal::NoSuchUser(name.to_owned()))?;
        let offer = match handle.offer(without_rids(&jsep.description), false) {
            Ok(offer) => offer.with_e2ee(jsep.e2ee),
            Err(JsepError::Closing) => return busy(),
            Err(error) => return Err(Refusal::Offer(error)),
        };
        let incoming = json!({ "event": "incomingcall", "username": my_name });
        other.push(None, incoming, Some(offer));
        if let Some(other) = users.get_mut(callee) {
            other.call.state = CallState::Ringing(self.id);
        }
        self.begin_call(users, callee, jsep, message);
        Ok(json!({ "event": "calling" }))
    }

    pub(crate) fn begin_call(
        &self,
        users: &mut Users,
        callee: UserId,
        jsep: &Jsep,
        message: &Message,
    ) {
        if let Some(me) = users.get_mut(self.id) {
            me.call.state = CallState::Calling(callee);
            me.call.e2ee = jsep.e2ee;
            me.call.caller = true;
            me.call.note_layers(jsep);
            me.call.offer = message.offer.clone();
        }
    }

    fn accept(&self, users: &mut Users, jsep: Option<&Jsep>) -> Result<Value, Refusal> {
        let me = users.get(self.id).ok_or(Refusal::NoCall)?;
        let CallState::Ringing(caller) = me.call.state else {
            return Err(Refusal::NoCall);
        };
        let my_name = me.name.clone();
        let other = users.get(caller).ok_or(Refusal::NoCall)?;
        let jsep = jsep.ok_or(Refusal::MissingSdp)?;
        if jsep.kind != JsepKind::Answer {
            return Err(Refusal::WrongType("answer"));
        }
        match &other.line {
            Line::Here(handle) => {
                let answer = with_rids(&jsep.description, other);
                let answer = handle.answer(answer).map_err(Refusal::Answer)?;
                let answer = answer.with_e2ee(jsep.e2ee);
                let accepted = Object::new()
                    .with("event", "accepted")
                    .with_some("username", my_name);
                other.push(None, accepted, Some(answer));
            }
            Line::There(far) => {
                let settings = &me.call.settings;
                far.send(&CallMessage::Accepted {
                    id: far.call,
                    answer: Described::of(&jsep.description),
                    e2ee: jsep.e2ee,
                });
                far.send(&CallMessage::Settings {
                    id: far.call,
                    audio: settings.audio,
                    video: settings.video,
                });
            }
        }
        for (user, peer) in [(self.id, caller), (caller, self.id)] {
            let user_answers = user == self.id;
            if let Some(user) = users.get_mut(user) {
                user.call.state = CallState::InCall(peer);
                user.call.e2ee |= jsep.e2ee;
                user.call.note_answer(&jsep.description, user_answers);
                if user.call.settings.bitrate > 0 {
                    user.cap_bitrate();
                }
            }
        }
        users.link(self.id, caller);
        Ok(json!({ "event": "accepted" }))
    }

    fn set(
        &self,
        users: &mut Users,
        changes: &Changes,
        message: &Message,
    ) -> Result<Value, Refusal> {
        if changes.record == Some(true) {
            let name = changes.filename.as_deref().unwrap_or("videocall");
            self.handle.check_recording(None, name)?;
        }
        let peer = users.peer_of(self.id);
        let simulcast = peer
            .and_then(|peer| users.get(peer)?.call.simulcast)
            .is_some();
        if let Some(me) = users.get_mut(self.id) {
            me.call.settings.apply(changes);
            if changes.bitrate.is_some() {
                me.cap_bitrate();
            }
            if simulcast {
                let now = me.call.current;
                let same = |now: Option<u8>, asked| now.filter(|_| now == asked);
                me.push_layer("substream", same(now.substream, changes.substream), None);
                me.push_layer("temporal", same(now.temporal, changes.temporal), None);
            }
        }
        if let Some(peer) = peer {
            users.apply_settings(self.id, peer);
            let mine = users.get(self.id).map(|me| &me.call.settings);
            let far = users.get(peer).and_then(User::far);
            if let (Some(settings), Some(far)) = (mine, far) {
                far.send(&CallMessage::Settings {
                    id: far.call,
                    audio: settings.audio,
                    video: settings.video,
                });
            }
            if let Some(jsep) = &message.jsep {
                self.update(users, peer, jsep)?;
                self.keep_offer(users, message);
            }
        }
        users.record(self.id, changes);
        Ok(json!({ "event": "set" }))
    }

    /// Publishes the event of a request with its `result`.
    fn notify(&self, users: &Users, result: &Value) {
        match result.get("event").and_then(Value::as_str) {
            // The list of users changes nothing.
            None => {}
            Some("set") => self.handle.notify(|| users.configured(self.id)),
            Some("hangup") => self
                .handle
                .notify(|| json!({ "event": "hangup", "reason": result.get("reason") })),
            Some(_) => self.handle.notify(|| result.clone()),
        }
    }

    /// Notes that the other side will answer the offer of this message.
    fn keep_offer(&self, users: &mut Users, message: &Message) {
        if let (Some(offer), Some(me)) = (&message.offer, users.get_mut(self.id)) {
            me.call.offer = Some(offer.clone());
        }
    }

    /// Passes a renegotiation on to the other side.
    fn update(&self, users: &mut Users, peer: UserId, jsep: &Jsep) -> Result<(), Refusal> {
        if jsep.kind == JsepKind::Offer
            && let Some(me) = users.get_mut(self.id).filter(|me| me.call.caller)
        {
            me.call.note_layers(jsep);
        }
        let Some(other) = users.get(peer) else {
            return Ok(());
        };
        match &other.line {
            Line::Here(handle) => {
                let passed_on = match jsep.kind {
                    JsepKind::Offer => {
                        let offer = without_rids(&jsep.description);
                        handle.offer(offer, false).map_err(Refusal::Offer)?
                    }
                    JsepKind::Answer => {
                        let answer = with_rids(&jsep.description, other);
                        handle.answer(answer).map_err(Refusal::Answer)?
                    }
                };
                other.push(None, json!({ "event": "update" }), Some(passed_on));
            }
            Line::There(far) => {
                let is_offer = jsep.kind == JsepKind::Offer;
                let simulcast = users.get(self.id).and_then(|me| me.call.simulcast);
                let description = match is_offer {
                    true => Described::of(&without_rids(&jsep.description)),
                    false => Described::of(&jsep.description),
                };
                far.send(&CallMessage::Update {
                    id: far.call,
                    is_offer,
                    description,
                    simulcast: simulcast.map(|mid| mid.as_str().to_owned()),
                });
            }
        }
        if jsep.kind == JsepKind::Answer {
            users.updated(self.id, peer, &jsep.description);
        }
        Ok(())
    }

    fn relayed(&self, route: RouteId, layer: Layer, reason: LayerReason) {
        let mut users = self.calls.users();
        let peer = users.peer_of(self.id);
        let simulcast = peer
            .and_then(|peer| users.get(peer)?.call.simulcast)
            .is_some();
        let Some(me) = users.get_mut(self.id) else {
            return;
        };
        if !simulcast || !me.call.links.iter().any(|link| link.route == route) {
            return;
        }
        let before = std::mem::replace(&mut me.call.current, layer);
        let changed = |now: Option<u8>, before| now.filter(|_| now != before);
        let substream = changed(layer.substream, before.substream);
        let temporal = changed(layer.temporal, before.temporal);
        me.push_layer("substream", substream, Some(reason));
        me.push_layer("temporal", temporal, Some(reason));
    }

    fn slow_link(&self, audio: bool, from_client: bool) {
        let mut users = self.calls.users();
        let Some(me) = users.get_mut(self.id) else {
            return;
        };
        me.call.slow_links += 1;
        if from_client {
            let event = Object::new()
                .with("event", "slow_link")
                .with("media", if audio { "audio" } else { "video" })
                .with_some(
                    "current-bitrate",
                    (!audio).then_some(me.call.settings.bitrate),
                );
            me.push(None, event, None);
        }
    }

    fn relay_data(&self, message: DataMessage) {
        let empty = match &message.payload {
            DataPayload::Text(text) => text.is_empty(),
            DataPayload::Binary(bytes) => bytes.is_empty(),
        };
        let users = self.calls.users();
        let peer = users.peer_of(self.id).and_then(|peer| users.get(peer));
        match peer.filter(|_| !empty).map(|peer| (&peer.line, peer)) {
            Some((Line::Here(handle), peer)) if peer.call.data_ready => handle.send_data(message),
            Some((Line::There(far), _)) => far.send_data(&message),
            Some(_) | None => {}
        }
    }

    /// Answers a request, and does what follows from the answer.
    pub(crate) fn finish(&self, message: &Message, request: Result<Request, Refusal>) {
        let mut users = self.calls.users();
        let calls = matches!(request, Ok(Request::Call));
        let rings = users.get(self.id).is_some_and(User::rings);
        let offers = message.jsep.as_ref().map(|jsep| jsep.kind) == Some(JsepKind::Offer);
        let outcome = request.and_then(|request| self.answer(&mut users, request, message));
        let closes = match &outcome {
            // Its offer has replaced the caller's, which it can no longer answer.
            _ if rings && offers => true,
            Ok(result) => result.get("event").is_some_and(|event| event == "hangup"),
            // It has answered, and there is no other answer.
            Err(Refusal::Answer(_)) => rings,
            Err(refusal) => calls && refusal.ends_attempt(),
        };
        // The other side answers this offer, which has replaced the one before.
        let state = users.get(self.id).map(|me| me.call.state);
        if let Some(CallState::Calling(_) | CallState::Ringing(_)) = state {
            self.keep_offer(&mut users, message);
        }
        self.tell(&users, &message.transaction, outcome);
        if closes {
            users.end_call(self.id, End::Gone);
            self.handle.close_pc();
        }
    }

    /// Tells the client, and those who observe the server, the outcome of a request.
    pub(crate) fn tell(&self, users: &Users, transaction: &str, outcome: Result<Value, Refusal>) {
        let data = match outcome {
            Ok(result) => {
                self.notify(users, &result);
                let event = Object::new().with("videocall", "event");
                event.with("result", result).into()
            }
            Err(refusal) => json!({
                "videocall": "event",
                "error_code": refusal.code(),
                "error": refusal.to_string(),
            }),
        };
        self.handle.push(Some(transaction), data, None);
    }
}

impl Users {
    /// Both sides have agreed on a change of their call, by the answer of `answerer`.
    pub(crate) fn updated(&mut self, answerer: UserId, peer: UserId, answer: &Description) {
        for user in [answerer, peer] {
            let user_answers = user == answerer;
            if let Some(user) = self.get_mut(user) {
                user.call.note_answer(answer, user_answers);
            }
        }
        self.link(answerer, peer);
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let request = Request::read(&message);
        let message = match (self.0.calls.others(), &request) {
            (Some(others), Ok(request)) => self.0.ask_others(others, request, message),
            _ => Some(message),
        };
        if let Some(message) = message {
            self.0.finish(&message, request);
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Layer {
                route,
                layer,
                reason,
            } => self.0.relayed(route, layer, reason),
            HandleEvent::SlowLink {
                audio, from_client, ..
            } => self.0.slow_link(audio, from_client),
            HandleEvent::Remb(bitrate) => {
                if let Some(me) = self.0.calls.users().get_mut(self.0.id) {
                    me.call.peer_bitrate = bitrate;
                    me.cap_bitrate();
                }
            }
            HandleEvent::DataChannel { .. } => {
                if let Some(me) = self.0.calls.users().get_mut(self.0.id) {
                    me.call.data_ready = true;
                }
            }
            HandleEvent::Data(message) => self.0.relay_data(message),
            HandleEvent::Hangup(_) => self.0.calls.users().end_call(self.0.id, End::Gone),
            HandleEvent::Up
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Media { .. } => {}
        }
    }

    fn query(&self) -> Value {
        let users = self.0.calls.users();
        let Some(me) = users.get(self.0.id) else {
            return json!({});
        };
        let Call {
            settings, current, ..
        } = &me.call;
        let peer = users.peer_of(self.0.id).and_then(|peer| users.get(peer));
        let mut state = Object::new()
            .with("state", if peer.is_some() { "incall" } else { "idle" })
            .with_some("username", me.name.clone());
        if let Some(peer) = peer {
            state = state
                .with_some("peer", peer.name.clone())
                .with("audio_active", settings.audio)
                .with("video_active", settings.video)
                .with_some("audio_codec", me.call.audio_codec)
                .with_some("audio_red", me.call.audio_red.then_some(true))
                .with_some("video_codec", me.call.video_codec)
                .with("bitrate", settings.bitrate)
                .with("peer-bitrate", me.call.peer_bitrate)
                .with("slowlink_count", me.call.slow_links);
        }
        state = state.with_some("simulcast", me.call.simulcast.map(|_| true));
        if peer.is_some_and(|peer| peer.call.simulcast.is_some()) {
            state = state
                .with("simulcast-peer", true)
                .with("substream", number(current.substream))
                .with("substream-target", settings.substream)
                .with("temporal-layer", number(current.temporal))
                .with("temporal-layer-target", settings.temporal)
                .with(
                    "fallback",
                    u64::try_from(settings.fallback.as_micros()).unwrap_or(u64::MAX),
                );
        }
        state
            .with_some(
                "recording",
                me.call.recording.as_ref().map(ClientRecording::to_json),
            )
            .with("incall", i32::from(peer.is_some()))
            .with_some("e2ee", me.call.e2ee.then_some(true))
            .with("hangingup", 0)
            .with("destroyed", 0)
            .into()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut users = self.0.calls.users();
        users.end_call(self.0.id, End::Gone);
        let name = users.remove(self.0.id);
        drop(users);
        if let (Some(name), Some(others)) = (name, self.0.calls.others()) {
            others.release(name);
        }
    }
}

impl User {
    /// Notifies the user of the layer of the other's simulcast, if it has changed.
    fn push_layer(&self, name: &str, layer: Option<u8>, reason: Option<LayerReason>) {
        if let Some(layer) = layer {
            let event = Object::new()
                .with("event", "simulcast")
                .with("videocodec", self.call.video_codec.unwrap_or("none"))
                .with(name, layer)
                .with_some("reason", reason.map(LayerReason::name));
            self.push(None, event, None);
        }
    }
}

impl Refusal {
    /// Whether the PeerConnection of a refused call can be closed.
    pub(crate) fn ends_attempt(&self) -> bool {
        match self {
            Refusal::NotRegistered
            | Refusal::AlreadyInCall
            | Refusal::Field(_)
            | Refusal::Oneself
            | Refusal::NoSuchUser(_)
            | Refusal::Unreachable => true,
            Refusal::Unknown(_)
            | Refusal::Untrusted(_)
            | Refusal::Recording(_)
            | Refusal::Taken(_)
            | Refusal::AlreadyRegistered(_)
            | Refusal::NoCall
            | Refusal::MissingSdp
            | Refusal::Offer(_)
            | Refusal::Answer(_)
            | Refusal::FarOffer(_)
            | Refusal::Unclaimed(_)
            | Refusal::WrongType(_) => false,
        }
    }
}
