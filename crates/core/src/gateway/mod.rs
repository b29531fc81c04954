//! The core's face to the transports: requests in, replies and events out.

mod build;
mod drain;
mod limits;
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
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::admin::{Access, Settings, SharedRanking, Transports};
use crate::begun::Begun;
use crate::context::{Context, Peers, deliver_events};
use crate::counters::{add, subtract};
use crate::drain::Drain;
use crate::events::EventBus;
use crate::events::lifecycle::SessionEnd;
use crate::handle::{Command, LocalIce};
use crate::mdns::MdnsNames;
use crate::rate::RequestRate;
use crate::request::Request;
use crate::session::Session;
use crate::tokens::{Tokens, watch_keys};
use crate::{
    ApiError, Budget, Client, CoreConfig, Counters, HandleId, LogLosses, Network, Plugin,
    PluginCounter, PluginInfo, PublicFile, Requester, Rights, ServerFacts, SessionId, Share,
    TokenScope, TokenTotals, info, prices,
};
pub use build::BuildFacts;
pub use drain::DrainStatus;
pub use readiness::NotReady;
pub use reload::{Reloaded, Reloader, Reloading};
use requests::Answer;
pub(crate) use requests::Unanswered;

/// How often sessions are checked for silence.
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
        let accepting = AtomicBool::new(config.accept_new_sessions);
        let rate = RequestRate::new(config.request_rate, config.request_burst);
        let memory = config.client_memory();
        let admin_memory = config.admin_memory(&memory);
        let tokens = Tokens::new(&config, facts.jwt.clone());
        let context = Arc::new(Context {
            access: Access::new(facts.admin.secret.clone()),
            settings: Settings::new(&config, &facts),
            transports: Transports::default(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            certificates: Mutex::default(),
            ranking: SharedRanking::default(),
            config: ArcSwap::from_pointee(config),
            mdns: facts.mdns.then(MdnsNames::default),
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
        tokio::spawn(watch_keys(Arc::downgrade(&context)));
        let inner = Arc::new(Inner {
            context,
            plugins,
            sessions: Mutex::default(),
            accepting,
        });
        tokio::spawn(watch_sessions(Arc::downgrade(&inner)));
        let drains = inner.context.drain.watch();
        tokio::spawn(drain::enforce(Arc::downgrade(&inner), drains));
        tokio::spawn(statistics::run(Arc::downgrade(&inner.context)));
        Gateway { inner }
    }

    /// Answers one request of a client that polls. With others, events could overtake the reply: see
    /// [`Gateway::submit`].
    pub async fn request(&self, client: &Client, message: &[u8]) -> Value {
        let request = Request::parse(message, self.inner.context.config().string_ids);
        self.answer_now(client, request, Share::default()).await
    }

    /// As [`Gateway::request`], for a message that is JSON already.
    pub async fn request_value(&self, client: &Client, message: Value) -> Value {
        self.request_paid(client, message, Share::default()).await
    }

    /// As [`Gateway::request_value`]; `paid` is given back once nothing is kept of the message.
    pub async fn request_paid(&self, client: &Client, message: Value, paid: Share) -> Value {
        let request = Request::from_value(message, self.inner.context.config().string_ids);
        self.answer_now(client, request, paid).await
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
            Answer::Later(request, reply) => Some(Begun {
                gateway: self.clone(),
                client: client.clone(),
                request,
                reply,
            }),
        }
    }

    /// The events of `session` for `requester`, who polls: at most `max`, or one keepalive after `wait`.
    /// An error is the whole reply.
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

    /// A connection is gone: its sessions end unless another claims them in time.
    pub fn client_gone(&self, client: &Client) {
        client.close();
        for id in client.take_sessions() {
            let Ok(session) = self.session(id) else {
                continue;
            };
            let over =
                client.is_internal() || session.reclaim_timeout(&self.inner.context).is_zero();
            if session.orphan(client) && over {
                self.inner.remove(&session, SessionEnd::Destroyed);
            }
        }
    }

    /// The `server_info` object.
    pub fn info(&self, transaction: Option<&str>) -> Value {
        let inner = &self.inner;
        let plugins: Vec<PluginInfo> = inner.plugins.iter().map(|plugin| plugin.info()).collect();
        let is_open = inner.accepting.load(Ordering::Relaxed);
        let accepting = is_open && !inner.context.drain.is_on();
        info::server_info(
            &inner.context.config(),
            &inner.context.facts,
            (
                &inner.context.media.settings(),
                inner.context.media.public_ips(),
            ),
            inner.context.settings.session_timeout_seconds(),
            accepting,
            &plugins,
            transaction,
        )
    }

    /// The bus, where what happens is told.
    pub fn events(&self) -> &EventBus {
        &self.inner.context.facts.events
    }

    /// The proxies whose headers name the client of an HTTP request.
    pub fn trusted_proxies(&self) -> Vec<Network> {
        self.inner.context.config().trusted_proxies.clone()
    }

    /// Whether a requester is trusted for being on this machine.
    pub fn trusts(&self, requester: Requester) -> bool {
        self.inner.context.config().trust_loopback && requester.is_local()
    }

    /// Tells whoever watches that the server has started.
    pub fn tell_start(&self) {
        self.events().started(|| self.info(None));
    }

    /// Tells whoever watches that the server ends, by this signal (0: by none).
    pub fn tell_end(&self, signal: i32) {
        self.events().shutdown(signal);
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

    /// The threads of audio rooms, if there are any.
    pub fn audio(&self) -> Option<&portunus_audio::AudioThreads> {
        self.inner.context.facts.audio.as_ref()
    }

    /// The TURN server, if it is on.
    pub fn turn(&self) -> Option<&portunus_turn::Turn> {
        self.inner.context.facts.turn.as_ref()
    }

    /// Whether somebody who shows `credentials` may use the API and attach to `package`: for what lets clients in
    /// by itself, see [`Client::internal`].
    pub fn admits(&self, credentials: Credentials<'_>, package: &str) -> Result<(), ApiError> {
        self.authorize(credentials)?;
        match self.tokens().opens(credentials.token, package) {
            true => Ok(()),
            false => Err(ApiError::UnauthorizedPlugin(package.to_owned())),
        }
    }

    /// What `requester` may do beyond a call in `plugin`, with what it shows.
    pub fn rights(
        &self,
        requester: Requester,
        credentials: Credentials<'_>,
        plugin: &str,
    ) -> Rights {
        self.tokens().rights(requester, credentials, Some(plugin))
    }

    /// Which rooms and mountpoints of `plugin` requests that show `credentials` may name.
    pub fn scope(&self, credentials: Credentials<'_>, plugin: &'static str) -> TokenScope {
        self.tokens().scope(credentials.token, plugin)
    }

    /// The log lines that were not written since the start.
    pub fn log_losses(&self) -> LogLosses {
        self.context().facts.log.losses()
    }

    /// What is counted of tokens since the start.
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

    /// The file of a plugin that HTTP serves at `path`; none if no plugin has such a one.
    pub fn public_file(&self, path: &str) -> Option<PublicFile> {
        let mut plugins = self.inner.plugins.iter();
        plugins.find_map(|plugin| plugin.files()?.find(path))
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

    /// Whether a handle is attached: from the moment on that it or its session is being ended, it is not.
    pub fn has_handle(&self, session: SessionId, handle: HandleId) -> bool {
        let session = self.session(session);
        session.is_ok_and(|session| session.has_handle(handle))
    }

    /// What the plugins count, with the last part of their package names, such as `videoroom`.
    pub fn plugin_counters(&self) -> Vec<(&'static str, PluginCounter)> {
        self.of_plugins(|plugin| plugin.counters())
    }

    /// How much the plugins have of something at present, with the same names.
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

    /// The budget of the memory that clients hold.
    pub fn memory(&self) -> &Budget {
        &self.inner.context.memory
    }

    /// The same of clients of the Admin API.
    pub fn admin_memory(&self) -> &Budget {
        &self.inner.context.admin_memory
    }

    /// The counters of this core.
    pub fn counters(&self) -> &Counters {
        &self.inner.context.counters
    }

    /// Whether new sessions are accepted. Unlike a drain, this refuses nothing to sessions that there are.
    pub fn accept_new_sessions(&self, accept: bool) {
        self.inner.accepting.store(accept, Ordering::Relaxed);
    }

    /// The state that a handle's plugin tells administrators; none if there is no such handle.
    pub async fn query(&self, session: SessionId, handle: HandleId) -> Option<Value> {
        let inbox = self.session(session).ok()?.handle(handle)?;
        let (reply, state) = oneshot::channel();
        inbox.send(Command::Query { reply }).await;
        state.await.ok()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    pub(crate) fn plugin(&self, package: &str) -> Option<&Arc<dyn Plugin>> {
        let mut plugins = self.inner.plugins.iter();
        plugins.find(|plugin| plugin.info().package == package)
    }

    /// The packages of all plugins.
    pub(crate) fn packages(&self) -> Vec<&'static str> {
        let plugins = self.inner.plugins.iter();
        plugins.map(|plugin| plugin.info().package).collect()
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.inner.sessions().values().cloned().collect()
    }

    /// Ends a session, whose client is told nothing.
    pub(crate) fn end_session(&self, session: &Arc<Session>) {
        self.inner.remove(session, SessionEnd::Destroyed);
    }

    pub(crate) fn session(&self, id: SessionId) -> Result<Arc<Session>, ApiError> {
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

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.inner.context.tokens
    }

    pub(crate) fn refuse(
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

/// Secrets are not shown.
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

    /// Ends a session and forgets it; its client is told nothing more.
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

/// Ends sessions whose clients are silent.
async fn watch_sessions(gateway: Weak<Inner>) {
    let mut ticks = tokio::time::interval(WATCHDOG_PERIOD);
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        gateway.context.rate.forget();
        gateway.context.memory.forget();
        gateway.context.admin_memory.forget();
        gateway.context.access.forget();
        let expired: Vec<_> = gateway
            .sessions()
            .values()
            .filter(|s| s.expired(&gateway.context))
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
