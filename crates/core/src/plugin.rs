//! The interface of plugins.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use portunus_media::{DataMessage, Layer, LayerReason, RouteId, SpeechActivity};
use portunus_rtp::Mid;
use portunus_sdp::Jsep;
use serde_json::{Map, Value, json};

use crate::{
    Broadcast, ClientAddress, Handle, PendingOffer, PluginCounter, PluginInfo, PublicFiles, Rights,
    TokenScope,
};

/// A plugin: makes the control logic for each handle that a client attaches to it.
pub trait Plugin: Send + Sync + 'static {
    /// Describes the plugin.
    fn info(&self) -> PluginInfo;

    /// Makes the control logic for a new handle, which gives access to the client and its media.
    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle>;

    /// Returns how it serves WHIP and WHEP, or `None` if it does not.
    fn broadcast(&self) -> Option<&dyn Broadcast> {
        None
    }

    /// Returns its files for HTTP, or `None` if it has none.
    fn files(&self) -> Option<&dyn PublicFiles> {
        None
    }

    /// Answers an operator's message with [`Reply::Success`] or [`Reply::Later`]. Returns `None` if
    /// it takes no such messages.
    fn admin(&self, _request: Value) -> Option<Reply> {
        None
    }

    /// Whether the request with this name, in lower case, begins something new for its client, such
    /// as a call. During a drain such requests are refused to clients without a call.
    /// [`requests!`](crate::requests) marks them: see [`Asked::begins`](crate::Asked::begins).
    fn begins(&self, _request: &str) -> bool {
        false
    }

    /// Returns the number of calls without a PeerConnection. A drain waits for them, too.
    fn calls_without_peers(&self) -> usize {
        0
    }

    /// Starts or ends a drain. During a drain the plugin refuses new incoming calls.
    fn set_draining(&self, _is_on: bool) {}

    /// Returns its counters since the start.
    fn counters(&self) -> Vec<PluginCounter> {
        Vec::new()
    }

    /// Returns its gauges.
    fn gauges(&self) -> Vec<PluginCounter> {
        Vec::new()
    }
}

/// The control logic of one handle.
///
/// All calls come from one task, one after the other, and must not block. Long work belongs in a
/// task of its own, which answers through a clone of the [`Handle`].
pub trait PluginHandle: Send {
    /// Returns work that has to be done before [`PluginHandle::message`] gets a request with this
    /// body. Other requests to the handle wait for it.
    fn prepare(&self, _body: &Map<String, Value>) -> Option<Preparation> {
        None
    }

    /// As [`PluginHandle::prepare`], for work that depends on who makes the request. The core calls
    /// this one.
    fn prepare_for(&self, body: &Map<String, Value>, _author: &Author) -> Option<Preparation> {
        self.prepare(body)
    }

    /// The core refuses a request after its preparation, which has no effect.
    fn abandon(&mut self) {}

    /// Handles a request of the client. Events that are pushed before this returns reach the client
    /// after its reply.
    fn message(&mut self, message: Message) -> Reply;

    /// Handles an event of the handle's PeerConnection.
    fn event(&mut self, _event: HandleEvent) {}

    /// Returns the handle's state for operators.
    fn query(&self) -> Value {
        json!({})
    }

    /// As [`PluginHandle::query`], for a state that needs time. `None` means that `query` returns
    /// all.
    fn query_later(&self) -> Option<Later> {
        None
    }

    /// The client is gone, and nothing can be sent to it. If there was a PeerConnection,
    /// [`HandleEvent::Hangup`] came before.
    fn detach(&mut self) {}
}

/// The author of a request to a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Author {
    /// The rights of the requester.
    pub rights: Rights,
    /// The rooms and mountpoints that it may name.
    pub scope: TokenScope,
    /// The address of the requester, for limits per client.
    pub client: ClientAddress,
    /// Whether the request has an offer or an answer.
    pub describes: bool,
}

/// A request to a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The transaction that an answering event must carry.
    pub transaction: String,
    /// The part of the request for the plugin.
    pub body: Map<String, Value>,
    /// The client's offer or answer.
    pub jsep: Option<Jsep>,
    /// The same offer. Dropping it without an answer discards the offer, so a plugin that answers
    /// later keeps it.
    pub offer: Option<PendingOffer>,
    /// The rights of the requester. A secret of the plugin in the body can give more.
    pub rights: Rights,
    /// The rooms and mountpoints that it may name.
    pub scope: TokenScope,
    /// The address of the requester, for limits per client.
    pub client: ClientAddress,
}

/// The immediate reply of a plugin.
#[derive(Debug)]
pub enum Reply {
    /// The result, an object. The client gets it as the reply itself.
    Success(Value),
    /// As `Success`, once the result is there. Other requests to the handle wait for it.
    Later(Later),
    /// The result follows as an event. The text is a hint for people.
    Ack(Option<&'static str>),
    /// The request is refused with error 462 and this text.
    Error(String),
}

/// Work before a request is handled.
pub type Preparation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A result that takes time.
pub struct Later(Pin<Box<dyn Future<Output = Value> + Send>>);

impl Later {
    /// A result that is computed by `result`.
    pub fn new(result: impl Future<Output = Value> + Send + 'static) -> Self {
        Later(Box::pin(result))
    }

    /// Waits for the result.
    pub async fn result(self) -> Value {
        self.0.await
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// An event of a handle's PeerConnection.
#[derive(Debug, Clone, PartialEq)]
pub enum HandleEvent {
    /// Media and data flow.
    Up,
    /// A medium of the client started or stopped.
    Media {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// Whether packets come in.
        receiving: bool,
        /// The simulcast layer, if there are several.
        substream: Option<u8>,
    },
    /// Many packets were lost within a second.
    SlowLink {
        /// The m-line.
        mid: Mid,
        /// Whether it is audio (else video).
        audio: bool,
        /// True for packets from the client, false for packets to the client.
        from_client: bool,
        /// The number of lost packets.
        lost: u32,
    },
    /// The client has started or stopped talking, see [`Handle::detect_talking`].
    Talking {
        /// The m-line.
        mid: Mid,
        /// Whether it is talking.
        talking: bool,
        /// The average loudness in -dBov, 0 (loudest) to 127 (silence).
        average: f64,
    },
    /// The speech activity of the client, every 200 ms unless it is silent, see
    /// [`Handle::measure_speech`].
    Speech {
        /// The m-line.
        mid: Mid,
        /// The activity.
        activity: SpeechActivity,
    },
    /// A route to this handle relays another layer, or its sender sends another number of layers.
    Layer {
        /// The route.
        route: RouteId,
        /// The layer that it relays now.
        layer: Layer,
        /// The reason for this layer.
        reason: LayerReason,
    },
    /// A route to this handle that may pause has done so, because the link does not carry it, or
    /// goes on.
    Paused {
        /// The route.
        route: RouteId,
        /// Whether it is paused.
        paused: bool,
    },
    /// The client's estimate of its downlink, in bit/s.
    Remb(u64),
    /// A data channel can be written to.
    DataChannel {
        /// Its label.
        label: String,
        /// Its subprotocol. Empty means none.
        protocol: String,
    },
    /// A message arrived on a data channel without a route.
    Data(DataMessage),
    /// The PeerConnection is gone, for this reason. A new offer can make another.
    Hangup(String),
}
