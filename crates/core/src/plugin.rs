//! The extension point: what a plugin implements, and what it is told.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use portunus_media::{DataMessage, Layer, LayerReason, RouteId, SpeechActivity};
use portunus_rtp::Mid;
use portunus_sdp::Jsep;
use serde_json::{Map, Value, json};

use crate::{Broadcast, ClientAddress, Handle, PendingOffer, Rights, TokenScope};

/// What a plugin says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginInfo {
    /// What clients attach to, such as `janus.plugin.echotest`.
    pub package: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// Its version as a number that grows.
    pub version: u32,
    /// Its version for people.
    pub version_string: &'static str,
}

/// A plugin: makes the control logic for each handle that a client attaches to it.
pub trait Plugin: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> PluginInfo;

    /// A client attached: `handle` is the way to it and to its media.
    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle>;

    /// How it serves clients of WHIP and WHEP; none if it does not.
    fn broadcast(&self) -> Option<&dyn Broadcast> {
        None
    }

    /// Files that HTTP serves to whoever knows their path; none if there are none.
    fn files(&self) -> Option<&dyn PublicFiles> {
        None
    }

    /// Answers an administrator's message with [`Reply::Success`] or [`Reply::Later`]; none if it takes no such
    /// messages.
    fn admin(&self, _request: Value) -> Option<Reply> {
        None
    }

    /// Whether the request with this name, in lower case, begins something new for its client: a join, a call, a
    /// registration. A server that is being drained refuses it to clients that are in no call, as it refuses all offers and
    /// answers of these. The requests have it as a word in [`requests!`](crate::requests): see [`Asked::begins`](crate::Asked::begins).
    fn begins(&self, _request: &str) -> bool {
        false
    }

    /// Calls that it has beside those of PeerConnections. A drain waits for their end.
    fn calls_without_peers(&self) -> usize {
        0
    }

    /// The server is drained from now on, or no longer: a plugin that takes calls from elsewhere refuses new ones meanwhile.
    fn set_draining(&self, _is_on: bool) {}

    /// What it has counted since its start.
    fn counters(&self) -> Vec<PluginCounter> {
        Vec::new()
    }

    /// How much it has of something at present.
    fn gauges(&self) -> Vec<PluginCounter> {
        Vec::new()
    }
}

/// Files of a plugin that HTTP serves.
pub trait PublicFiles: Send + Sync {
    /// The file at a path, which begins with a slash and is as it came; none if there is none to be served. It looks at no disk,
    /// and leads to no file that is not for everybody.
    fn find(&self, path: &str) -> Option<PublicFile>;
}

/// A file that is for everybody. Where it is may have to be looked for on the disk, which may hang: that is left to whoever can wait.
pub struct PublicFile(Box<dyn FnOnce() -> Option<PathBuf> + Send>);

impl PublicFile {
    /// The file at a path, if there is one.
    pub fn at(path: PathBuf) -> Self {
        Self::sought(move || Some(path))
    }

    /// The file that this finds, which may block.
    pub fn sought(find: impl FnOnce() -> Option<PathBuf> + Send + 'static) -> Self {
        PublicFile(Box::new(find))
    }

    /// Where it is; none if it is not there. It may block.
    pub fn locate(self) -> Option<PathBuf> {
        (self.0)()
    }
}

impl fmt::Debug for PublicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicFile")
    }
}

/// A number of a plugin, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginCounter {
    /// Its name, such as `refused_creations`.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// The number.
    pub value: u64,
}

impl PluginCounter {
    /// What a [`Count`] has come to.
    pub fn of(name: &'static str, help: &'static str, count: &Count) -> Self {
        Self {
            name,
            help,
            value: count.value(),
        }
    }
}

/// Something that a plugin counts; any thread may.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// It happened once.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// It happened so often.
    pub fn add_many(&self, times: u64) {
        self.0.fetch_add(times, Relaxed);
    }

    /// How often it happened.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The control logic of one handle.
///
/// All calls come from one task, one after the other; they must not block. What takes long belongs in a task of
/// its own, which answers later through a clone of the [`Handle`].
pub trait PluginHandle: Send {
    /// The client's request. Events that are pushed before this returns reach the client after its reply.
    fn message(&mut self, message: Message) -> Reply;

    /// Something happened to the handle's PeerConnection.
    fn event(&mut self, _event: HandleEvent) {}

    /// The handle's state, for administrators.
    fn query(&self) -> Value {
        json!({})
    }

    /// The same where some of it has to be asked for elsewhere; none: [`PluginHandle::query`] says all.
    fn query_later(&self) -> Option<Later> {
        None
    }

    /// The client is gone; nothing can be sent to it any more. If there is a PeerConnection,
    /// [`HandleEvent::Hangup`] came before.
    fn detach(&mut self) {}
}

/// A request to a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What an event that answers it has to carry.
    pub transaction: String,
    /// The plugin's own part.
    pub body: Map<String, Value>,
    /// The client's offer or answer.
    pub jsep: Option<Jsep>,
    /// The same offer, which is discarded without an answer when the message is dropped: a plugin that answers later keeps this.
    pub offer: Option<PendingOffer>,
    /// What whoever makes this request may do beyond a call. A secret of the plugin's own, in the body, can give more.
    pub rights: Rights,
    /// Which rooms and mountpoints it may name.
    pub scope: TokenScope,
    /// Where it comes from, to count what each client makes.
    pub client: ClientAddress,
}

/// What a plugin replies at once.
#[derive(Debug)]
pub enum Reply {
    /// The result, an object: the client gets it as the reply itself.
    Success(Value),
    /// The same once it is there. What else is sent to the handle waits for it.
    Later(Later),
    /// The result follows as an event; the text is a hint for people.
    Ack(Option<&'static str>),
    /// The request is refused with error 462 and this text.
    Error(String),
}

/// A result that takes a while.
pub struct Later(Pin<Box<dyn Future<Output = Value> + Send>>);

impl Later {
    /// What `result` comes to.
    pub fn new(result: impl Future<Output = Value> + Send + 'static) -> Self {
        Later(Box::pin(result))
    }

    /// Waits for it.
    pub async fn result(self) -> Value {
        self.0.await
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// Something that happened to a handle's PeerConnection.
#[derive(Debug, Clone, PartialEq)]
pub enum HandleEvent {
    /// It is up: media and data flow.
    Up,
    /// A medium of the client started or stopped.
    Media {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// Whether packets come in.
        receiving: bool,
        /// The simulcast layer, where there are several.
        substream: Option<u8>,
    },
    /// Many packets were lost within a second.
    SlowLink {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// True: packets of the client to the server; false: packets of the server to the client.
        from_client: bool,
        /// Packets lost.
        lost: u32,
    },
    /// The client has begun or ceased to talk, see [`Handle::detect_talking`].
    Talking {
        /// The m-line.
        mid: Mid,
        /// Which of the two.
        talking: bool,
        /// How loud it was on average, in -dBov: 0 is the loudest, 127 silence.
        average: f64,
    },
    /// How much the client speaks, every 200 ms as long as it is not silent, see [`Handle::measure_speech`].
    Speech {
        /// The m-line.
        mid: Mid,
        /// How much.
        activity: SpeechActivity,
    },
    /// A route to this handle relays another layer, or its sender says that it sends another number of them.
    Layer {
        /// The route.
        route: RouteId,
        /// What it relays now.
        layer: Layer,
        /// Why these.
        reason: LayerReason,
    },
    /// The client's estimate of what it can receive, in bit/s.
    Remb(u64),
    /// A data channel can be written to.
    DataChannel {
        /// Its label.
        label: String,
        /// Its subprotocol; empty if there is none.
        protocol: String,
    },
    /// A message came on a data channel, from which no route begins.
    Data(DataMessage),
    /// The PeerConnection is gone, for this reason. A new offer may make another.
    Hangup(String),
}
