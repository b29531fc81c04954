//! Dispatches and answers requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use portunus_tokens::{Credentials, ShownToken};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Gateway;
use crate::counters::add;
use crate::events::lifecycle::SessionEnd;
use crate::handle::{self, Attachment, Command, Inbox, Responder};
use crate::request::{Address, Refusal, Request};
use crate::request_traces::OpenTrace;
use crate::session::Session;
use crate::times::RequestKind;
use crate::{ApiError, Client, Fields, HandleId, Object, SessionId, Share, id, prices};

/// The longest time in seconds that a client may ask its session to outlive its connection.
const MAX_RECLAIM_SECONDS: u32 = 60;

/// A request without a reply yet.
#[derive(Debug)]
pub(crate) struct Unanswered {
    session: Option<SessionId>,
    transaction: String,
    kind: RequestKind,
    begun: Instant,
    trace: Option<Box<OpenTrace>>,
}

/// The outcome of a request.
pub(super) enum Answer {
    Now(Value),
    /// A handle answers it. The reply is `None` if the handle has put it into the client's queue.
    Later(Unanswered, oneshot::Receiver<Option<Value>>),
}

/// The outcome of a valid request.
enum Dispatched {
    Done(Value),
    Handed(oneshot::Receiver<Option<Value>>),
}

impl Gateway {
    pub(super) async fn answer_now(
        &self,
        client: &Client,
        request: Result<Request, Refusal>,
        paid: Share,
    ) -> Value {
        match self.answer(client, None, request, paid).await {
            Answer::Now(reply) => reply,
            // Without a queue the reply always comes back.
            Answer::Later(mut request, reply) => {
                self.reply_of(reply.await, &mut request).unwrap_or_default()
            }
        }
    }

    /// Answers a request. `paid` is the client's payment for it.
    pub(super) async fn answer(
        &self,
        client: &Client,
        queue: Option<&Client>,
        request: Result<Request, Refusal>,
        paid: Share,
    ) -> Answer {
        add(&self.inner.context.counters.requests);
        let request = match request {
            Ok(request) => request,
            Err(Refusal {
                error,
                session,
                transaction,
            }) => {
                let counted = match client.is_internal() {
                    true => Ok(()),
                    false => self.count(client.requester(), Credentials::default()),
                };
                let error = counted.err().unwrap_or(error);
                return Answer::Now(self.refuse(&error, session, transaction.as_deref()));
            }
        };
        let mut unanswered = Unanswered {
            session: request.session(),
            transaction: request.transaction.clone(),
            kind: RequestKind::of(client.transport(), &request.verb),
            begun: Instant::now(),
            trace: (self.inner.context.facts.traces.as_ref())
                .map(|_| Box::new(OpenTrace::new(client, &request))),
        };
        if let Err(error) = self.measure(client, &request) {
            return Answer::Now(self.refuse_unanswered(&error, &mut unanswered));
        }
        match self.dispatch(client, queue, request, paid).await {
            Ok(Dispatched::Done(reply)) => {
                self.time(&unanswered);
                self.trace(&mut unanswered, None);
                Answer::Now(reply)
            }
            Ok(Dispatched::Handed(reply)) => Answer::Later(unanswered, reply),
            Err(error) => {
                self.time(&unanswered);
                Answer::Now(self.refuse_unanswered(&error, &mut unanswered))
            }
        }
    }

    /// Returns the reply to a request of a handle, unless it is in the client's queue already.
    pub(crate) fn reply_of(
        &self,
        reply: Result<Option<Value>, oneshot::error::RecvError>,
        request: &mut Unanswered,
    ) -> Option<Value> {
        self.time(request);
        match reply {
            Ok(reply) => {
                let error = reply.as_ref().and_then(|reply| reply.get("error"));
                let error = error.and_then(|error| {
                    let code = u16::try_from(error.get("code")?.as_u64()?).ok()?;
                    Some((code, error.get("reason")?.as_str()?.to_owned()))
                });
                self.trace(request, error);
                reply
            }
            Err(_) => {
                let error = ApiError::PluginMessage("No plugin to handle this message".to_owned());
                Some(self.refuse_unanswered(&error, request))
            }
        }
    }

    /// Hands the trace of an answered request over, if somebody collects traces.
    fn trace(&self, request: &mut Unanswered, error: Option<(u16, String)>) {
        if let (Some(traces), Some(trace)) =
            (&self.inner.context.facts.traces, request.trace.take())
        {
            traces.answered(trace.end(error));
        }
    }

    /// Adds the duration of a request to the histograms.
    fn time(&self, request: &Unanswered) {
        let times = &self.inner.context.counters.times;
        times.request(request.kind, request.begun.elapsed());
    }

    fn refuse_unanswered(&self, error: &ApiError, request: &mut Unanswered) -> Value {
        let reply = self.refuse(error, request.session, Some(&request.transaction));
        self.trace(request, Some((error.code(), error.to_string())));
        reply
    }

    async fn dispatch(
        &self,
        client: &Client,
        queue: Option<&Client>,
        request: Request,
        paid: Share,
    ) -> Result<Dispatched, ApiError> {
        let (id, handle) = match request.address {
            Address::Server => {
                return self.server_request(client, &request).map(Dispatched::Done);
            }
            Address::Session(id) => (id, None),
            Address::Handle(id, handle) => (id, Some(handle)),
        };
        self.authorize_client(client, &request)?;
        let session = self.session(id)?;
        session.touch();
        let handle = match handle {
            None => None,
            Some(handle) => {
                let inbox = session.inbox(handle);
                let inbox = inbox.ok_or(ApiError::HandleNotFound(handle, id))?;
                if request.verb == "message" {
                    self.check_drain_for(&session, handle, &request)?;
                }
                Some(inbox)
            }
        };
        match (request.verb.as_str(), handle) {
            ("keepalive", _) => Ok(Dispatched::Done(self.reply("ack", &session, &request))),
            ("claim", _) => match session.claim(client) {
                true => Ok(Dispatched::Done(self.reply("success", &session, &request))),
                false => {
                    let reason = "This session belongs to the server itself and cannot be claimed";
                    Err(ApiError::Transport(reason.to_owned()))
                }
            },
            ("ice_servers", None) => Ok(Dispatched::Done(self.ice_servers(&session, &request))),
            ("attach", None) => self
                .attach(client, &session, &request)
                .map(Dispatched::Done),
            ("destroy", None) => {
                self.inner.remove(&session, SessionEnd::Destroyed);
                Ok(Dispatched::Done(self.reply("success", &session, &request)))
            }
            ("message" | "trickle" | "hangup" | "detach", Some(handle)) => {
                let purse = session.purse().clone();
                let (responder, reply) = Responder::new(queue.cloned(), purse, paid);
                self.hand(client, &session, &handle, responder, request)
                    .await;
                Ok(Dispatched::Handed(reply))
            }
            ("attach" | "destroy" | "ice_servers", Some(_))
            | ("message" | "trickle" | "hangup" | "detach", None) => {
                Err(ApiError::InvalidPath(request.verb))
            }
            _ => Err(ApiError::UnknownRequest(request.verb)),
        }
    }

    fn server_request(&self, client: &Client, request: &Request) -> Result<Value, ApiError> {
        let transaction = &request.transaction;
        match request.verb.as_str() {
            "info" => Ok(self.info(Some(transaction))),
            "ping" => Ok(json!({ "janus": "pong", "transaction": transaction })),
            "create" => self.create(client, request),
            _ => Err(ApiError::InvalidPath(request.verb.clone())),
        }
    }

    fn create(&self, client: &Client, request: &Request) -> Result<Value, ApiError> {
        let inner = &self.inner;
        if !inner.accepting.load(Ordering::Relaxed) {
            return Err(ApiError::NotAcceptingSessions);
        }
        self.check_drain()?;
        self.authorize_client(client, request)?;
        let config = inner.context.config();
        let purse = self.purse(client, request);
        let mut sessions = inner.sessions();
        if reached(config.max_sessions, sessions.len())
            || (!client.is_polled()
                && reached(config.max_sessions_per_connection, client.session_count()))
        {
            return Err(ApiError::NotAcceptingSessions);
        }
        let id = match id::read(request.members.get("id"), inner.context.config().string_ids) {
            0 => SessionId::random(|id| sessions.contains_key(&id)),
            wanted if sessions.contains_key(&SessionId(wanted)) => {
                return Err(ApiError::SessionConflict);
            }
            wanted => SessionId(wanted),
        };
        let context = &inner.context;
        let (counters, events) = (context.counters.clone(), context.facts.events.clone());
        let purse = purse.open(prices::SESSION, prices::SESSION_PREPAID)?;
        let reclaim = request.members.get("reclaim_session_timeout");
        let reclaim = reclaim.and_then(Value::as_u64).map(|seconds| {
            u32::try_from(seconds).map_or(MAX_RECLAIM_SECONDS, |it| it.min(MAX_RECLAIM_SECONDS))
        });
        let session = Session::new(id, client.clone(), counters, events, purse, reclaim);
        let session = Arc::new(session);
        sessions.insert(id, session.clone());
        add(&inner.context.counters.sessions);
        drop(sessions);
        session.publish_created(client);
        Ok(json!({
            "janus": "success",
            "transaction": request.transaction,
            "data": { "id": id.to_json(inner.context.config().string_ids) },
        }))
    }

    fn attach(
        &self,
        client: &Client,
        session: &Arc<Session>,
        request: &Request,
    ) -> Result<Value, ApiError> {
        let context = &self.inner.context;
        let package = Fields(&request.members).required_string("plugin")?;
        let opaque_id = Fields(&request.members).string("opaque_id")?;
        self.check_drain_of(session)?;
        let plugin = self
            .inner
            .plugins
            .iter()
            .find(|plugin| plugin.info().package == package)
            .ok_or_else(|| ApiError::PluginNotFound(package.to_owned()))?;
        let may_attach =
            client.is_internal() || context.tokens.opens(request.text("token"), package);
        if !may_attach {
            return Err(ApiError::UnauthorizedPlugin(package.to_owned()));
        }
        if reached(
            context.config().max_handles_per_session,
            session.handle_count(),
        ) {
            return Err(ApiError::PluginAttach("too many handles"));
        }
        let opaque = opaque_id.map_or(0, str::len);
        let paid = session
            .purse()
            .take(prices::HANDLE.saturating_add(opaque))?;
        let id = HandleId::random(|id| session.has_handle(id));
        let token = match client.is_internal() {
            true => client.scope().subject().map(ShownToken::Subject),
            false => context.tokens.shown_as(request.text("token")),
        };
        let attachment = Attachment {
            opaque_id,
            token,
            paid,
        };
        let handle = handle::start(id, session.clone(), &**plugin, attachment, context.clone())
            .map_err(|()| ApiError::SessionNotFound(session.id))?;
        self.inner.handles.insert(&handle);
        let data = json!({ "id": id.to_json(context.config().string_ids) });
        let reply = Object::new().with_all(self.reply("success", session, request));
        Ok(reply.with("data", data).into())
    }

    /// Returns the TURN server for a session's client as `RTCPeerConnection` takes it, and the
    /// validity of its credentials in seconds.
    fn ice_servers(&self, session: &Session, request: &Request) -> Value {
        let servers = self.turn().map(|turn| {
            let server = turn.ice_server();
            json!({
                "urls": server.urls,
                "username": server.username,
                "credential": server.credential,
            })
        });
        let lifetime = self.turn().map(|turn| turn.credential_lifetime().as_secs());
        let data = Object::new()
            .with("ice_servers", servers.into_iter().collect::<Vec<_>>())
            .with_some("ttl", lifetime);
        let reply = Object::new().with_all(self.reply("success", session, request));
        reply.with("data", Value::from(data)).into()
    }

    /// Passes a request to the handle's task. No reply comes if the task has ended, or ends before
    /// it.
    async fn hand(
        &self,
        client: &Client,
        session: &Arc<Session>,
        handle: &Inbox,
        responder: Responder,
        request: Request,
    ) {
        let Request {
            transaction,
            verb,
            members,
            address,
        } = request;
        let command = match verb.as_str() {
            "message" => Command::Message {
                transaction,
                members,
                client: client.clone(),
                responder,
            },
            "trickle" => Command::Trickle {
                transaction,
                members,
                responder,
            },
            "hangup" => {
                let reason = "Janus API".to_owned();
                Command::Hangup {
                    reason,
                    responder: Some((transaction, responder)),
                }
            }
            _ => Command::Detach {
                responder: Some((transaction, responder)),
            },
        };
        match (&command, address) {
            (Command::Detach { .. }, Address::Handle(_, id)) => {
                session.remove_handle(id);
                // No request finds the handle any more, so it must end even if the client leaves
                // meanwhile.
                handle.deliver(command);
            }
            _ => {
                // If the task has ended, the responder is dropped with the command.
                handle.send(command).await;
            }
        }
    }

    fn reply(&self, janus: &str, session: &Session, request: &Request) -> Value {
        json!({
            "janus": janus,
            "session_id": session.id.to_json(self.inner.context.config().string_ids),
            "transaction": request.transaction,
        })
    }

    fn authorize_client(&self, client: &Client, request: &Request) -> Result<(), ApiError> {
        match client.is_internal() {
            true => Ok(()),
            false => self.authorize(Credentials::of(&request.members)),
        }
    }
}

/// Whether the limit is reached. A limit of 0 means no limit.
fn reached(limit: usize, count: usize) -> bool {
    limit > 0 && count >= limit
}
