//! A gateway on a real media plane, and what speaks JSON to it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_core::events::{EventBus, EventFilter, EventKind};
use portunus_core::record::Recorder;
use portunus_core::{
    Client, ConfiguredPlugin, CoreConfig, Gateway, HandleId, Networks, Outbox, Plugin,
    PluginContext, Purse, Requester, ServerFacts, Services, SessionId,
};
use portunus_media::{MediaConfig, MediaPlane, PeerEvent};
use portunus_telephony::Telephony;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::Watcher;

/// How long a test waits for something that has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on the loopback interface, on ports that the kernel chooses.
#[derive(Debug)]
pub struct Server {
    /// Its core.
    pub gateway: Gateway,
    media: MediaPlane,
}

impl Server {
    /// A server with `workers` and one plugin.
    pub fn start(workers: usize, plugin: Arc<dyn Plugin>) -> Self {
        Self::recording(workers, Recorder::default(), plugin)
    }

    /// The same, with what its start knows.
    pub fn with_facts(workers: usize, facts: ServerFacts, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media(workers);
        let core = CoreConfig::default();
        let gateway = Gateway::new(core, media.clone(), events, vec![plugin], facts);
        Server { gateway, media }
    }

    /// The same for clients that may connect by TCP.
    pub fn with_tcp(workers: usize, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media_on(MediaConfig {
            workers,
            ice_tcp: true,
            ..MediaConfig::default()
        });
        let recorder = Recorder::default();
        Self::on(CoreConfig::default(), media, events, plugin, recorder)
    }

    /// The same, with what the plugin records with.
    pub fn recording(workers: usize, recorder: Recorder, plugin: Arc<dyn Plugin>) -> Self {
        let (media, events) = Self::media(workers);
        Self::on(CoreConfig::default(), media, events, plugin, recorder)
    }

    /// The same with a plugin that needs the media plane.
    pub async fn start_with<P>(workers: usize, plugin: impl FnOnce(MediaPlane) -> P) -> Self
    where
        P: Future<Output = Arc<dyn Plugin>>,
    {
        Self::recording_with(workers, Recorder::default(), plugin).await
    }

    /// The same, with what the plugin records with.
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

    /// As [`Server::start_with`], with a core that is configured.
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

    /// As [`Server::start_with`], with one worker, whose clients are not told of silence (`media.no_media_ms`).
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

    /// A server with one worker, whose plugin is started as a server does it, and somebody who is told what it does.
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

    /// What the plugin tells administrators of a handle.
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

    /// A client that is attached to the plugin `package`.
    pub async fn attach(&self, package: &str) -> Caller {
        self.attach_as(package, None).await
    }

    /// The same, showing `token` with all that it asks.
    pub async fn attach_with(&self, package: &str, token: &str) -> Caller {
        self.attach_as(package, Some(token.to_owned())).await
    }

    async fn attach_as(&self, package: &str, token: Option<String>) -> Caller {
        let (client, messages) = Client::pushed("test", Requester::unix(), Purse::default());
        let gateway = self.gateway.clone();
        let mut caller = Caller {
            gateway,
            client,
            messages,
            token,
            session: 0,
            handle: 0,
        };
        let created = caller
            .ask(json!({ "janus": "create", "transaction": "c" }))
            .await;
        caller.session = created["data"]["id"].as_u64().unwrap();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": caller.session, "plugin": package,
        });
        caller.handle = caller.ask(attach).await["data"]["id"].as_u64().unwrap();
        caller
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

/// A client's JSON side.
#[derive(Debug)]
pub struct Caller {
    gateway: Gateway,
    client: Client,
    messages: Outbox,
    token: Option<String>,
    /// Its session.
    pub session: u64,
    /// Its handle.
    pub handle: u64,
}

impl Caller {
    /// Sends `request` and gives the reply; events that come before it are lost.
    async fn ask(&mut self, mut request: Value) -> Value {
        if let Some(token) = &self.token {
            request["token"] = json!(token);
        }
        self.gateway
            .submit(&self.client, request.to_string().as_bytes())
            .await;
        loop {
            let message = self.next().await;
            let is_event = message["janus"] == "event" || message.get("transaction").is_none();
            if !is_event {
                return message;
            }
        }
    }

    /// Sends a handle-level request; gives the reply.
    pub async fn request(&mut self, verb: &str, members: Value) -> Value {
        let mut request = json!({
            "janus": verb, "transaction": "t", "session_id": self.session, "handle_id": self.handle,
        });
        request
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        self.ask(request).await
    }

    /// Sends a message to the plugin that it answers at once; gives its data.
    pub async fn manage(&mut self, body: Value) -> Value {
        let reply = self.request("message", json!({ "body": body })).await;
        reply["plugindata"]["data"].clone()
    }

    /// Sends a message to the plugin, with the description `sdp` of type `kind` if there is one.
    pub async fn message(&mut self, body: Value, jsep: Option<(&str, &str)>) {
        let mut members = json!({ "body": body });
        if let Some((kind, sdp)) = jsep {
            members["jsep"] = json!({ "type": kind, "sdp": sdp });
        }
        let reply = self.request("message", members).await;
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Its session and its handle.
    pub fn ids(&self) -> (u64, u64) {
        (self.session, self.handle)
    }

    /// As [`Caller::message`], with any `jsep`.
    pub async fn message_with(&mut self, body: Value, jsep: Value) {
        let members = json!({ "body": body, "jsep": jsep });
        let reply = self.request("message", members).await;
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// The next message, if there is one already.
    pub fn pending(&mut self) -> Option<Value> {
        self.messages.try_recv()
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        let message = timeout(PATIENCE, self.messages.recv()).await;
        message
            .expect("a message in time")
            .expect("an open connection")
    }

    /// The messages up to the first one that has `member` with `value`, which is given.
    pub async fn until(&mut self, pointer: &str, value: impl Into<Value>) -> Value {
        let value = value.into();
        loop {
            let message = self.next().await;
            if message.pointer(pointer) == Some(&value) {
                return message;
            }
        }
    }
}
