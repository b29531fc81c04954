//! The core's face to the transports: requests in, replies and events out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portunus_media::{MediaPlane, PeerEvent};
use portunus_sdp::IceCredentials;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::begun::Begun;
use crate::context::{Context, Peers, deliver_events};
use crate::counters::{add, subtract};
use crate::handle::{self, Command, Inbox, LocalIce, Responder};
use crate::request::{Address, Refusal, Request};
use crate::session::{Attached, Session};
use crate::{
    ApiError, Client, CoreConfig, Counters, Fields, HandleId, Object, Plugin, PluginInfo,
    ServerFacts, SessionId, id, info,
};

/// How often sessions are checked for silence.
const WATCHDOG_PERIOD: Duration = Duration::from_secs(1);

/// How long a shutdown waits for handles that do not end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The server's core; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<Context>,
    plugins: Vec<Arc<dyn Plugin>>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    accepting: AtomicBool,
}

/// What a client shows to be let in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The API secret.
    pub api_secret: Option<&'a str>,
    /// A token.
    pub token: Option<&'a str>,
}

/// A request that has no reply yet.
#[derive(Debug)]
pub(crate) struct Unanswered {
    session: Option<SessionId>,
    transaction: String,
}

/// What becomes of a request.
enum Answer {
    Now(Value),
    /// A handle has it; it gives the reply, or none if it has put it into the client's queue itself.
    Later(Unanswered, oneshot::Receiver<Option<Value>>),
}

/// What became of a request that makes sense.
enum Dispatched {
    Done(Value),
    Handed(oneshot::Receiver<Option<Value>>),
}

impl Gateway {
    /// Starts the core on the running tokio runtime.
    pub fn new(
        config: CoreConfig,
        media: MediaPlane,
        events: mpsc::Receiver<PeerEvent>,
        plugins: Vec<Arc<dyn Plugin>>,
        facts: ServerFacts,
    ) -> Gateway {
        let accepting = AtomicBool::new(config.accept_new_sessions);
        let context = Arc::new(Context {
            config,
            facts,
            media,
            counters: Arc::default(),
            peers: Peers::default(),
        });
        tokio::spawn(deliver_events(context.clone(), events));
        let inner = Arc::new(Inner {
            context,
            plugins,
            sessions: Mutex::default(),
            accepting,
        });
        tokio::spawn(watch_sessions(Arc::downgrade(&inner)));
        Gateway { inner }
    }

    /// Answers one request of a client that polls. With others, events could overtake the reply: see
    /// [`Gateway::submit`].
    pub async fn request(&self, client: &Client, message: &[u8]) -> Value {
        let request = Request::parse(message, self.inner.context.config.string_ids);
        self.answer_now(client, request).await
    }

    /// As [`Gateway::request`], for a message that is JSON already.
    pub async fn request_value(&self, client: &Client, message: Value) -> Value {
        let request = Request::from_value(message, self.inner.context.config.string_ids);
        self.answer_now(client, request).await
    }

    /// Answers one request of a pushed client through its own queue, so that no event overtakes the reply.
    /// Returns once the reply is in the queue.
    pub async fn submit(&self, client: &Client, message: &[u8]) {
        if let Some(begun) = self.begin(client, message).await {
            begun.await;
        }
    }

    /// As [`Gateway::submit`], but does not wait for a handle's reply, which may take seconds: once this returns, a handle has
    /// the request in its order, and the client's next one may follow.
    pub async fn begin(&self, client: &Client, message: &[u8]) -> Option<Begun> {
        let request = Request::parse(message, self.inner.context.config.string_ids);
        match self.answer(client, Some(client), request).await {
            Answer::Now(reply) => {
                client.push(reply);
                None
            }
            Answer::Later(request, reply) => Some(Begun {
                gateway: self.clone(),
                client: client.clone(),
                request,
                reply,
            }),
        }
    }

    /// The events of `session` for a client that polls: at most `max`, or one keepalive after `wait`.
    /// An error is the whole reply.
    pub async fn poll(
        &self,
        session: u64,
        credentials: Credentials<'_>,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Value>, Value> {
        let id = SessionId(session);
        let session = self
            .authorize(credentials)
            .and_then(|()| self.session(id))
            .map_err(|error| self.refuse(&error, Some(id), None))?;
        session.touch();
        Ok(session.poll(max, wait).await)
    }

    /// A connection is gone: its sessions end unless another claims them in time.
    pub fn client_gone(&self, client: &Client) {
        client.close();
        for id in client.take_sessions() {
            let Ok(session) = self.session(id) else {
                continue;
            };
            let over =
                client.is_internal() || self.inner.context.config.reclaim_session_timeout == 0;
            if session.orphan(client) && over {
                self.inner.remove(&session);
            }
        }
    }

    /// The `server_info` object.
    pub fn info(&self, transaction: Option<&str>) -> Value {
        let inner = &self.inner;
        let plugins: Vec<PluginInfo> = inner.plugins.iter().map(|plugin| plugin.info()).collect();
        let accepting = inner.accepting.load(Ordering::Relaxed);
        info::server_info(
            &inner.context.config,
            &inner.context.facts,
            accepting,
            &plugins,
            transaction,
        )
    }

    #[cfg(feature = "testing")]
    pub(crate) fn peers(&self) -> Vec<portunus_media::PeerId> {
        self.inner.context.peers.list()
    }

    /// What the media plane did since the start.
    pub fn media_totals(&self) -> portunus_media::MediaTotals {
        self.inner.context.media.totals()
    }

    /// What was recorded since the start.
    pub fn recorder_totals(&self) -> portunus_record::RecorderTotals {
        self.inner.context.facts.recorder.totals()
    }

    /// Whether somebody who shows `credentials` may use the API and attach to `package`: for what lets clients in
    /// by itself, see [`Client::internal`].
    pub fn admits(&self, credentials: Credentials<'_>, package: &str) -> Result<(), ApiError> {
        self.authorize(credentials)?;
        let config = &self.inner.context.config;
        match config.token_opens(credentials.token, package) {
            true => Ok(()),
            false => Err(ApiError::UnauthorizedPlugin(package.to_owned())),
        }
    }

    /// The plugin that serves `/whip/NAME` and `/whep/NAME`.
    pub fn broadcaster(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        let named = |plugin: &&Arc<dyn Plugin>| {
            plugin
                .broadcast()
                .is_some_and(|broadcast| broadcast.name() == name)
        };
        self.inner.plugins.iter().find(named).cloned()
    }

    /// Restarts ICE of a handle's PeerConnection without a new negotiation (RFC 9725 section 4.3.3): `remote` are
    /// the client's new credentials, ours come back. None: there is no such PeerConnection, or it is being
    /// negotiated.
    pub async fn restart_ice(
        &self,
        session: SessionId,
        handle: HandleId,
        remote: IceCredentials,
    ) -> Option<LocalIce> {
        let inbox = self.session(session).ok()?.handle(handle)?;
        let (reply, restarted) = oneshot::channel();
        inbox.send(Command::RestartIce { remote, reply }).await;
        restarted.await.ok().flatten()
    }

    /// The counters of this core.
    pub fn counters(&self) -> &Counters {
        &self.inner.context.counters
    }

    /// Whether new sessions are accepted: false before a shutdown, so that load goes elsewhere.
    pub fn accept_new_sessions(&self, accept: bool) {
        self.inner.accepting.store(accept, Ordering::Relaxed);
    }

    /// Ends all sessions, whose clients get `hangup` and `detached`, and waits until all handles are done, for
    /// 5 s at most.
    pub async fn shutdown(&self) {
        self.accept_new_sessions(false);
        let sessions: Vec<_> = self
            .inner
            .sessions()
            .drain()
            .map(|(_, session)| session)
            .collect();
        let tasks = sessions.iter().flat_map(|session| {
            subtract(&self.inner.context.counters.sessions);
            let handles = session.take_handles();
            handles.into_iter().map(|Attached { inbox, task }| {
                let reason = "Server shutdown".to_owned();
                inbox.deliver(Command::Hangup {
                    reason,
                    responder: None,
                });
                inbox.deliver(Command::Detach { responder: None });
                task
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let all = async {
            for task in tasks {
                // A task that panicked has ended too.
                let _ = task.await;
            }
        };
        if timeout(SHUTDOWN_LIMIT, all).await.is_err() {
            tracing::warn!("some handles did not end within {SHUTDOWN_LIMIT:?}");
        }
        for session in sessions {
            session.end();
        }
    }

    /// The state that a handle's plugin tells administrators; none if there is no such handle.
    pub async fn query(&self, session: SessionId, handle: HandleId) -> Option<Value> {
        let inbox = self.session(session).ok()?.handle(handle)?;
        let (reply, state) = oneshot::channel();
        inbox.send(Command::Query { reply }).await;
        state.await.ok()
    }

    async fn answer_now(&self, client: &Client, request: Result<Request, Refusal>) -> Value {
        match self.answer(client, None, request).await {
            Answer::Now(reply) => reply,
            // Without a queue to put it into, the reply always comes back.
            Answer::Later(request, reply) => {
                self.reply_of(reply.await, &request).unwrap_or_default()
            }
        }
    }

    async fn answer(
        &self,
        client: &Client,
        queue: Option<&Client>,
        request: Result<Request, Refusal>,
    ) -> Answer {
        add(&self.inner.context.counters.requests);
        let request = match request {
            Ok(request) => request,
            Err(Refusal {
                error,
                session,
                transaction,
            }) => {
                return Answer::Now(self.refuse(&error, session, transaction.as_deref()));
            }
        };
        let unanswered = Unanswered {
            session: request.session(),
            transaction: request.transaction.clone(),
        };
        match self.dispatch(client, queue, request).await {
            Ok(Dispatched::Done(reply)) => Answer::Now(reply),
            Ok(Dispatched::Handed(reply)) => Answer::Later(unanswered, reply),
            Err(error) => Answer::Now(self.refuse_unanswered(&error, &unanswered)),
        }
    }

    /// What is left to be said to a request that a handle had: the reply, if it is not in the client's queue already.
    pub(crate) fn reply_of(
        &self,
        reply: Result<Option<Value>, oneshot::error::RecvError>,
        request: &Unanswered,
    ) -> Option<Value> {
        reply.unwrap_or_else(|_| {
            let error = ApiError::PluginMessage("No plugin to handle this message".to_owned());
            Some(self.refuse_unanswered(&error, request))
        })
    }

    fn refuse_unanswered(&self, error: &ApiError, request: &Unanswered) -> Value {
        self.refuse(error, request.session, Some(&request.transaction))
    }

    async fn dispatch(
        &self,
        client: &Client,
        queue: Option<&Client>,
        request: Request,
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
            Some(handle) => Some(
                session
                    .handle(handle)
                    .ok_or(ApiError::HandleNotFound(handle, id))?,
            ),
        };
        match (request.verb.as_str(), handle) {
            ("keepalive", _) => Ok(Dispatched::Done(self.reply("ack", &session, &request))),
            ("claim", _) => {
                session.claim(client);
                Ok(Dispatched::Done(self.reply("success", &session, &request)))
            }
            ("attach", None) => self
                .attach(client, &session, &request)
                .map(Dispatched::Done),
            ("destroy", None) => {
                self.inner.remove(&session);
                Ok(Dispatched::Done(self.reply("success", &session, &request)))
            }
            ("message" | "trickle" | "hangup" | "detach", Some(handle)) => {
                let reply = self.hand(&session, &handle, queue, request).await;
                Ok(Dispatched::Handed(reply))
            }
            ("attach" | "destroy", Some(_))
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
        self.authorize_client(client, request)?;
        let config = &inner.context.config;
        let mut sessions = inner.sessions();
        if reached(config.max_sessions, sessions.len())
            || (!client.is_polled()
                && reached(config.max_sessions_per_connection, client.session_count()))
        {
            return Err(ApiError::NotAcceptingSessions);
        }
        let id = match id::read(request.members.get("id"), inner.context.config.string_ids) {
            0 => SessionId::random(|id| sessions.contains_key(&id)),
            wanted if sessions.contains_key(&SessionId(wanted)) => {
                return Err(ApiError::SessionConflict);
            }
            wanted => SessionId(wanted),
        };
        let session = Session::new(id, client.clone(), inner.context.counters.clone());
        sessions.insert(id, Arc::new(session));
        add(&inner.context.counters.sessions);
        Ok(json!({
            "janus": "success",
            "transaction": request.transaction,
            "data": { "id": id.to_json(inner.context.config.string_ids) },
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
        let plugin = self
            .inner
            .plugins
            .iter()
            .find(|plugin| plugin.info().package == package)
            .ok_or_else(|| ApiError::PluginNotFound(package.to_owned()))?;
        let may_attach =
            client.is_internal() || context.config.token_opens(request.text("token"), package);
        if !may_attach {
            return Err(ApiError::UnauthorizedPlugin(package.to_owned()));
        }
        if reached(
            context.config.max_handles_per_session,
            session.handle_count(),
        ) {
            return Err(ApiError::PluginAttach("too many handles"));
        }
        let id = HandleId::random(|id| session.has_handle(id));
        let opaque_id = opaque_id.map(str::to_owned);
        handle::start(id, session.clone(), &**plugin, opaque_id, context.clone())
            .map_err(|()| ApiError::SessionNotFound(session.id))?;
        let data = json!({ "id": id.to_json(context.config.string_ids) });
        let reply = Object::new().with_all(self.reply("success", session, request));
        Ok(reply.with("data", data).into())
    }

    /// Lets the handle's task answer. No reply ever comes if it has ended, or ends before.
    async fn hand(
        &self,
        session: &Arc<Session>,
        handle: &Inbox,
        queue: Option<&Client>,
        request: Request,
    ) -> oneshot::Receiver<Option<Value>> {
        let (responder, reply) = Responder::new(queue.cloned());
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
                // Nobody finds the handle any more: it has to end even if the client goes away while it waits.
                handle.deliver(command);
            }
            _ => {
                // If there is no task any more, the responder goes with the command.
                handle.send(command).await;
            }
        }
        reply
    }

    fn reply(&self, janus: &str, session: &Session, request: &Request) -> Value {
        json!({
            "janus": janus,
            "session_id": session.id.to_json(self.inner.context.config.string_ids),
            "transaction": request.transaction,
        })
    }

    fn session(&self, id: SessionId) -> Result<Arc<Session>, ApiError> {
        self.inner
            .sessions()
            .get(&id)
            .cloned()
            .ok_or(ApiError::SessionNotFound(id))
    }

    fn authorize_client(&self, client: &Client, request: &Request) -> Result<(), ApiError> {
        match client.is_internal() {
            true => Ok(()),
            false => self.authorize(request.into()),
        }
    }

    fn authorize(&self, credentials: Credentials<'_>) -> Result<(), ApiError> {
        let config = &self.inner.context.config;
        match config.admits(credentials.api_secret, credentials.token) {
            true => Ok(()),
            false => Err(ApiError::Unauthorized),
        }
    }

    fn refuse(
        &self,
        error: &ApiError,
        session: Option<SessionId>,
        transaction: Option<&str>,
    ) -> Value {
        self.inner.context.counters.refused(error);
        let session = session.map(|id| id.to_json(self.inner.context.config.string_ids));
        error.reply(session, transaction)
    }
}

/// Whether there is no room for another; a limit of 0 is none.
fn reached(limit: usize, count: usize) -> bool {
    limit > 0 && count >= limit
}

/// Secrets are not shown.
impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("server_name", &self.inner.context.config.server_name)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a session and forgets it; its client is told nothing more.
    fn remove(&self, session: &Arc<Session>) {
        let Some(handles) = session.end() else { return };
        self.sessions().remove(&session.id);
        subtract(&self.context.counters.sessions);
        for handle in handles {
            handle.inbox.deliver(Command::Detach { responder: None });
        }
    }
}

impl<'a> From<&'a Request> for Credentials<'a> {
    fn from(request: &'a Request) -> Self {
        Credentials {
            api_secret: request.text("apisecret"),
            token: request.text("token"),
        }
    }
}

/// Ends sessions whose clients are silent.
async fn watch_sessions(gateway: Weak<Inner>) {
    let mut ticks = tokio::time::interval(WATCHDOG_PERIOD);
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        let expired: Vec<_> = gateway
            .sessions()
            .values()
            .filter(|s| s.expired(&gateway.context.config))
            .cloned()
            .collect();
        for session in expired {
            let id = session.id.to_json(gateway.context.config.string_ids);
            session.emit(json!({ "janus": "timeout", "session_id": id }));
            gateway.remove(&session);
            add(&gateway.context.counters.sessions_timed_out);
        }
    }
}
