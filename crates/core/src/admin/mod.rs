//! The Admin API: what those who run the server ask of it, and how they steer it.
//!
//! Requests are for the server, for a session or for a handle. The verbs of a subject are a file of their own.

mod access;
mod capture;
mod config;
mod diagnosis;
mod drain;
mod handle_info;
mod handles;
mod log;
mod modules;
mod network;
mod overview;
mod server;
mod sessions;
mod settings;
mod watch;
mod workers;

use portunus_media::CaptureFormat;
use serde_json::{Value, json};

use handle_info::handle_info;

use crate::counters::add;
use crate::request::{Address, Refusal, Request};
use crate::{ApiError, Client, Credentials, Fields, Gateway, Object, Requester, prices};

pub(crate) use access::Access;
pub use config::AdminConfig;
pub use log::{LogControl, LogLevel, LogLosses, RememberedLog};
pub use modules::TransportControl;
pub(crate) use modules::Transports;
pub(crate) use overview::SharedRanking;
pub(crate) use settings::Settings;
pub(crate) use watch::Watch;

impl Gateway {
    /// Whether the Admin API has a secret: without one nobody from elsewhere is let in.
    pub fn has_admin_secret(&self) -> bool {
        self.context().access.has_secret()
    }

    /// Answers one request of the Admin API. What is pushed to `client` on its behalf may overtake the reply: see
    /// [`Gateway::submit_admin`]. To a wrong secret the reply takes a while.
    pub async fn admin(&self, client: &Client, message: &[u8]) -> Value {
        let request = Request::parse(message, self.context().config().string_ids);
        self.answer_admin(client, request).await
    }

    /// As [`Gateway::admin`], for a message that is JSON already.
    pub async fn admin_value(&self, client: &Client, message: Value) -> Value {
        let request = Request::from_value(message, self.context().config().string_ids);
        self.answer_admin(client, request).await
    }

    /// Answers one request of the Admin API through the queue of a pushed client. Returns once the reply is in it.
    pub async fn submit_admin(&self, client: &Client, message: &[u8]) {
        let reply = match client.purse().take(prices::request(message)) {
            Ok(_paid) => self.admin(client, message).await,
            Err(error) => self.refuse(&error.into(), None, None),
        };
        client.push(reply);
        watch::begin(client);
    }

    async fn answer_admin(&self, client: &Client, request: Result<Request, Refusal>) -> Value {
        add(&self.context().counters.admin_requests);
        let requester = client.requester();
        let request = match request {
            Ok(request) => request,
            Err(Refusal {
                error,
                session,
                transaction,
            }) => {
                let counted = self.count(requester, Credentials::default());
                let error = match counted.err().unwrap_or(error) {
                    // In the Admin API a handle's id that is none is told like this.
                    ApiError::NoHandle => ApiError::NoSession,
                    error => error,
                };
                return self.refuse(&error, session, transaction.as_deref());
            }
        };
        let admitted = match (request.address, request.verb.as_str()) {
            (Address::Server, "info" | "ping") => self.count(requester, Credentials::default()),
            _ => self.admit(requester, &request).await,
        };
        let outcome = match admitted {
            Ok(()) => self.dispatch_admin(client, &request).await,
            Err(error) => Err(error),
        };
        outcome.unwrap_or_else(|error| {
            self.refuse(&error, request.session(), Some(&request.transaction))
        })
    }

    async fn admit(&self, requester: Requester, request: &Request) -> Result<(), ApiError> {
        let context = self.context();
        let shown = request.text("admin_secret");
        let trusted = self.trusts(requester);
        let admitted = context.access.admit(requester, trusted, shown).await;
        if admitted.is_err() {
            add(&context.counters.admin_refused);
        }
        admitted
    }

    async fn dispatch_admin(&self, client: &Client, request: &Request) -> Result<Value, ApiError> {
        let told = match request.address {
            Address::Server => match request.verb.as_str() {
                "info" => return Ok(self.info(Some(&request.transaction))),
                "ping" => {
                    return Ok(json!({ "janus": "pong", "transaction": request.transaction }));
                }
                _ => self.server_admin(client, request).await?,
            },
            Address::Session(id) => {
                let session = self.session(id)?;
                let fields = Fields(&request.members);
                match request.verb.as_str() {
                    "destroy_session" => sessions::destroy(self, &session),
                    "set_session_timeout" => sessions::set_timeout(&session, fields)?,
                    "list_handles" => sessions::list_handles(self, &session),
                    _ => return Err(ApiError::InvalidPath(request.verb.clone())),
                }
            }
            Address::Handle(id, handle) => {
                let session = self.session(id)?;
                let not_found = || ApiError::HandleNotFound(handle, id);
                let inbox = session.handle(handle).ok_or_else(not_found)?;
                let itself = session.handle_itself(handle).ok_or_else(not_found)?;
                let fields = Fields(&request.members);
                match request.verb.as_str() {
                    "handle_info" => handle_info(self, &session, (&itself, &inbox), fields).await?,
                    "start_pcap" => {
                        capture::start(self, &itself, CaptureFormat::Pcap, fields).await?
                    }
                    "start_text2pcap" => {
                        capture::start(self, &itself, CaptureFormat::Text2pcap, fields).await?
                    }
                    "stop_pcap" | "stop_text2pcap" => capture::stop(self, &itself).await?,
                    "detach_handle" => handles::detach(&session, handle, &inbox),
                    "hangup_webrtc" => handles::hangup(&inbox),
                    _ => return Err(ApiError::InvalidPath(request.verb.clone())),
                }
            }
        };
        let session = request.session();
        let session = session.map(|id| id.to_json(self.context().config().string_ids));
        let reply = Object::new()
            .with("janus", "success")
            .with_some("session_id", session)
            .with("transaction", request.transaction.as_str())
            .with_all(told);
        Ok(reply.into())
    }

    /// What there is without a session.
    async fn server_admin(&self, client: &Client, request: &Request) -> Result<Object, ApiError> {
        let fields = Fields(&request.members);
        match request.verb.as_str() {
            "get_status" => Ok(server::status(self)),
            "set_session_timeout" => server::set_session_timeout(self, fields),
            "set_log_level" => log::set_level(self, fields),
            "set_log_timestamps" => log::set_timestamps(self, fields),
            "set_log_colors" => log::set_colors(self, fields),
            "set_locking_debug" => server::set_locking_debug(self, fields),
            "set_refcount_debug" => server::set_refcount_debug(self, fields),
            "set_min_nack_queue" => server::set_min_nack_queue(self, fields),
            "set_nack_optimizations" => server::set_nack_optimizations(self, fields),
            "set_no_media_timer" => server::set_no_media_timer(self, fields),
            "set_slowlink_threshold" => server::set_slowlink_threshold(self, fields),
            "accept_new_sessions" => server::accept_new_sessions(self, fields),
            "drain" => drain::drain(self, fields),
            "undrain" => drain::undrain(self),
            "reload" => server::reload(self).await,
            "message_plugin" => modules::message_plugin(self, fields).await,
            "query_transport" => modules::query_transport(self, fields),
            "query_eventhandler" => modules::query_event_handler(self, fields),
            "query_logger" => modules::query_logger(fields),
            "custom_event" => server::custom_event(self, fields),
            "custom_logline" => log::custom_line(fields),
            "list_sessions" => Ok(sessions::list(self)),
            "resolve_address" => network::resolve_address(fields).await,
            "test_stun" => network::test_stun(fields).await,
            "overview" => overview::overview(self, fields).await,
            "workers_info" => Ok(workers::info(self)),
            "loops_info" => Ok(server::loops()),
            "subscribe_events" => watch::subscribe(self, client, fields),
            "unsubscribe_events" => watch::unsubscribe(client),
            // The requests about tokens, and unknown ones.
            verb => self.tokens().request(verb, fields, &self.packages()),
        }
    }
}
