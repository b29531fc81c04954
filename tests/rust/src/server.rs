//! A gateway on a real media plane.

use std::future::Future;
use std::sync::Arc;

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_core::events::{EventBus, EventFilter, EventKind};
use portunus_core::record::Recorder;
use portunus_core::{
    ConfiguredPlugin, CoreConfig, Gateway, HandleId, Networks, Plugin, PluginContext, ServerFacts,
    Services, SessionId,
};
use portunus_media::{MediaConfig, MediaPlane, PeerEvent};
use portunus_telephony::Telephony;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{Caller, Watcher};

/// A server on the loopback interface, on ports that the kernel chooses.
#[derive(Debug)]
pub struct Server {
    /// Its core.
    pub gateway: Gateway,
    media: MediaPlane,
}

impl Server {
    /// Starts a server with `workers` and one plugin.
    pub fn start(workers: usize, plugin: Arc<dyn Plugin>) -> Self {
        Self::recording(workers, Recorder::default(), plugin)
    }

    /// Like `start`, with these facts.
    pub fn with_facts(workers: usize, facts: ServerFacts, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media(workers);
        let core = CoreConfig::default();
        let gateway = Gateway::new(core, media.clone(), events, vec![plugin], facts);
        Server { gateway, media }
    }

    /// Like `start`, for clients that may connect by TCP.
    pub fn with_tcp(workers: usize, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media_on(MediaConfig {
            workers,
            ice_tcp: true,
            ..MediaConfig::default()
        });
        let recorder = Recorder::default();
        Self::on(CoreConfig::default(), media, events, plugin, recorder)
    }

    /// Like `start`, with the plugin's recorder.
    pub fn recording(workers: usize, recorder: Recorder, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media(workers);
        Self::on(CoreConfig::default(), media, events, plugin, recorder)
    }

    /// Like `start`, with a plugin that needs the media plane.
    pub async fn start_with<P>(workers: usize, plugin: impl FnOnce(MediaPlane) -> P) -> Self
    where
        P: Future<Output = Arc<dyn Plugin>>,
    {
        Self::recording_with(workers, Recorder::default(), plugin).await
    }

    /// Like `start_with`, with the plugin's recorder.
    pub async fn recording_with<P>(
        workers: usize,
        recorder: Recorder,
        plugin: impl FnOnce(MediaPlane) -> P,
    ) -> Self
    where
        P: Future<Output = Arc<dyn Plugin>>,
    {
        let (media, events) = Self::media(workers);
        let plugin = plugin(media.clone()).await;
        Self::on(CoreConfig::default(), media, events, plugin, recorder)
    }

    /// Like [`Server::start_with`], with a configured core.
    pub async fn configured<P>(
        core: CoreConfig,
        workers: usize,
        plugin: impl FnOnce(MediaPlane) -> P,
    ) -> Self
    where
        P: Future<Output = Arc<dyn Plugin>>,
    {
        let (media, events) = Self::media(workers);
        let plugin = plugin(media.clone()).await;
        Self::on(core, media, events, plugin, Recorder::default())
    }

    /// Like [`Server::start_with`], with one worker, whose clients are not notified of silence
    /// (`media.no_media_ms`).
    pub async fn untold<P>(plugin: impl FnOnce(MediaPlane) -> P) -> Self
    where
        P: Future<Output = Arc<dyn Plugin>>,
    {
        let (media, events) = Self::media_on(MediaConfig {
            workers: 1,
            no_media_ms: 0,
            ..MediaConfig::default()
        });
        let plugin = plugin(media.clone()).await;
        let facts = ServerFacts {
            no_media_ms: 0,
            ..ServerFacts::default()
        };
        let core = CoreConfig::default();
        let gateway = Gateway::new(core, media.clone(), events, vec![plugin], facts);
        Server { gateway, media }
    }

    /// Starts a server with one worker, whose plugin is configured as in production, and a watcher
    /// of its events.
    pub async fn watched<P: ConfiguredPlugin>(
        config: P::Config,
        recorder: Recorder,
    ) -> (Self, Watcher) {
        let (media, peer_events) = Self::media(1);
        let events = EventBus::new("watched", false);
        let filter = EventFilter {
            kinds: EventKind::Plugins.into(),
            plugins: Vec::new(),
        };
        let watcher = Watcher::new(events.subscribe("test", filter, 10_000));
        let services = Services::default()
            .with(AudioThreads::new(
                AudioConfig::default(),
                media.clone(),
                recorder.clone(),
            ))
            .with(Telephony::default());
        let context = PluginContext {
            media: media.clone(),
            recorder: recorder.clone(),
            outgoing: Networks(vec!["127.0.0.0/8".parse().unwrap()]),
            events: events.clone(),
            services,
        };
        let plugin = P::from_config(config, context).await.expect("a plugin");
        let facts = ServerFacts {
            recorder,
            events,
            ..ServerFacts::default()
        };
        let (core, plugins) = (CoreConfig::default(), vec![Arc::new(plugin) as _]);
        let gateway = Gateway::new(core, media.clone(), peer_events, plugins, facts);
        (Server { gateway, media }, watcher)
    }

    /// Returns the plugin's state of a handle for administrators.
    pub async fn state(&self, caller: &Caller) -> Value {
        let (session, handle) = (SessionId(caller.session), HandleId(caller.handle));
        self.gateway.query(session, handle).await.unwrap()
    }

    fn media(workers: usize) -> (MediaPlane, mpsc::Receiver<PeerEvent>) {
        Self::media_on(MediaConfig {
            workers,
            ..MediaConfig::default()
        })
    }

    fn media_on(config: MediaConfig) -> (MediaPlane, mpsc::Receiver<PeerEvent>) {
        let config = MediaConfig {
            pin: false,
            port: 0,
            bind: vec!["127.0.0.1".parse().unwrap()],
            ..config
        };
        MediaPlane::start(config).expect("a media plane")
    }

    fn on(
        core: CoreConfig,
        media: MediaPlane,
        events: mpsc::Receiver<PeerEvent>,
        plugin: Arc<dyn Plugin>,
        recorder: Recorder,
    ) -> Self {
        let facts = ServerFacts {
            recorder,
            ..ServerFacts::default()
        };
        let gateway = Gateway::new(core, media.clone(), events, vec![plugin], facts);
        Server { gateway, media }
    }

    /// Attaches a client to the plugin `package`.
    pub async fn attach(&self, package: &str) -> Caller {
        self.attach_as(package, None).await
    }

    /// Like `attach`, with `token` in all requests.
    pub async fn attach_with(&self, package: &str, token: &str) -> Caller {
        self.attach_as(package, Some(token.to_owned())).await
    }

    async fn attach_as(&self, package: &str, token: Option<String>) -> Caller {
        Caller::attach(&self.gateway, package, token).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}
