//! The users, their names and their calls.

use std::collections::HashMap;
use std::time::Duration;

use portunus_core::media::Layer;
use portunus_core::record::RecordedSession;
use portunus_core::sdp::Extmap;
use portunus_core::{ClientRecording, Handle, LocalJsep, Mid, Object, PendingOffer, SentMedia};
use serde_json::{Value, json};

use crate::link::Link;
use crate::request::{Changes, Refusal};

/// The id of a user's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UserId(u64);

/// All users, under one lock, since a call changes two at a time.
#[derive(Debug, Default)]
pub(crate) struct Users {
    next: u64,
    users: HashMap<UserId, User>,
    names: HashMap<String, UserId>,
}

/// A user.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) handle: Handle,
    /// Kept until the handle is detached.
    pub(crate) name: Option<String>,
    /// The state that ends with a call.
    pub(crate) call: Call,
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
    /// Sends an event with this `result` to the user.
    pub(crate) fn push(
        &self,
        transaction: Option<&str>,
        result: impl Into<Value>,
        jsep: Option<LocalJsep>,
    ) {
        let data = Object::new()
            .with("videocall", "event")
            .with("result", result);
        self.handle.push(transaction, data, jsep);
    }

    /// Whether the user is being called.
    pub(crate) fn rings(&self) -> bool {
        matches!(self.call.state, CallState::Ringing(_))
    }

    pub(crate) fn cap_bitrate(&self) {
        let bitrate = self.call.settings.bitrate;
        self.handle.set_bitrate((bitrate > 0).then_some(bitrate));
    }
}

impl Users {
    pub(crate) fn add(&mut self, handle: Handle) -> UserId {
        let id = UserId(self.next);
        self.next += 1;
        self.users.insert(
            id,
            User {
                handle,
                name: None,
                call: Call::default(),
            },
        );
        id
    }

    pub(crate) fn remove(&mut self, id: UserId) {
        if let Some(name) = self.users.remove(&id).and_then(|user| user.name) {
            self.names.remove(&name);
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
        let Some(user) = self.users.get_mut(&id) else {
            return Ok(());
        };
        if let Some(known) = &user.name {
            return Err(Refusal::AlreadyRegistered(known.clone()));
        }
        if self.names.contains_key(name) {
            return Err(Refusal::Taken(name.to_owned()));
        }
        user.name = Some(name.to_owned());
        self.names.insert(name.to_owned(), id);
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
        let Some(peer) = call.state.peer().and_then(|peer| self.users.get_mut(&peer)) else {
            return;
        };
        let of_peer = std::mem::take(&mut peer.call);
        let hangup = Object::new()
            .with("event", "hangup")
            .with_some("username", name)
            .with("reason", end.reason());
        peer.push(None, hangup, None);
        peer.handle
            .notify(|| json!({ "event": "hangup", "reason": end.cause() }));
        peer.handle.close_pc();
        drop(of_peer);
    }
}

/// Returns a layer for administrators: -1 if none is relayed.
pub(crate) fn number(layer: Option<u8>) -> i16 {
    layer.map_or(-1, i16::from)
}
