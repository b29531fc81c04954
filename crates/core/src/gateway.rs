//! The core's face to the transports: requests in, replies and events out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use portunus_media::{MediaPlane, PeerEvent};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::counters::{add, subtract};
use crate::request::{Address, Refusal, Request};
use crate::session::Session;
use crate::{
    ApiError, Client, CoreConfig, Counters, Plugin, PluginInfo, ServerFacts, SessionId, id, info,
};

/// How often sessions are checked for silence.
const WATCHDOG_PERIOD: Duration = Duration::from_secs(1);

/// The server's core; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    config: CoreConfig,
    facts: ServerFacts,
    #[expect(dead_code, reason = "used by handles")]
    media: MediaPlane,
    plugins: Vec<Arc<dyn Plugin>>,
    counters: Arc<Counters>,
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

impl Gateway {
    /// Starts the core on the running tokio runtime.
    pub fn new(
        config: CoreConfig,
        media: MediaPlane,
        events: mpsc::Receiver<PeerEvent>,
        plugins: Vec<Arc<dyn Plugin>>,
        facts: ServerFacts,
    ) -> Gateway {
        let inner = Arc::new(Inner {
            accepting: AtomicBool::new(config.accept_new_sessions),
            config,
            facts,
            media,
            plugins,
            counters: Arc::default(),
            sessions: Mutex::default(),
        });
        tokio::spawn(watch_sessions(Arc::downgrade(&inner)));
        drop(events);
        Gateway { inner }
    }

    /// Answers one request. For transports whose clients poll; with others, events could overtake the reply.
    pub async fn request(&self, client: &Client, message: &[u8]) -> Value {
        let inner = &self.inner;
        add(&inner.counters.requests);
        match Request::parse(message, inner.config.string_ids) {
            Ok(request) => {
                let reply = self.handle(client, &request).await;
                reply.unwrap_or_else(|error| {
                    self.refuse(&error, request.session(), Some(&request.transaction))
                })
            }
            Err(Refusal {
                error,
                session,
                transaction,
            }) => self.refuse(&error, session, transaction.as_deref()),
        }
    }

    /// Answers one request through the client's own queue, so that no event overtakes the reply. For pushed
    /// clients; returns once the reply is in the queue.
    pub async fn submit(&self, client: &Client, message: &[u8]) {
        let reply = self.request(client, message).await;
        client.push(reply);
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
        let owned: Vec<_> = self
            .inner
            .sessions()
            .values()
            .filter(|s| s.owned_by(client))
            .cloned()
            .collect();
        for session in owned {
            if self.inner.config.reclaim_session_timeout == 0 {
                self.inner.remove(&session);
            } else {
                session.orphan();
            }
        }
    }

    /// The `server_info` object.
    pub fn info(&self, transaction: Option<&str>) -> Value {
        let inner = &self.inner;
        let plugins: Vec<PluginInfo> = inner.plugins.iter().map(|plugin| plugin.info()).collect();
        let accepting = inner.accepting.load(Ordering::Relaxed);
        info::server_info(
            &inner.config,
            &inner.facts,
            accepting,
            &plugins,
            transaction,
        )
    }

    /// The counters of this core.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Whether new sessions are accepted: false before a shutdown, so that load goes elsewhere.
    pub fn accept_new_sessions(&self, accept: bool) {
        self.inner.accepting.store(accept, Ordering::Relaxed);
    }

    /// Ends all sessions, and waits until their handles are done, for 5 s at most.
    pub async fn shutdown(&self) {
        self.accept_new_sessions(false);
        let sessions: Vec<_> = self.inner.sessions().values().cloned().collect();
        for session in sessions {
            self.inner.remove(&session);
        }
    }

    async fn handle(&self, client: &Client, request: &Request) -> Result<Value, ApiError> {
        match request.address {
            Address::Server => self.server_request(client, request),
            Address::Session(id) | Address::Handle(id, _) => {
                self.authorize(request.into())?;
                let session = self.session(id)?;
                session.touch();
                self.session_request(client, &session, request)
            }
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
        self.authorize(request.into())?;
        let mut sessions = inner.sessions();
        let id = match id::read(request.members.get("id"), inner.config.string_ids) {
            0 => loop {
                let id = SessionId::random();
                if !sessions.contains_key(&id) {
                    break id;
                }
            },
            wanted if sessions.contains_key(&SessionId(wanted)) => {
                return Err(ApiError::SessionConflict);
            }
            wanted => SessionId(wanted),
        };
        let session = Session::new(id, client.clone(), inner.counters.clone());
        sessions.insert(id, Arc::new(session));
        add(&inner.counters.sessions);
        Ok(json!({
            "janus": "success",
            "transaction": request.transaction,
            "data": { "id": id.to_json(inner.config.string_ids) },
        }))
    }

    fn session_request(
        &self,
        client: &Client,
        session: &Arc<Session>,
        request: &Request,
    ) -> Result<Value, ApiError> {
        let reply = |janus: &str| {
            json!({
                "janus": janus,
                "session_id": session.id.to_json(self.inner.config.string_ids),
                "transaction": request.transaction,
            })
        };
        match request.verb.as_str() {
            "keepalive" => Ok(reply("ack")),
            "claim" => {
                session.claim(client);
                Ok(reply("success"))
            }
            "destroy" => {
                self.inner.remove(session);
                Ok(reply("success"))
            }
            _ => Err(ApiError::UnknownRequest(request.verb.clone())),
        }
    }

    fn session(&self, id: SessionId) -> Result<Arc<Session>, ApiError> {
        self.inner
            .sessions()
            .get(&id)
            .cloned()
            .ok_or(ApiError::SessionNotFound(id))
    }

    fn authorize(&self, credentials: Credentials<'_>) -> Result<(), ApiError> {
        let config = &self.inner.config;
        let equal = |known: &str, shown: Option<&str>| {
            shown.is_some_and(|shown| constant_time_eq(known.as_bytes(), shown.as_bytes()))
        };
        let secret = config.api_secret.as_deref();
        let open = secret.is_none() && !config.token_auth;
        let by_secret = secret.is_some_and(|secret| equal(secret, credentials.api_secret));
        let by_token = config.token_auth
            && config
                .tokens
                .iter()
                .any(|stored| equal(&stored.token, credentials.token));
        if open || by_secret || by_token {
            Ok(())
        } else {
            Err(ApiError::Unauthorized)
        }
    }

    fn refuse(
        &self,
        error: &ApiError,
        session: Option<SessionId>,
        transaction: Option<&str>,
    ) -> Value {
        self.inner.counters.refused(error);
        let session = session.map(|id| id.to_json(self.inner.config.string_ids));
        error.reply(session, transaction)
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a session and forgets it.
    fn remove(&self, session: &Arc<Session>) {
        if session.end() {
            self.sessions().remove(&session.id);
            subtract(&self.counters.sessions);
        }
    }
}

impl<'a> From<&'a Request> for Credentials<'a> {
    fn from(request: &'a Request) -> Self {
        let text = |name| request.members.get(name).and_then(Value::as_str);
        Credentials {
            api_secret: text("apisecret"),
            token: text("token"),
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
            .filter(|s| s.expired(&gateway.config))
            .cloned()
            .collect();
        for session in expired {
            let id = session.id.to_json(gateway.config.string_ids);
            session.emit(json!({ "janus": "timeout", "session_id": id }));
            gateway.remove(&session);
            add(&gateway.counters.sessions_timed_out);
        }
    }
}

/// Compares without telling by its duration how much of a guess was right.
fn constant_time_eq(known: &[u8], shown: &[u8]) -> bool {
    known.len() == shown.len()
        && known
            .iter()
            .zip(shown)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}
