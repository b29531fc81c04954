//! The gateway between the transports and the core: requests in, replies and events out.

mod build;
mod drain;
mod handles;
mod limits;
mod pending_reply;
mod readiness;
mod reload;
mod requests;
mod statistics;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use portunus_media::{MediaPlane, PeerEvent};
use portunus_sdp::IceCredentials;
use portunus_tokens::{Tokens, watch_keys};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::context::{Context, Peers, deliver_events};
use crate::counters::{add, subtract};
use crate::drain::Drain;
use crate::events::EventBus;
use crate::events::lifecycle::SessionEnd;
use crate::handle::{Command, LocalIce};
use crate::mdns::RemoteCandidates;
use crate::rate::RequestRate;
use crate::request::Request;
use crate::session::Session;
use crate::settings::Settings;
use crate::{
    ApiError, Budget, Client, CoreConfig, Counters, Credentials, HandleId, Network, Plugin,
    PluginCounter, PluginInfo, PublicFile, Requester, Rights, ServerFacts, SessionId, Share,
    TokenScope, TokenTotals, info, prices,
};
pub use build::BuildFacts;
pub use drain::DrainStatus;
use handles::Handles;
pub use pending_reply::PendingReply;
pub use readiness::NotReady;
use requests::Answer;

/// How often sessions are checked for timeouts.
const WATCHDOG_PERIOD: Duration = Duration::from_secs(1);

/// The server's core; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<Context>,
    plugins: Vec<Arc<dyn Plugin>>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    handles: Handles,
    accepting: AtomicBool,
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
        let rate = RequestRate::new(config.request_rate, config.request_burst);
        let memory = config.client_memory();
        let admin_memory = config.admin_memory(&memory);
        let tokens = Arc::new(Tokens::new(config.tokens(), facts.jwt.clone()));
        let context = Arc::new(Context {
            settings: Settings::new(&config, &facts),
            started: Instant::now(),
            started_at: SystemTime::now(),
            certificates: Mutex::default(),
            config: ArcSwap::from_pointee(config),
            candidates: RemoteCandidates::new(media.clone(), facts.mdns),
            facts,
            media,
            counters: Arc::default(),
            peers: Peers::default(),
            rate,
            memory,
            admin_memory,
            tokens,
            drain: Drain::default(),
            reloader: OnceLock::new(),
        });
        tokio::spawn(deliver_events(context.clone(), events));
        tokio::spawn(watch_keys(Arc::downgrade(&context.tokens)));
        let inner = Arc::new(Inner {
            context,
            plugins,
            sessions: Mutex::default(),
            handles: Handles::default(),
            accepting,
        });
        tokio::spawn(watch_sessions(Arc::downgrade(&inner)));
        let drains = inner.context.drain.watch();
        tokio::spawn(drain::enforce(Arc::downgrade(&inner), drains));
        tokio::spawn(statistics::run(Arc::downgrade(&inner)));
        Gateway { inner }
    }

    /// Answers one request of a client that polls. With other clients events could overtake the
    /// reply: see [`Gateway::submit`].
    pub async fn request(&self, client: &Client, message: &[u8]) -> Value {
        let request = Request::parse(message, self.inner.context.config().string_ids);
        self.answer_now(client, request, Share::default()).await
    }

    /// As [`Gateway::request`], for a message that is JSON already.
    pub async fn request_value(&self, client: &Client, message: Value) -> Value {
        self.request_paid(client, message, Share::default()).await
    }

    /// As [`Gateway::request_value`]. `paid` is given back once nothing of the message is kept.
    pub async fn request_paid(&self, client: &Client, message: Value, paid: Share) -> Value {
        let request = Request::from_value(message, self.inner.context.config().string_ids);
        self.answer_now(client, request, paid).await
    }

    /// Answers one request of a pushed client through its own queue, so that no event overtakes the
    /// reply. Returns once the reply is in the queue.
    pub async fn submit(&self, client: &Client, message: &[u8]) {
        if let Some(pending) = self.begin(client, message).await {
            pending.await;
        }
    }

    /// As [`Gateway::submit`], but does not wait for a handle's reply, which may take seconds. Once
    /// this returns, the handle has the request in order, and the client's next request may follow.
    pub async fn begin(&self, client: &Client, message: &[u8]) -> Option<PendingReply> {
        let paid = match client.purse().take(prices::request(message)) {
            Ok(paid) => paid,
            Err(error) => {
                client.push(self.refuse(&error.into(), None, None));
                return None;
            }
        };
        let request = Request::parse(message, self.inner.context.config().string_ids);
        match self.answer(client, Some(client), request, paid).await {
            Answer::Now(reply) => {
                client.push(reply);
                None
            }
            Answer::Later(request, reply) => Some(PendingReply {
                gateway: self.clone(),
                client: client.clone(),
                request,
                reply,
            }),
        }
    }

    /// Returns the events of `session` for a polling `requester`: at most `max`, or one keepalive
    /// after `wait`. An error is the whole reply.
    pub async fn poll(
        &self,
        session: u64,
        requester: Requester,
        credentials: Credentials<'_>,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Value>, Value> {
        let id = SessionId(session);
        let session = self
            .count(requester, credentials)
            .and_then(|()| self.authorize(credentials))
            .and_then(|()| self.session(id))
            .map_err(|error| self.refuse(&error, Some(id), None))?;
        session.touch();
        Ok(session.poll(max, wait).await)
    }

    /// Notes that a connection is gone. Its sessions end unless other clients claim them in time.
    pub fn client_gone(&self, client: &Client) {
        client.close();
        for id in client.take_sessions() {
            let Ok(session) = self.session(id) else {
                continue;
            };
            let over = client.is_internal()
                || session
                    .reclaim_timeout(self.inner.context.config().reclaim_session_timeout())
                    .is_zero();
            if session.orphan(client) && over {
                self.inner.remove(&session, SessionEnd::Destroyed);
            }
        }
    }

    /// Returns the `server_info` object.
    pub fn info(&self, transaction: Option<&str>) -> Value {
        let inner = &self.inner;
        let plugins: Vec<PluginInfo> = inner.plugins.iter().map(|plugin| plugin.info()).collect();
        let is_open = inner.accepting.load(Ordering::Relaxed);
        let accepting = is_open && !inner.context.drain.is_on();
        let context = &inner.context;
        let state = info::ServerState {
            config: &context.config(),
            facts: &context.facts,
            media: context.media.settings(),
            found_ips: context.media.public_ips(),
            session_timeout: context.settings.session_timeout_seconds(),
            accepting,
            plugins,
        };
        info::server_info(&state, transaction)
    }

    /// The bus of the server's events.
    pub fn events(&self) -> &EventBus {
        &self.inner.context.facts.events
    }

    /// The proxies whose headers name the client of an HTTP request.
    pub fn trusted_proxies(&self) -> Vec<Network> {
        self.inner.context.config().trusted_proxies.clone()
    }

    /// Whether a requester is trusted because it is on this machine.
    pub fn trusts(&self, requester: Requester) -> bool {
        self.inner.context.config().trust_loopback && requester.is_local()
    }

    /// Publishes the start of the server as an event.
    pub fn publish_start(&self) {
        self.events().started(|| self.info(None));
    }

    /// Publishes the end of the server as an event. `signal` is 0 if no signal caused it.
    pub fn publish_end(&self, signal: i32) {
        self.events().shutdown(signal);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn peers(&self) -> Vec<portunus_media::PeerId> {
        self.inner.context.peers.list()
    }

    /// Returns the totals of the media plane since the start.
    pub fn media_totals(&self) -> portunus_media::MediaTotals {
        self.inner.context.media.totals()
    }

    /// Returns the totals of recordings since the start.
    pub fn recorder_totals(&self) -> portunus_record::RecorderTotals {
        self.inner.context.facts.recorder.totals()
    }

    /// The TURN server, if it is on.
    pub fn turn(&self) -> Option<&portunus_turn::Turn> {
        self.inner.context.facts.turn.as_ref()
    }

    /// Checks that a client with these credentials may use the API and attach to `package`. This is
    /// for parts that let clients in themselves, see [`Client::internal`].
    pub fn admits(&self, credentials: Credentials<'_>, package: &str) -> Result<(), ApiError> {
        self.authorize(credentials)?;
        match self.tokens().opens(credentials.token, package) {
            true => Ok(()),
            false => Err(ApiError::UnauthorizedPlugin(package.to_owned())),
        }
    }

    /// Returns the rights of `requester` in `plugin` with these credentials.
    pub fn rights(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
        plugin: &str,
    ) -> Rights {
        self.tokens()
            .rights(requester.is_local(), credentials, Some(plugin))
    }

    /// Returns which rooms and mountpoints of `plugin` these credentials open.
    pub fn scope(&self, credentials: Credentials<'_>, plugin: &'static str) -> TokenScope {
        self.tokens().scope(credentials.token, plugin)
    }

    /// Returns the totals of tokens since the start.
    pub fn token_totals(&self) -> TokenTotals {
        self.tokens().totals()
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

    /// Returns the file that a plugin serves at `path`, or `None` if there is none.
    pub fn public_file(&self, path: &str) -> Option<PublicFile> {
        let mut plugins = self.inner.plugins.iter();
        plugins.find_map(|plugin| plugin.files()?.find(path))
    }

    /// Restarts ICE of a handle's PeerConnection without a negotiation (RFC 9725 section 4.3.3).
    /// `remote` are the client's new credentials. Returns `None` if there is no PeerConnection, or
    /// a negotiation is in progress.
    pub async fn restart_ice(
        &self,
        session: SessionId,
        handle: HandleId,
        remote: IceCredentials,
    ) -> Option<LocalIce> {
        let inbox = self.session(session).ok()?.inbox(handle)?;
        let (reply, restarted) = oneshot::channel();
        inbox.send(Command::RestartIce { remote, reply }).await;
        restarted.await.ok().flatten()
    }

    /// Whether a handle is attached. It is not once it or its session is being ended.
    pub fn has_handle(&self, session: SessionId, handle: HandleId) -> bool {
        let session = self.session(session);
        session.is_ok_and(|session| session.has_handle(handle))
    }

    /// Returns the counters of plugins, with the last parts of their package names, such as
    /// `videoroom`.
    pub fn plugin_counters(&self) -> Vec<(&'static str, PluginCounter)> {
        self.of_plugins(|plugin| plugin.counters())
    }

    /// Returns the gauges of plugins, with the same names.
    pub fn plugin_gauges(&self) -> Vec<(&'static str, PluginCounter)> {
        self.of_plugins(|plugin| plugin.gauges())
    }

    fn of_plugins(
        &self,
        numbers: impl Fn(&dyn Plugin) -> Vec<PluginCounter>,
    ) -> Vec<(&'static str, PluginCounter)> {
        let of_plugin = |plugin: &Arc<dyn Plugin>| {
            let package = plugin.info().package;
            let name = package.rsplit('.').next().unwrap_or(package);
            let numbers = numbers(plugin.as_ref()).into_iter();
            numbers.map(move |number| (name, number))
        };
        self.inner.plugins.iter().flat_map(of_plugin).collect()
    }

    /// The budget of memory for clients.
    pub fn memory(&self) -> &Budget {
        &self.inner.context.memory
    }

    /// The budget of memory for clients of the Admin API.
    pub fn admin_memory(&self) -> &Budget {
        &self.inner.context.admin_memory
    }

    /// The counters of this core.
    pub fn counters(&self) -> &Counters {
        &self.inner.context.counters
    }

    /// Sets whether new sessions are accepted. Unlike a drain, this does not affect present
    /// sessions.
    pub fn accept_new_sessions(&self, accept: bool) {
        self.inner.accepting.store(accept, Ordering::Relaxed);
    }

    /// Returns the plugin's state of a handle for operators, or `None` if there is no such handle.
    pub async fn query(&self, session: SessionId, handle: HandleId) -> Option<Value> {
        let inbox = self.session(session).ok()?.inbox(handle)?;
        let (reply, state) = oneshot::channel();
        inbox.send(Command::Query { reply }).await;
        state.await.ok()
    }

    /// Returns the configuration in effect. A part of it can change while the server runs.
    pub fn config(&self) -> Arc<CoreConfig> {
        self.inner.context.config.load_full()
    }

    /// The facts known at the start.
    pub fn facts(&self) -> &ServerFacts {
        &self.inner.context.facts
    }

    /// The media plane.
    pub fn media(&self) -> &MediaPlane {
        &self.inner.context.media
    }

    /// When the core was started.
    pub fn started(&self) -> Instant {
        self.inner.context.started
    }

    /// Seconds after which a silent session ends, unless it has a timeout of its own. 0 disables
    /// it.
    pub fn session_timeout(&self) -> u32 {
        self.inner.context.settings.session_timeout_seconds()
    }

    /// Sets after how many seconds a silent session ends. 0 disables it.
    pub fn set_session_timeout(&self, seconds: u32) {
        self.inner.context.settings.set_session_timeout(seconds);
    }

    /// How long a medium may be silent before clients are notified, in ms. 0 disables it.
    pub fn no_media_ms(&self) -> u32 {
        self.inner.context.settings.no_media_ms()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Returns the plugin with this package.
    pub fn plugin(&self, package: &str) -> Option<&Arc<dyn Plugin>> {
        let mut plugins = self.inner.plugins.iter();
        plugins.find(|plugin| plugin.info().package == package)
    }

    /// The packages of all plugins.
    pub fn packages(&self) -> Vec<&'static str> {
        let plugins = self.inner.plugins.iter();
        plugins.map(|plugin| plugin.info().package).collect()
    }

    /// Returns all sessions.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.inner.sessions().values().cloned().collect()
    }

    /// Ends a session. Its client is not notified.
    pub fn end_session(&self, session: &Arc<Session>) {
        self.inner.remove(session, SessionEnd::Destroyed);
    }

    /// Returns the session with this id.
    pub fn session(&self, id: SessionId) -> Result<Arc<Session>, ApiError> {
        self.inner
            .sessions()
            .get(&id)
            .cloned()
            .ok_or(ApiError::SessionNotFound(id))
    }

    fn authorize(&self, credentials: Credentials<'_>) -> Result<(), ApiError> {
        match self.tokens().admits(credentials) {
            true => Ok(()),
            false => Err(ApiError::Unauthorized),
        }
    }

    /// The tokens that let clients in.
    pub fn tokens(&self) -> &Tokens {
        &self.inner.context.tokens
    }

    /// Counts an error, and returns the reply with it.
    pub fn refuse(
        &self,
        error: &ApiError,
        session: Option<SessionId>,
        transaction: Option<&str>,
    ) -> Value {
        self.inner.context.counters.refused(error);
        let session = session.map(|id| id.to_json(self.inner.context.config().string_ids));
        error.reply(session, transaction)
    }
}

/// Hides secrets.
impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("server_name", &self.inner.context.config().server_name)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a session and forgets it. Its client gets nothing more.
    fn remove(&self, session: &Arc<Session>, how: SessionEnd) {
        let Some(handles) = session.end(how) else {
            return;
        };
        self.sessions().remove(&session.id);
        subtract(&self.context.counters.sessions);
        for handle in handles {
            handle.inbox.deliver(Command::Detach { responder: None });
        }
    }
}

/// Ends sessions that time out, and forgets expired state.
async fn watch_sessions(gateway: Weak<Inner>) {
    let mut ticks = tokio::time::interval(WATCHDOG_PERIOD);
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        gateway.handles.forget();
        gateway.context.rate.forget();
        gateway.context.memory.forget();
        gateway.context.admin_memory.forget();
        let all_timeout = gateway.context.settings.session_timeout_seconds();
        let expired: Vec<_> = gateway
            .sessions()
            .values()
            .filter(|s| {
                s.expired(
                    all_timeout,
                    gateway.context.config().reclaim_session_timeout(),
                )
            })
            .cloned()
            .collect();
        for session in expired {
            let id = session.id.to_json(gateway.context.config().string_ids);
            session.emit(json!({ "janus": "timeout", "session_id": id }));
            gateway.remove(&session, SessionEnd::Timeout);
            add(&gateway.context.counters.sessions_timed_out);
        }
    }
}
