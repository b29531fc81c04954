//! The task of a handle, which processes requests and events one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use portunus_media::{CloseReason, Event, IceCause, IceState, PeerEvent, PeerStats};
use portunus_tokens::ShownToken;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::closed_connection::Untold;
use super::connection::Connections;
use super::inbox::Commands;
use super::jsep::RawJsep;
use super::outgoing::Outgoing;
use super::{Command, Handle, Inbox, PendingOffer, Responder, Shared, trickle};
use crate::context::Context;
use crate::counters::{add, subtract};
use crate::plugin::{Author, HandleEvent, Message, Plugin, PluginHandle, Reply};
use crate::session::{Attached, Session};
use crate::{
    ApiError, Client, Credentials, Fields, HandleId, JsepKind, Object, Rights, Share, TokenScope,
    client_event,
};

/// The request to attach a handle.
pub(crate) struct Attachment<'a> {
    pub(crate) opaque_id: Option<&'a str>,
    pub(crate) token: Option<ShownToken>,
    /// The client's payment for the handle.
    pub(crate) paid: Share,
}

/// Attaches a new handle of `session` to `plugin`, and starts its task. Fails if the session has
/// ended.
pub(crate) fn start(
    id: HandleId,
    session: Arc<Session>,
    plugin: &dyn Plugin,
    attachment: Attachment<'_>,
    context: Arc<Context>,
) -> Result<Handle, ()> {
    let Attachment {
        opaque_id,
        token,
        paid,
    } = attachment;
    session.begin_handle()?;
    let (inbox, commands) = Inbox::new(context.counters.clone());
    let full_trickle = context.config().full_trickle && !session.is_internal();
    let shared = Shared {
        id,
        session: session.clone(),
        plugin: plugin.info(),
        opaque_id: opaque_id.map(Arc::from),
        token,
        created: Instant::now(),
        inbox: inbox.clone(),
        stopped: AtomicBool::new(false),
        outgoing: Mutex::new(Outgoing::new(context.config().ack_pause())),
        connections: Mutex::new(Connections::new(context.clone(), full_trickle)),
        context: context.clone(),
    };
    let handle = Handle {
        shared: Arc::new(shared),
    };
    add(&context.counters.handles);
    handle.publish_attached();
    let actor = Actor {
        handle: handle.clone(),
        plugin: plugin.attach(handle.clone()),
        _paid: paid,
    };
    let task = tokio::spawn(actor.run(commands));
    let added = session.add_handle(id, Attached { inbox, task });
    added.map_err(|attached| {
        attached.inbox.deliver(Command::Detach { responder: None });
    })?;
    Ok(handle)
}

struct Actor {
    handle: Handle,
    plugin: Box<dyn PluginHandle>,
    /// The client's payment for the handle.
    _paid: Share,
}

impl Actor {
    async fn run(mut self, mut commands: Commands) {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Message {
                    transaction,
                    members,
                    client,
                    responder,
                } => {
                    let reply = self.message(&transaction, &members, &client).await;
                    self.respond(&transaction, reply, responder);
                }
                Command::Trickle {
                    transaction,
                    members,
                    responder,
                } => {
                    let reply = self.trickle(&members);
                    self.respond(&transaction, reply, responder);
                }
                Command::Hangup { reason, responder } => {
                    self.handle.hold();
                    self.hangup(&reason, None, None).await;
                    match responder {
                        Some((transaction, responder)) => {
                            self.respond(&transaction, Ok(success()), responder);
                        }
                        None => self.handle.release(false),
                    }
                }
                Command::Query { reply } => match self.plugin.query_later() {
                    // Other requests to the handle do not wait for it.
                    Some(later) => {
                        tokio::spawn(async move {
                            let _ = reply.send(later.result().await);
                        });
                    }
                    None => {
                        let _ = reply.send(self.plugin.query());
                    }
                },
                Command::RestartIce { remote, reply } => {
                    let _ = reply.send(self.handle.connections().restart_ice(&self.handle, remote));
                }
                Command::Peer(event) => {
                    if self.handle.peer() == Some(event.peer) {
                        self.peer_event(event).await;
                    }
                }
                Command::TellClosed => self.publish_pending_ends().await,
                Command::Detach { responder } => {
                    self.handle.send_all();
                    self.handle.shared.stopped.store(true, Ordering::Release);
                    self.publish_pending_ends().await;
                    self.hangup("Detach", None, None).await;
                    self.plugin.detach();
                    if let Some((transaction, responder)) = responder {
                        self.respond(&transaction, Ok(success()), responder);
                    }
                    return;
                }
            }
        }
    }

    /// Sends the reply, then the events made meanwhile. After a pushed ack, answering events wait
    /// for a moment, since some clients read both at once and lose the second.
    fn respond(&self, transaction: &str, reply: Result<Value, ApiError>, responder: Responder) {
        let shared = &self.handle.shared;
        let session = self
            .handle
            .session_id()
            .to_json(shared.context.config().string_ids);
        let reply = match reply {
            Ok(reply) => {
                let reply = Object::new()
                    .with_all(reply)
                    .with("transaction", transaction);
                let reply = Value::from(reply);
                // Only messages of the plugin have a sender.
                let sender = reply.get("plugindata").is_some();
                self.handle.addressed(reply, sender)
            }
            Err(error) => {
                shared.context.counters.refused(&error);
                error.reply(Some(session), Some(transaction))
            }
        };
        let is_ack = reply.get("janus").is_some_and(|janus| janus == "ack");
        let is_pushed = responder.respond(reply);
        self.handle.release(is_ack && is_pushed);
    }

    async fn message(
        &mut self,
        transaction: &str,
        members: &Map<String, Value>,
        client: &Client,
    ) -> Result<Value, ApiError> {
        let body = Fields(members).required_object("body");
        let author = self.author(members, client);
        let preparation = body
            .ok()
            .and_then(|body| self.plugin.prepare_for(body, &author));
        if let Some(preparation) = preparation {
            preparation.await;
        }
        self.handle.hold();
        let message = self.read_message(transaction, members, author);
        let message = message.inspect_err(|_| self.plugin.abandon())?;
        let reply = match self.plugin.message(message) {
            Reply::Later(later) => Reply::Success(later.result().await),
            reply => reply,
        };
        match reply {
            Reply::Success(data) if data.is_object() => Ok(json!({
                "janus": "success",
                "plugindata": { "plugin": self.handle.shared.plugin.package, "data": data },
            })),
            Reply::Success(_) | Reply::Later(_) => Err(ApiError::PluginMessage(
                "Plugin returned an invalid JSON response".to_owned(),
            )),
            Reply::Ack(None) => Ok(json!({ "janus": "ack" })),
            Reply::Ack(Some(hint)) => Ok(json!({ "janus": "ack", "hint": hint })),
            Reply::Error(text) => Err(ApiError::PluginMessage(text)),
        }
    }

    /// Reads a request for the plugin.
    fn read_message(
        &self,
        transaction: &str,
        members: &Map<String, Value>,
        author: Author,
    ) -> Result<Message, ApiError> {
        let body = Fields(members).required_object("body")?.clone();
        let jsep = match RawJsep::read(members)? {
            Some(raw) => Some(self.handle.connections().remote(&self.handle, &raw)?),
            None => None,
        };
        let is_offer = jsep
            .as_ref()
            .is_some_and(|jsep| jsep.kind == JsepKind::Offer);
        let offer = is_offer.then(|| {
            let number = self.handle.connections().last_offer();
            PendingOffer::new(self.handle.clone(), number)
        });
        let Author {
            rights,
            scope,
            client,
            describes: _,
        } = author;
        Ok(Message {
            transaction: transaction.to_owned(),
            body,
            jsep,
            offer,
            rights,
            scope,
            client,
        })
    }

    fn author(&self, members: &Map<String, Value>, client: &Client) -> Author {
        Author {
            rights: self.rights(members, client),
            scope: self.scope(members, client),
            client: client.requester().address(),
            describes: members.contains_key("jsep"),
        }
    }

    fn rights(&self, members: &Map<String, Value>, client: &Client) -> Rights {
        let shared = &self.handle.shared;
        let (tokens, package) = (&shared.context.tokens, shared.plugin.package);
        let shown = Credentials::of(members);
        let found = tokens.rights(client.requester().is_local(), shown, Some(package));
        found.and(client.rights())
    }

    fn scope(&self, members: &Map<String, Value>, client: &Client) -> TokenScope {
        let shared = &self.handle.shared;
        match client.is_internal() {
            true => client.scope().clone(),
            false => {
                let token = Credentials::of(members).token;
                shared.context.tokens.scope(token, shared.plugin.package)
            }
        }
    }

    fn trickle(&mut self, members: &Map<String, Value>) -> Result<Value, ApiError> {
        self.handle.hold();
        let candidates = trickle::read(members)?;
        // An empty text, or no candidate, is the end of candidates.
        if candidates.is_empty() || candidates.iter().any(|it| it.text.is_empty()) {
            self.handle.connections().all_trickled();
        }
        self.handle.connections().trickle(&self.handle, candidates);
        Ok(json!({ "janus": "ack" }))
    }

    /// Closes the PeerConnection, if there is one, and notifies subscribers, the plugin and the
    /// client in this order. `last` are the last statistics, if the media plane sent them. `cause`
    /// is the reason of a failure of ICE.
    async fn hangup(
        &mut self,
        reason: &str,
        cause: Option<IceCause>,
        last: Option<Box<PeerStats>>,
    ) {
        let closed = self.handle.connections().start_closing();
        if let Some(closed) = closed {
            closed
                .publish(&self.handle, reason, cause.as_ref(), last)
                .await;
            self.plugin.event(HandleEvent::Hangup(reason.to_owned()));
            self.handle
                .emit(client_event::hangup(reason, cause.as_ref()));
            self.handle.connections().set_last_cause(cause);
            self.handle.connections().closed();
        }
    }

    /// Publishes the ends of PeerConnections that the plugin has closed.
    async fn publish_pending_ends(&mut self) {
        let untold = self.handle.connections().take_untold();
        for Untold { closed, reason } in untold {
            closed.publish(&self.handle, reason, None, None).await;
        }
    }

    async fn peer_event(&mut self, event: PeerEvent) {
        let PeerEvent { event, last, .. } = event;
        let no_media_ms = self.handle.shared.context.settings.no_media_ms();
        let told = client_event::of_peer(&event, no_media_ms).filter(|_| self.is_told(&event));
        // Media events for clients and for subscribers are the same.
        if told.is_some() || !matches!(event, Event::Media { .. }) {
            self.handle.publish_peer_event(&event);
        }
        match &event {
            Event::Ice(IceState::Connected | IceState::Ready) => {
                self.handle.connections().ice_connected();
            }
            Event::Media {
                receiving: true, ..
            } => self.handle.connections().media_came(),
            _ => {}
        }
        let event = match event {
            Event::Connected { srtp_profile } => {
                tracing::debug!(handle = %self.handle.id(), srtp_profile, "PeerConnection up");
                self.handle.connections().up();
                HandleEvent::Up
            }
            Event::Media {
                mid,
                audio,
                receiving,
                substream,
            } => HandleEvent::Media {
                mid,
                audio,
                receiving,
                substream,
            },
            Event::SlowLink {
                mid,
                audio,
                uplink,
                lost,
            } => HandleEvent::SlowLink {
                mid,
                audio,
                from_client: uplink,
                lost,
            },
            Event::Layer {
                route,
                layer,
                reason,
            } => HandleEvent::Layer {
                route,
                layer,
                reason,
            },
            Event::Paused { route, paused } => HandleEvent::Paused { route, paused },
            Event::Talking {
                mid,
                talking,
                average,
            } => HandleEvent::Talking {
                mid,
                talking,
                average: f64::from(average) / 100.0,
            },
            Event::Speech { mid, activity } => HandleEvent::Speech { mid, activity },
            Event::Remb { bitrate } => HandleEvent::Remb(bitrate),
            Event::DataChannel { label, protocol } => HandleEvent::DataChannel { label, protocol },
            Event::Data(message) => HandleEvent::Data(message),
            Event::Closed(reason) => return self.closed(&reason, last).await,
            Event::Ice(_) | Event::SelectedPair(_) | Event::Dtls { .. } => return,
        };
        self.plugin.event(event);
        if let Some(told) = told {
            self.handle.emit(told);
        }
    }

    /// Whether the client gets the event. A client without notification of silence gets one event
    /// for each medium, when it starts.
    fn is_told(&self, event: &Event) -> bool {
        match event {
            Event::Media {
                mid,
                receiving,
                substream,
                ..
            } if self.handle.shared.context.settings.no_media_ms() == 0 => {
                *receiving && self.handle.connections().comes_first(*mid, *substream)
            }
            _ => true,
        }
    }

    async fn closed(&mut self, reason: &CloseReason, last: Option<Box<PeerStats>>) {
        let (session, handle) = (self.handle.session_id(), self.handle.id());
        let subject = self.handle.subject();
        let counters = &self.handle.shared.context.counters;
        let mut cause = None;
        match reason {
            CloseReason::IceFailed(attempt) => {
                add(&counters.ice_failures);
                tracing::warn!(%session, %handle, subject, "ICE failed: {attempt}");
                cause = Some(attempt.cause());
            }
            // Most of these clients have closed the page.
            CloseReason::ConsentLost(attempt) => {
                add(&counters.ice_failures);
                tracing::info!(%session, %handle, subject, "connection lost: {attempt}");
                cause = Some(attempt.cause());
            }
            CloseReason::DtlsFailed(cause) => {
                add(&counters.dtls_failures);
                tracing::warn!(%session, %handle, subject, "DTLS failed: {cause}");
            }
            // The media plane logs its own faults.
            CloseReason::Requested | CloseReason::DtlsAlert | CloseReason::Internal => {}
        }
        self.hangup(reason.as_str(), cause, last).await;
    }
}

/// Cleans up however the task ends. A panic of the plugin affects only this handle.
impl Drop for Actor {
    fn drop(&mut self) {
        let shared = &self.handle.shared;
        self.handle.send_all();
        shared.stopped.store(true, Ordering::Release);
        let (untold, closed) = {
            let mut connections = self.handle.connections();
            (connections.take_untold(), connections.close())
        };
        // A drop cannot wait for the last statistics.
        for Untold { reason, .. } in untold {
            self.handle.publish_hangup(reason, None);
        }
        if closed.is_some() {
            self.handle.publish_hangup("Detach", None);
        }
        shared.session.remove_handle(self.handle.id());
        shared
            .session
            .emit(self.handle.addressed(client_event::detached(), true));
        subtract(&shared.context.counters.handles);
        self.handle.publish_detached();
        shared.session.end_handle();
    }
}

fn success() -> Value {
    json!({ "janus": "success" })
}
