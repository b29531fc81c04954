//! A handle: a client's attachment to a plugin.

mod actor;
mod closed_connection;
mod connection;
mod facts;
mod inbox;
mod jsep;
mod local;
mod notifications;
mod outgoing;
mod pending_offer;
mod trickle;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portunus_media::{
    DataMessage, DataOptions, KeyframeCache, MediaPlane, PeerId, PeerStats, RouteId, RouteOptions,
    SourceRef, TalkDetection, TrackRef,
};
use portunus_record::Recorder;
use portunus_rtp::Mid;
use portunus_sdp::{Description, LocalJsep, Negotiated};
use portunus_tokens::ShownToken;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::client_message::Addressed;
use crate::context::Context;
use crate::events::EventAddress;
use crate::session::Session;
use crate::{ClientMessage, HandleId, Notice, Object, PluginInfo, SessionId, client_event};

pub(crate) use actor::{Attachment, start};
pub use facts::{ConnectionFacts, HandleFacts, PeerFacts};
pub(crate) use inbox::{Command, Inbox, Responder};
pub use local::{JsepError, LocalIce};
pub use pending_offer::PendingOffer;

use closed_connection::Untold;
use connection::Connections;
use outgoing::Outgoing;

/// A plugin's access to one client and its PeerConnection; cheap to clone.
///
/// A handle outlives its client. Then its operations have no effect.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    id: HandleId,
    session: Arc<Session>,
    plugin: PluginInfo,
    opaque_id: Option<Arc<str>>,
    /// The token that it was attached with, as operators and events see it.
    token: Option<ShownToken>,
    created: Instant,
    context: Arc<Context>,
    inbox: Inbox,
    /// Detached: the client gets nothing more.
    stopped: AtomicBool,
    outgoing: Mutex<Outgoing>,
    connections: Mutex<Connections>,
}

impl Handle {
    /// The handle's id.
    pub fn id(&self) -> HandleId {
        self.shared.id
    }

    /// The id of the session that it belongs to.
    pub fn session_id(&self) -> SessionId {
        self.shared.session.id
    }

    /// The text that the client gave it to recognise it by.
    pub fn opaque_id(&self) -> Option<&str> {
        self.shared.opaque_id.as_deref()
    }

    /// Whether `token` is signed for this plugin and opens `descriptor`, such as `room=1234`, or is
    /// a JSON Web Token that opens this room. Returns `None` if the server has no secret and no key
    /// for such tokens.
    pub fn signed_token_opens(&self, token: Option<&str>, descriptor: &str) -> Option<bool> {
        let (tokens, realm) = (&self.shared.context.tokens, self.shared.plugin.package);
        tokens.signed_opens(token, realm, descriptor)
    }

    /// The token that the handle was attached with, as operators and events see it: the subject of
    /// a JSON Web Token, or another token as it is. `None` without a valid token.
    pub fn token(&self) -> Option<&str> {
        self.shared.token.as_ref().map(|token| match token {
            ShownToken::Subject(text) | ShownToken::Text(text) => &**text,
        })
    }

    /// The subject of the JSON Web Token that the handle was attached with, for the log.
    pub fn subject(&self) -> Option<&str> {
        match &self.shared.token {
            Some(ShownToken::Subject(subject)) => Some(subject),
            Some(ShownToken::Text(_)) | None => None,
        }
    }

    /// Sends an event to the client: `data`, an object; the transaction of the request that it
    /// answers; and an offer or answer.
    pub fn push(&self, transaction: Option<&str>, data: impl Into<Value>, jsep: Option<LocalJsep>) {
        let package = self.shared.plugin.package;
        let event = Object::new()
            .with("janus", "event")
            .with_some("transaction", transaction)
            .with(
                "plugindata",
                json!({ "plugin": package, "data": data.into() }),
            )
            .with_some("jsep", jsep.as_ref().map(local::to_json));
        self.emit(event.into());
        for event in jsep.into_iter().flat_map(local::trickled) {
            self.emit(event);
        }
    }

    /// Sends an event that many clients get, without a transaction. Its data is serialized once for
    /// all of them.
    pub fn send_notice(&self, notice: &Notice) {
        let config = self.shared.context.config();
        let opaque_id = config.opaqueid_in_api.then_some(&self.shared.opaque_id);
        self.send(Addressed {
            session: self.session_id(),
            sender: self.id(),
            opaque_id: opaque_id.cloned().flatten(),
            string_ids: config.string_ids,
            plugin: self.shared.plugin.package,
            notice: notice.clone(),
        });
    }

    /// Publishes an event of the plugin. `data` is called only if anyone subscribed. Clients get
    /// nothing.
    pub fn notify(&self, data: impl FnOnce() -> Value) {
        let events = &self.shared.context.facts.events;
        let events = events.of_plugin(self.shared.plugin.package);
        events.notify_at(|| self.event_address(), data);
    }

    pub(crate) fn event_address(&self) -> EventAddress {
        EventAddress {
            session: Some(self.session_id()),
            handle: Some(self.id()),
            opaque_id: self.shared.opaque_id.clone(),
            plugin: Some(self.shared.plugin.package),
        }
    }

    /// Answers the client's offer with `description`. The caller pushes the result.
    pub fn answer(&self, description: Description) -> Result<LocalJsep, JsepError> {
        self.connections().answer(self, description)
    }

    /// Offers `description` to the client, with new ICE credentials if `restart`. The caller pushes
    /// the result. The client's answer comes as a [`crate::Message`].
    pub fn offer(&self, description: Description, restart: bool) -> Result<LocalJsep, JsepError> {
        self.connections().offer(self, description, restart)
    }

    /// Returns what the last offer and answer agreed on, or `None` before the first and after a
    /// hangup.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.connections().negotiated().cloned()
    }

    /// Closes the PeerConnection, if there is one: the client gets `hangup`. The plugin, as the
    /// caller, gets no [`crate::HandleEvent::Hangup`].
    pub fn close_pc(&self) {
        const REASON: &str = "Close PC";
        let mut connections = self.connections();
        let Some(closed) = connections.close() else {
            return;
        };
        // Under the lock, so that the end of the handle is published later.
        let has_to_wait = closed.has_to_wait();
        match has_to_wait {
            true => connections.leave_untold(Untold {
                closed,
                reason: REASON,
            }),
            false => self.publish_hangup(REASON, None),
        }
        drop(connections);
        if has_to_wait {
            self.shared.inbox.deliver(Command::TellClosed);
        }
        self.emit(client_event::hangup(REASON, None));
    }

    /// Closes the PeerConnection: the client gets `hangup` with this reason, and the plugin
    /// [`crate::HandleEvent::Hangup`].
    pub fn hangup(&self, reason: &str) {
        self.shared.inbox.deliver(Command::Hangup {
            reason: reason.to_owned(),
            responder: None,
        });
    }

    /// As [`Handle::end`]. From now on no request finds the handle.
    pub fn detach(&self) {
        self.shared.session.remove_handle(self.id());
        self.end();
    }

    /// Asks the plugin for the state that operators see. Returns `None` if the handle has ended.
    pub async fn query(&self) -> Option<Value> {
        let (reply, state) = oneshot::channel();
        self.shared.inbox.send(Command::Query { reply }).await;
        state.await.ok()
    }

    /// Detaches the handle: the client gets `detached`.
    pub fn end(&self) {
        self.shared
            .inbox
            .deliver(Command::Detach { responder: None });
    }

    /// Routes m-line `mid` of this client to m-line `to_mid` of `to`. Returns `None` if one of them
    /// has no PeerConnection. The route ends with [`Handle::remove_route`] or with either
    /// PeerConnection.
    pub fn route(
        &self,
        mid: Mid,
        to: &Handle,
        to_mid: Mid,
        options: RouteOptions,
    ) -> Option<RouteId> {
        to.route_from(self.track(mid)?, to_mid, options)
    }

    /// Routes `source` to m-line `mid`. Returns `None` without a PeerConnection. The route ends
    /// with [`Handle::remove_route`], the PeerConnection or the source.
    pub fn route_from(
        &self,
        source: impl Into<SourceRef>,
        mid: Mid,
        options: RouteOptions,
    ) -> Option<RouteId> {
        let to = self.track(mid)?;
        Some(self.shared.context.media.route(source, to, options))
    }

    /// Returns m-line `mid` of the client as a source of routes, or `None` without a
    /// PeerConnection.
    pub fn track(&self, mid: Mid) -> Option<TrackRef> {
        let peer = self.peer()?;
        Some(TrackRef { peer, mid })
    }

    /// Changes the options of a route.
    pub fn set_route(&self, route: RouteId, options: RouteOptions) {
        self.shared.context.media.set_route(route, options);
    }

    /// Ends a route.
    pub fn remove_route(&self, route: RouteId) {
        self.shared.context.media.remove_route(route);
    }

    /// Limits the bitrate of the client, in bit/s. `None` removes the limit.
    pub fn set_bitrate(&self, bitrate: Option<u64>) {
        if let Some(peer) = self.peer() {
            self.shared.context.media.set_bitrate(peer, bitrate);
        }
    }

    /// Notes that the client's media is encrypted end to end, whatever its descriptions say. Its
    /// payloads are not inspected.
    pub fn set_opaque(&self) {
        if let Some(peer) = self.peer() {
            self.shared.context.media.set_opaque(peer);
        }
    }

    /// Requests keyframes for all video of the client.
    pub fn request_keyframe(&self) {
        if let Some(peer) = self.peer() {
            self.shared.context.media.request_keyframe(peer);
        }
    }

    /// Requests a keyframe for m-line `mid` of the client.
    pub fn request_keyframe_on(&self, mid: Mid) {
        if let Some(track) = self.track(mid) {
            self.shared.context.media.request_source_keyframe(track);
        }
    }

    /// Keeps the packets of m-line `mid` from its last keyframe on, for new routes. `None` keeps
    /// nothing.
    pub fn keep_keyframe(&self, mid: Mid, keep: Option<KeyframeCache>) {
        if let Some(track) = self.track(mid) {
            self.shared.context.media.keep_keyframe(track, keep);
        }
    }

    /// Reports by [`crate::HandleEvent::Talking`] when the client starts and stops talking on
    /// m-line `mid`, if its packets contain their loudness. `None` disables it.
    pub fn detect_talking(&self, mid: Mid, detection: Option<TalkDetection>) {
        if let Some(track) = self.track(mid) {
            self.shared.context.media.detect_talking(track, detection);
        }
    }

    /// Reports by [`crate::HandleEvent::Speech`] how much the client speaks on m-line `mid`, if its
    /// packets contain their loudness.
    pub fn measure_speech(&self, mid: Mid, wanted: bool) {
        if let Some(track) = self.track(mid) {
            self.shared.context.media.measure_speech(track, wanted);
        }
    }

    /// Opens a data channel, if there is none with this label.
    pub fn open_data(&self, label: &str, options: DataOptions) {
        if let Some(peer) = self.peer() {
            let media = &self.shared.context.media;
            media.open_data(peer, label.to_owned(), options);
        }
    }

    /// Sends a message on the data channel with its label, and opens the channel if necessary.
    pub fn send_data(&self, message: DataMessage) {
        if let Some(peer) = self.peer() {
            self.shared.context.media.send_data(peer, message);
        }
    }

    /// As [`Handle::send_data`]. If it opens the channel, that has these `options`.
    pub fn send_data_with(&self, message: DataMessage, options: DataOptions) {
        if let Some(peer) = self.peer() {
            self.shared
                .context
                .media
                .send_data_with(peer, message, options);
        }
    }

    /// Returns the statistics of the PeerConnection, or `None` without one.
    pub async fn stats(&self) -> Option<PeerStats> {
        let peer = self.peer()?;
        self.shared.context.media.stats(peer).await
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.shared.context.facts.recorder
    }

    pub(crate) fn media(&self) -> &MediaPlane {
        &self.shared.context.media
    }

    /// Whether `peer` is its PeerConnection, and media can flow.
    pub(crate) fn is_up(&self, peer: PeerId) -> bool {
        self.connections().is_up(peer)
    }

    pub(crate) fn downgrade(&self) -> WeakHandle {
        WeakHandle(Arc::downgrade(&self.shared))
    }

    /// Its PeerConnection in the media plane, or `None` if there is none.
    pub fn peer(&self) -> Option<PeerId> {
        self.connections().peer()
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.shared
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event with the handle's address, after a reply in progress.
    fn emit(&self, event: Value) {
        self.send(self.addressed(event, true));
    }

    /// Sends an addressed event after a reply in progress.
    fn send(&self, event: impl Into<ClientMessage>) {
        if self.shared.stopped.load(Ordering::Acquire) {
            return;
        }
        let mut outgoing = self.outgoing();
        outgoing.push(event);
        self.send_due(&mut outgoing);
    }

    /// Holds events until [`Handle::release`].
    fn hold(&self) {
        self.outgoing().replying();
    }

    /// Notes that the reply is sent. After a pushed ack, answers wait for a moment.
    fn release(&self, is_pushed_ack: bool) {
        let mut outgoing = self.outgoing();
        outgoing.replied(is_pushed_ack, Instant::now());
        self.send_due(&mut outgoing);
    }

    /// Sends all remaining events before the handle ends.
    fn send_all(&self) {
        let mut outgoing = self.outgoing();
        while let Some(event) = outgoing.last() {
            self.shared.session.emit(event);
        }
    }

    /// Under the lock, so that events of several tasks keep their order.
    fn send_due(&self, outgoing: &mut Outgoing) {
        let now = Instant::now();
        while let Some(event) = outgoing.next(now) {
            self.shared.session.emit(event);
        }
        if let Some(deadline) = outgoing.deadline() {
            let handle = self.clone();
            tokio::spawn(async move {
                sleep_until(deadline).await;
                let mut outgoing = handle.outgoing();
                outgoing.woken();
                handle.send_due(&mut outgoing);
            });
        }
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.shared
            .outgoing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `message` with its address in the usual order: the session, and the handle if it is
    /// the `sender`.
    fn addressed(&self, message: Value, sender: bool) -> Value {
        let config = self.shared.context.config();
        let Value::Object(mut rest) = message else {
            return message;
        };
        let mut addressed = Map::new();
        let mut add = |name: &str, value| addressed.insert(name.to_owned(), value);
        add("janus", rest.shift_remove("janus").unwrap_or_default());
        add("session_id", self.session_id().to_json(config.string_ids));
        if let Some(transaction) = rest.shift_remove("transaction") {
            add("transaction", transaction);
        }
        if sender {
            add("sender", self.id().to_json(config.string_ids));
        }
        if let Some(opaque_id) = self
            .opaque_id()
            .filter(|_| sender && config.opaqueid_in_api)
        {
            add("opaque_id", opaque_id.into());
        }
        addressed.extend(rest);
        Value::Object(addressed)
    }
}

/// A weak reference to a handle.
#[derive(Clone)]
pub(crate) struct WeakHandle(Weak<Shared>);

impl WeakHandle {
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        let shared = self.0.upgrade()?;
        Some(Handle { shared })
    }
}

impl fmt::Debug for WeakHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakHandle")
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({} of session {})", self.id(), self.session_id())
    }
}
