//! The users, their names and their calls.

use std::collections::HashMap;
use std::time::Duration;

use portunus_core::media::Layer;
use portunus_core::record::RecordedSession;
use portunus_core::sdp::{CodecName, Description, Extmap, Kind};
use portunus_core::{ClientRecording, Handle, LocalJsep, Mid, Object, PendingOffer, SentMedia};
use portunus_relay::SourceDescription;
use serde_json::{Value, json};

use crate::far::{Far, OfferedSource, Others};
use crate::link::Link;
use crate::request::{Changes, Refusal};

/// The id of a user's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UserId(u64);

/// The encodings of a simulcast.
const ENCODINGS: u8 = 3;

/// All users, under one lock, since a call changes two at a time.
#[derive(Debug, Default)]
pub(crate) struct Users {
    next: u64,
    users: HashMap<UserId, User>,
    names: HashMap<String, UserId>,
    /// The names that users are about to have, once the cluster has confirmed them.
    claimed: HashMap<String, UserId>,
    /// The users of other nodes in calls, by the node and the number of the call.
    far: HashMap<(String, u64), UserId>,
}

/// A user.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) line: Line,
    /// Kept until the handle is detached.
    pub(crate) name: Option<String>,
    /// For a user of another node: the transaction of the call that its node has not answered.
    pub(crate) asked: Option<String>,
    /// The state that ends with a call.
    pub(crate) call: Call,
}

/// Where a user is.
#[derive(Debug)]
pub(crate) enum Line {
    /// A client of this node.
    Here(Handle),
    /// A user of another node, as long as the call lasts.
    There(Far),
}

/// A user's side of a call, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) state: CallState,
    pub(crate) settings: Settings,
    /// The links to this user.
    pub(crate) links: Vec<Link>,
    /// This user made the call: it may send simulcast.
    pub(crate) caller: bool,
    /// The m-line that this user sends as simulcast.
    pub(crate) simulcast: Option<Mid>,
    /// The header extensions of its layers. The other side gets a single stream without them.
    pub(crate) layer_extensions: Vec<(Mid, Vec<Extmap>)>,
    /// The present layers to this user of the other's simulcast.
    pub(crate) current: Layer,
    pub(crate) audio_codec: Option<&'static str>,
    pub(crate) audio_red: bool,
    pub(crate) video_codec: Option<&'static str>,
    pub(crate) e2ee: bool,
    /// A data channel of this user is writable.
    pub(crate) data_ready: bool,
    /// The user's last bandwidth estimate, in bit/s.
    pub(crate) peer_bitrate: u64,
    pub(crate) slow_links: u64,
    /// The media that this user sends.
    pub(crate) sent: Vec<SentMedia>,
    /// The agreed codecs, by the places of m-lines.
    pub(crate) codecs: Vec<Option<CodecName>>,
    pub(crate) recording: Option<ClientRecording>,
    /// The session of the call's recordings.
    pub(crate) recorded: Option<RecordedSession>,
    /// This user's offer that the other side is to answer.
    pub(crate) offer: Option<PendingOffer>,
}

/// The state of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallState {
    #[default]
    Idle,
    Calling(UserId),
    Ringing(UserId),
    InCall(UserId),
}

/// The reason for the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End<'r> {
    /// One side asked for it, with the text for the other side.
    Request(&'r str),
    /// A PeerConnection or a handle is gone.
    Gone,
}

impl End<'_> {
    /// Returns the text of a request.
    const fn request(&self) -> Option<&str> {
        match self {
            End::Request(reason) => Some(*reason),
            End::Gone => None,
        }
    }

    /// Returns the text for the other side.
    const fn reason(&self) -> &str {
        match self {
            End::Request(reason) => reason,
            End::Gone => "Remote WebRTC hangup",
        }
    }

    /// Returns the text of the other side's event.
    const fn cause(&self) -> &'static str {
        match self {
            End::Request(_) => "Remote hangup",
            End::Gone => "Remote WebRTC hangup",
        }
    }
}

impl CallState {
    pub(crate) fn peer(self) -> Option<UserId> {
        match self {
            CallState::Idle => None,
            CallState::Calling(peer) | CallState::Ringing(peer) | CallState::InCall(peer) => {
                Some(peer)
            }
        }
    }
}

/// The settings of a user for one call.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) audio: bool,
    pub(crate) video: bool,
    /// In bit/s; 0 means no limit.
    pub(crate) bitrate: u64,
    pub(crate) substream: u8,
    pub(crate) temporal: u8,
    pub(crate) fallback: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            audio: true,
            video: true,
            bitrate: 0,
            substream: 2,
            temporal: 2,
            fallback: DEFAULT_FALLBACK,
        }
    }
}

const DEFAULT_FALLBACK: Duration = Duration::from_millis(250);

impl Settings {
    pub(crate) fn apply(&mut self, changes: &Changes) {
        self.audio = changes.audio.unwrap_or(self.audio);
        self.video = changes.video.unwrap_or(self.video);
        self.bitrate = changes.bitrate.unwrap_or(self.bitrate);
        self.substream = changes.substream.unwrap_or(self.substream);
        self.temporal = changes.temporal.unwrap_or(self.temporal);
        match changes.fallback {
            None => {}
            Some(0) => self.fallback = DEFAULT_FALLBACK,
            Some(micros) => self.fallback = Duration::from_micros(micros),
        }
    }
}

impl User {
    /// Returns the handle of a client of this node.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match &self.line {
            Line::Here(handle) => Some(handle),
            Line::There(_) => None,
        }
    }

    /// Returns a user of another node.
    pub(crate) fn far(&self) -> Option<&Far> {
        match &self.line {
            Line::Here(_) => None,
            Line::There(far) => Some(far),
        }
    }

    /// Returns the sources that the user has for another node, by the places of m-lines.
    pub(crate) fn sources(&self) -> Vec<Option<OfferedSource>> {
        let negotiated = self.handle().and_then(Handle::negotiated);
        let media = negotiated.map_or_else(Vec::new, |it| it.media);
        let lines = media.iter().enumerate().map(|(index, media)| {
            if media.disabled || media.kind == Kind::Data {
                return None;
            }
            let codec = self.call.codecs.get(index).copied().flatten()?;
            let source = self.handle()?.track(media.mid)?.into();
            let is_simulcast = self.call.simulcast == Some(media.mid);
            let description = SourceDescription {
                encodings: if is_simulcast { ENCODINGS } else { 1 },
                opaque: self.call.e2ee,
                ..SourceDescription::new(codec).with_extensions(&media.extensions)
            };
            Some(OfferedSource {
                source,
                description,
            })
        });
        lines.collect()
    }

    /// Sends an event with this `result` to the user, if it is one of this node.
    pub(crate) fn push(
        &self,
        transaction: Option<&str>,
        result: impl Into<Value>,
        jsep: Option<LocalJsep>,
    ) {
        let data = Object::new()
            .with("videocall", "event")
            .with("result", result);
        if let Some(handle) = self.handle() {
            handle.push(transaction, data, jsep);
        }
    }

    /// Whether the user is being called.
    pub(crate) fn rings(&self) -> bool {
        matches!(self.call.state, CallState::Ringing(_))
    }

    pub(crate) fn cap_bitrate(&self) {
        let bitrate = self.call.settings.bitrate;
        if let Some(handle) = self.handle() {
            handle.set_bitrate((bitrate > 0).then_some(bitrate));
        }
    }
}

impl Users {
    pub(crate) fn add(&mut self, handle: Handle) -> UserId {
        self.add_line(Line::Here(handle), None)
    }

    /// Adds a user of another node for a call.
    pub(crate) fn add_far(&mut self, others: &Others, node: &str, call: u64, name: &str) -> UserId {
        let far = Far::new(others.clone(), node, call);
        let id = self.add_line(Line::There(far), Some(name.to_owned()));
        self.far.insert((node.to_owned(), call), id);
        id
    }

    fn add_line(&mut self, line: Line, name: Option<String>) -> UserId {
        let id = UserId(self.next);
        self.next += 1;
        let user = User {
            line,
            name,
            asked: None,
            call: Call::default(),
        };
        self.users.insert(id, user);
        id
    }

    /// Removes a user. Returns its name if it was registered.
    pub(crate) fn remove(&mut self, id: UserId) -> Option<String> {
        let user = self.users.remove(&id)?;
        self.claimed.retain(|_, claimer| *claimer != id);
        if let Line::There(far) = &user.line {
            self.far.remove(&(far.node.clone(), far.call));
        }
        let name = user.name?;
        if self.names.get(&name) != Some(&id) {
            return None;
        }
        self.names.remove(&name);
        Some(name)
    }

    /// Returns the user of another node in a call.
    pub(crate) fn of_call(&self, node: &str, call: u64) -> Option<UserId> {
        self.far.get(&(node.to_owned(), call)).copied()
    }

    /// Returns the users of a node in calls.
    pub(crate) fn of_node(&self, node: &str) -> Vec<UserId> {
        let far = self.far.iter().filter(|((of, _), _)| of == node);
        far.map(|(_, id)| *id).collect()
    }

    /// Returns all users of other nodes in calls.
    pub(crate) fn all_far(&self) -> Vec<UserId> {
        self.far.values().copied().collect()
    }

    /// Takes the transaction of the call to a user of another node that its node has not answered.
    pub(crate) fn take_asked(&mut self, id: UserId) -> Option<String> {
        self.get_mut(id)?.asked.take()
    }

    /// Returns a user of another node to change it.
    pub(crate) fn far_mut(&mut self, id: UserId) -> Option<&mut Far> {
        match &mut self.get_mut(id)?.line {
            Line::Here(_) => None,
            Line::There(far) => Some(far),
        }
    }

    pub(crate) fn get(&self, id: UserId) -> Option<&User> {
        self.users.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: UserId) -> Option<&mut User> {
        self.users.get_mut(&id)
    }

    /// Returns the user whom `id` talks to, calls, or is called by.
    pub(crate) fn peer_of(&self, id: UserId) -> Option<UserId> {
        self.get(id)?.call.state.peer()
    }

    pub(crate) fn named(&self, name: &str) -> Option<UserId> {
        self.names.get(name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    pub(crate) fn register(&mut self, id: UserId, name: &str) -> Result<(), Refusal> {
        self.check_free(id, name)?;
        if let Some(user) = self.users.get_mut(&id) {
            user.name = Some(name.to_owned());
            self.names.insert(name.to_owned(), id);
        }
        Ok(())
    }

    /// Notes that a user is about to have a name.
    pub(crate) fn claim(&mut self, id: UserId, name: &str) -> Result<(), Refusal> {
        self.check_free(id, name)?;
        self.claimed.insert(name.to_owned(), id);
        Ok(())
    }

    /// Registers a user that has claimed a name. Returns false if the user is gone.
    pub(crate) fn register_claimed(&mut self, id: UserId, name: &str) -> bool {
        self.forget_claim(id, name) && self.register(id, name).is_ok()
    }

    /// Forgets that a user was about to have a name. Returns whether it still was.
    pub(crate) fn forget_claim(&mut self, id: UserId, name: &str) -> bool {
        let is_its = self.claimed.get(name) == Some(&id);
        if is_its {
            self.claimed.remove(name);
        }
        is_its
    }

    /// Checks that a user can have a name.
    fn check_free(&self, id: UserId, name: &str) -> Result<(), Refusal> {
        if let Some(known) = self.get(id).and_then(|user| user.name.as_ref()) {
            return Err(Refusal::AlreadyRegistered(known.clone()));
        }
        if let Some((known, _)) = self.claimed.iter().find(|(_, claimer)| **claimer == id) {
            return Err(Refusal::AlreadyRegistered(known.clone()));
        }
        if self.names.contains_key(name) || self.claimed.contains_key(name) {
            return Err(Refusal::Taken(name.to_owned()));
        }
        Ok(())
    }

    /// Returns the event of a user's settings.
    pub(crate) fn configured(&self, id: UserId) -> Value {
        let Some(user) = self.get(id) else {
            return Value::Null;
        };
        let Call {
            settings,
            current,
            recording,
            ..
        } = &user.call;
        let peer = self.peer_of(id).and_then(|peer| self.get(peer));
        let simulcast = peer.and_then(|peer| peer.call.simulcast).map(|_| {
            json!({
                "substream": number(current.substream),
                "temporal-layer": number(current.temporal),
            })
        });
        Object::new()
            .with("event", "configured")
            .with("audio_active", settings.audio)
            .with("video_active", settings.video)
            .with("bitrate", settings.bitrate)
            .with_some("simulcast", simulcast)
            .with_some(
                "recording",
                recording.as_ref().map(ClientRecording::to_json),
            )
            .into()
    }

    /// Ends the call of `id`, and notifies the other side. The PeerConnection of `id` stays.
    pub(crate) fn end_call(&mut self, id: UserId, end: End<'_>) {
        let Some(user) = self.users.get_mut(&id) else {
            return;
        };
        let mut call = std::mem::take(&mut user.call);
        // The side that ends the call closes its PeerConnection, and its client learns of that.
        user.call.offer = call.offer.take();
        let name = user.name.clone();
        let Some(peer_id) = call.state.peer() else {
            return;
        };
        let Some(peer) = self.users.get_mut(&peer_id) else {
            return;
        };
        let of_peer = std::mem::take(&mut peer.call);
        match &peer.line {
            Line::Here(handle) => {
                let hangup = Object::new()
                    .with("event", "hangup")
                    .with_some("username", name)
                    .with("reason", end.reason());
                peer.push(None, hangup, None);
                handle.notify(|| json!({ "event": "hangup", "reason": end.cause() }));
                handle.close_pc();
            }
            Line::There(far) => far.send_end(end.request()),
        }
        drop(of_peer);
        // A user of another node is there for the call only.
        for side in [id, peer_id] {
            if self.get(side).is_some_and(|user| user.far().is_some()) {
                self.remove(side);
            }
        }
    }
}

impl Call {
    /// Notes the agreed codecs of an answer.
    pub(crate) fn note_places(&mut self, answer: &Description) {
        let media = answer.media.iter();
        let codecs = media.map(|media| {
            let codecs = media.codecs.iter().filter(|_| !media.rejected);
            codecs.filter_map(|codec| codec.codec_name()).next()
        });
        self.codecs = codecs.collect();
    }
}

/// Returns the result of the end of a call.
pub(crate) fn hangup(name: Option<String>, reason: &str) -> Value {
    let event = Object::new()
        .with("event", "hangup")
        .with_some("username", name);
    event.with("reason", reason).into()
}

/// Returns a layer for administrators: -1 if none is relayed.
pub(crate) fn number(layer: Option<u8>) -> i16 {
    layer.map_or(-1, i16::from)
}
