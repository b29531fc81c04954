//! The entry of the Admin API: who is let in, and which file answers each request.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use portunus_audio::AudioThreads;
use portunus_core::events::Subscription;
use portunus_core::request::{Address, Refusal, Request};
use portunus_core::{
    ApiError, Client, Credentials, Fields, Gateway, HandleId, Object, Requester, SessionId, prices,
};
use portunus_media::CaptureFormat;
use portunus_metrics::{MetricsPage, MetricsSource};
use serde_json::{Value, json};

use crate::access::Access;
use crate::debug_flags::DebugFlags;
use crate::handle_info::handle_info;
use crate::history::{self, SharedHistory};
use crate::overview::SharedRanking;
use crate::transports::Transports;
use crate::{
    AdminConfig, LogControl, RememberedLog, TransportControl, capture, drain, handles, log,
    metrics, network, overview, plugins, server, sessions, stored_tokens, subscriptions,
    transports, workers,
};

/// How often guessers of the secret are checked for expiry.
const EXPIRY_PERIOD: Duration = Duration::from_secs(1);

/// The parts of the server that the Admin API needs beside the gateway.
#[derive(Debug)]
pub struct AdminOptions {
    /// The configuration.
    pub config: AdminConfig,
    /// The server's log.
    pub log: Arc<dyn LogControl>,
    /// The threads of audio rooms, if the server has any.
    pub audio: Option<AudioThreads>,
}

impl Default for AdminOptions {
    fn default() -> Self {
        AdminOptions {
            config: AdminConfig::default(),
            log: Arc::new(RememberedLog::default()),
            audio: None,
        }
    }
}

/// Counts of requests since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdminTotals {
    /// All requests.
    pub requests: u64,
    /// Requests with a wrong secret, or without one from an untrusted address.
    pub refused: u64,
}

/// The Admin API of a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Administration {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    gateway: Gateway,
    access: Access,
    capture_folder: Option<PathBuf>,
    log: Arc<dyn LogControl>,
    audio: Option<AudioThreads>,
    transports: Transports,
    ranking: SharedRanking,
    history: Arc<SharedHistory>,
    /// The parts of the server with metrics, but for this one.
    metrics: OnceLock<Vec<Arc<dyn MetricsSource>>>,
    flags: DebugFlags,
    requests: AtomicU64,
    refused: AtomicU64,
}

/// An answered request.
struct Answered {
    reply: Value,
    /// Starts once the client has the reply.
    subscription: Option<Subscription>,
}

impl Administration {
    /// The Admin API of `gateway`. Needs a running tokio runtime.
    pub fn new(gateway: Gateway, options: AdminOptions) -> Self {
        let AdminOptions { config, log, audio } = options;
        let history = history::follow(&gateway);
        let inner = Arc::new(Inner {
            gateway,
            access: Access::new(config.secret),
            capture_folder: config.capture_folder,
            log,
            audio,
            transports: Transports::default(),
            ranking: SharedRanking::default(),
            history,
            metrics: OnceLock::new(),
            flags: DebugFlags::default(),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        tokio::spawn(expire_guessers(Arc::downgrade(&inner)));
        Administration { inner }
    }

    /// The gateway that is administered.
    pub fn gateway(&self) -> &Gateway {
        &self.inner.gateway
    }

    /// Whether there is a secret. Without one, only this machine is let in.
    pub fn has_secret(&self) -> bool {
        self.inner.access.has_secret()
    }

    /// Lets `control` answer the requests to the transport `package`.
    pub fn add_transport(&self, package: &'static str, control: Arc<dyn TransportControl>) {
        self.inner.transports.add(package, control);
    }

    /// Lets the request `metrics` ask these parts of the server, beside this one. The first call
    /// counts.
    pub fn set_metrics(&self, sources: Vec<Arc<dyn MetricsSource>>) {
        let _ = self.inner.metrics.set(sources);
    }

    /// Returns the counts of requests.
    pub fn totals(&self) -> AdminTotals {
        AdminTotals {
            requests: self.inner.requests.load(Ordering::Relaxed),
            refused: self.inner.refused.load(Ordering::Relaxed),
        }
    }

    /// Answers one request. Events of a subscription may overtake the reply: see
    /// [`Administration::submit`]. The reply to a wrong secret is delayed.
    pub async fn request(&self, client: &Client, message: &[u8]) -> Value {
        let request = Request::parse(message, self.gateway().config().string_ids);
        self.reply(client, request).await
    }

    /// As [`Administration::request`], for a message that is JSON already.
    pub async fn request_value(&self, client: &Client, message: Value) -> Value {
        let request = Request::from_value(message, self.gateway().config().string_ids);
        self.reply(client, request).await
    }

    /// Answers one request through the queue of a pushed client. Returns once the reply is in the
    /// queue.
    pub async fn submit(&self, client: &Client, message: &[u8]) {
        let answered = match client.purse().take(prices::request(message)) {
            Ok(_paid) => {
                let request = Request::parse(message, self.gateway().config().string_ids);
                self.answer(client, request).await
            }
            Err(error) => self.refuse(&error.into(), None, None),
        };
        client.push(answered.reply);
        if let Some(subscription) = answered.subscription {
            subscriptions::start(client, subscription);
        }
    }

    async fn reply(&self, client: &Client, request: Result<Request, Refusal>) -> Value {
        let answered = self.answer(client, request).await;
        if let Some(subscription) = answered.subscription {
            subscriptions::start(client, subscription);
        }
        answered.reply
    }

    async fn answer(&self, client: &Client, request: Result<Request, Refusal>) -> Answered {
        self.inner.requests.fetch_add(1, Ordering::Relaxed);
        let requester = client.requester();
        let request = match request {
            Ok(request) => request,
            Err(Refusal {
                error,
                session,
                transaction,
            }) => {
                let counted = self.gateway().count(requester, Credentials::default());
                let error = match counted.err().unwrap_or(error) {
                    // The Admin API reports an invalid handle id like this.
                    ApiError::NoHandle => ApiError::NoSession,
                    error => error,
                };
                return self.refuse(&error, session, transaction.as_deref());
            }
        };
        let admitted = match (request.address, request.verb.as_str()) {
            (Address::Server, "info" | "ping") => {
                self.gateway().count(requester, Credentials::default())
            }
            _ => self.admit(requester, &request).await,
        };
        let outcome = match admitted {
            Ok(()) => self.dispatch(client, &request).await,
            Err(error) => Err(error),
        };
        outcome.unwrap_or_else(|error| {
            self.refuse(&error, request.session(), Some(&request.transaction))
        })
    }

    fn refuse(
        &self,
        error: &ApiError,
        session: Option<SessionId>,
        transaction: Option<&str>,
    ) -> Answered {
        Answered {
            reply: self.gateway().refuse(error, session, transaction),
            subscription: None,
        }
    }

    async fn admit(&self, requester: Requester, request: &Request) -> Result<(), ApiError> {
        let shown = request.text("admin_secret");
        let trusted = self.gateway().trusts(requester);
        let admitted = self.inner.access.admit(requester, trusted, shown).await;
        if admitted.is_err() {
            self.inner.refused.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    async fn dispatch(&self, client: &Client, request: &Request) -> Result<Answered, ApiError> {
        let gateway = self.gateway();
        let mut subscription = None;
        let members = match request.address {
            Address::Server => match request.verb.as_str() {
                "info" => {
                    return Ok(Answered {
                        reply: gateway.info(Some(&request.transaction)),
                        subscription: None,
                    });
                }
                "ping" => {
                    return Ok(Answered {
                        reply: json!({ "janus": "pong", "transaction": request.transaction }),
                        subscription: None,
                    });
                }
                "subscribe_events" => {
                    let subscribed =
                        subscriptions::subscribe(gateway, client, Fields(&request.members))?;
                    subscription = Some(subscribed.subscription);
                    subscribed.reply
                }
                "unsubscribe_events" => subscriptions::unsubscribe(client)?,
                _ => self.server_request(request).await?,
            },
            Address::Session(id) => self.session_request(id, request)?,
            Address::Handle(id, handle) => self.handle_request(id, handle, request).await?,
        };
        let session = request.session();
        let session = session.map(|id| id.to_json(gateway.config().string_ids));
        let reply = Object::new()
            .with("janus", "success")
            .with_some("session_id", session)
            .with("transaction", request.transaction.as_str())
            .with_all(members);
        Ok(Answered {
            reply: reply.into(),
            subscription,
        })
    }

    /// Answers a request for the server.
    async fn server_request(&self, request: &Request) -> Result<Object, ApiError> {
        let (gateway, fields) = (self.gateway(), Fields(&request.members));
        let (log, flags) = (self.inner.log.as_ref(), &self.inner.flags);
        match request.verb.as_str() {
            "get_status" => Ok(server::status(gateway, log, flags)),
            "set_session_timeout" => server::set_session_timeout(gateway, fields),
            "set_log_level" => log::set_level(log, fields),
            "set_log_timestamps" => log::set_timestamps(log, fields),
            "set_log_colors" => log::set_colors(log, fields),
            "set_locking_debug" => server::set_locking_debug(flags, fields),
            "set_refcount_debug" => server::set_refcount_debug(flags, fields),
            "set_min_nack_queue" => server::set_min_nack_queue(gateway, fields),
            "set_nack_optimizations" => server::set_nack_optimizations(gateway, fields),
            "set_no_media_timer" => server::set_no_media_timer(gateway, fields),
            "set_slowlink_threshold" => server::set_slowlink_threshold(gateway, fields),
            "accept_new_sessions" => server::accept_new_sessions(gateway, fields),
            "drain" => drain::drain(gateway, fields),
            "undrain" => drain::undrain(gateway),
            "reload" => server::reload(gateway).await,
            "cluster_status" => server::cluster_status(gateway).await,
            "message_plugin" => plugins::message_plugin(gateway, fields).await,
            "query_transport" => {
                transports::query_transport(gateway, &self.inner.transports, fields)
            }
            "query_eventhandler" => transports::query_event_handler(gateway, fields),
            "query_logger" => transports::query_logger(fields),
            "custom_event" => server::custom_event(gateway, fields),
            "custom_logline" => log::custom_line(fields),
            "list_sessions" => Ok(sessions::list(gateway)),
            "resolve_address" => network::resolve_address(fields).await,
            "test_stun" => network::test_stun(fields).await,
            "overview" => {
                let refused = self.totals().refused;
                overview::overview(gateway, &self.inner.ranking, refused, fields).await
            }
            "workers_info" => Ok(workers::info(gateway.media(), self.inner.audio.as_ref())),
            "history" => Ok(self.inner.history.told()),
            "metrics" => {
                let own: Arc<dyn MetricsSource> = Arc::new(self.clone());
                let others = self.inner.metrics.get().into_iter().flatten();
                metrics::read(others.cloned().chain([own]).collect(), fields).await
            }
            "loops_info" => Ok(server::loops()),
            // The requests about tokens, and unknown ones.
            verb => stored_tokens::answer(gateway.tokens(), verb, fields, &gateway.packages()),
        }
    }

    /// Answers a request for a session.
    fn session_request(&self, id: SessionId, request: &Request) -> Result<Object, ApiError> {
        let session = self.gateway().session(id)?;
        match request.verb.as_str() {
            "destroy_session" => Ok(sessions::destroy(self.gateway(), &session)),
            "set_session_timeout" => sessions::set_timeout(&session, Fields(&request.members)),
            "list_handles" => Ok(sessions::list_handles(self.gateway(), &session)),
            _ => Err(ApiError::InvalidPath(request.verb.clone())),
        }
    }

    /// Answers a request for a handle.
    async fn handle_request(
        &self,
        id: SessionId,
        handle_id: HandleId,
        request: &Request,
    ) -> Result<Object, ApiError> {
        let (gateway, fields) = (self.gateway(), Fields(&request.members));
        let session = gateway.session(id)?;
        let handle = gateway.handle(&session, handle_id)?;
        let start = async |format| {
            let folder = self.inner.capture_folder.clone();
            capture::start(gateway, &handle, folder, format, fields).await
        };
        match request.verb.as_str() {
            "handle_info" => handle_info(gateway, &session, &handle, fields).await,
            "start_pcap" => start(CaptureFormat::Pcap).await,
            "start_text2pcap" => start(CaptureFormat::Text2pcap).await,
            "stop_pcap" | "stop_text2pcap" => capture::stop(gateway, &handle).await,
            "detach_handle" => Ok(handles::detach(&handle)),
            "hangup_webrtc" => Ok(handles::hangup(&handle)),
            _ => Err(ApiError::InvalidPath(request.verb.clone())),
        }
    }
}

impl MetricsSource for Administration {
    fn write(&self, page: &mut MetricsPage) {
        let totals = self.totals();
        let help = "Requests of the Admin API";
        page.counter("admin_requests_total", help, totals.requests);
        let help = "Requests of the Admin API without the right secret";
        page.counter("refused_admin_requests_total", help, totals.refused);
    }
}

/// Forgets guessers of the secret after a while, for as long as the Admin API exists.
async fn expire_guessers(inner: Weak<Inner>) {
    let mut ticks = tokio::time::interval(EXPIRY_PERIOD);
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        inner.access.forget();
    }
}
