//! A gateway with a plugin that does as it is told, and clients of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::{
    Client, CoreConfig, Gateway, Handle, HandleEvent, Message, Plugin, PluginHandle, PluginInfo,
    Reply, ServerFacts,
};
use portunus_media::{MediaPlane, PeerEvent};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub const PROBE: &str = "janus.plugin.probe";

/// A server under test.
pub struct World {
    pub gateway: Gateway,
    pub plugin: Arc<Probe>,
    #[expect(dead_code, reason = "keeps the media plane's events open")]
    pub media: mpsc::Sender<PeerEvent>,
}

impl World {
    pub fn new() -> Self {
        Self::with(CoreConfig::default())
    }

    pub fn with(config: CoreConfig) -> Self {
        let (plane, media, events) = MediaPlane::detached();
        let plugin = Arc::new(Probe::default());
        let plugins: Vec<Arc<dyn Plugin>> = vec![plugin.clone()];
        let gateway = Gateway::new(config, plane, events, plugins, ServerFacts::default());
        World {
            gateway,
            plugin,
            media,
        }
    }

    pub fn connect(&self) -> Connection {
        let (client, messages) = Client::pushed("janus.transport.test");
        Connection {
            gateway: self.gateway.clone(),
            client,
            messages,
        }
    }
}

/// A client with a connection of its own.
pub struct Connection {
    gateway: Gateway,
    pub client: Client,
    messages: mpsc::Receiver<Value>,
}

impl Connection {
    /// Sends `request` and returns the next message, which has to be its reply.
    pub async fn ask(&mut self, request: Value) -> Value {
        self.gateway
            .submit(&self.client, request.to_string().as_bytes())
            .await;
        self.next().await
    }

    pub async fn ask_raw(&mut self, request: &str) -> Value {
        self.gateway.submit(&self.client, request.as_bytes()).await;
        self.next().await
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        let message = timeout(Duration::from_secs(600), self.messages.recv()).await;
        message
            .expect("a message in time")
            .expect("an open connection")
    }

    /// Asserts that nothing more is there, now that all tasks had their turn.
    pub async fn expect_silence(&mut self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        if let Ok(message) = self.messages.try_recv() {
            panic!("unexpected: {message}");
        }
    }

    /// Whether another message comes before the connection is closed.
    pub async fn try_next(&mut self) -> bool {
        self.messages.recv().await.is_some()
    }

    pub async fn create(&mut self) -> u64 {
        let reply = self
            .ask(json!({ "janus": "create", "transaction": "c" }))
            .await;
        reply["data"]["id"].as_u64().unwrap()
    }

    pub async fn attach(&mut self, session: u64) -> u64 {
        let request = json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
            "opaque_id": "mine",
        });
        self.ask(request).await["data"]["id"].as_u64().unwrap()
    }
}

/// A plugin that does what the body of a message says, and notes what it is told.
#[derive(Default)]
pub struct Probe {
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Probe {
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Plugin for Probe {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PROBE,
            name: "Probe",
            description: "Does as it is told.",
            version: 3,
            version_string: "0.0.3",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(ProbeHandle {
            handle,
            log: self.log.clone(),
        })
    }
}

struct ProbeHandle {
    handle: Handle,
    log: Arc<Mutex<Vec<String>>>,
}

impl PluginHandle for ProbeHandle {
    fn message(&mut self, message: Message) -> Reply {
        let transaction = Some(message.transaction.as_str());
        match message.body.get("do").and_then(Value::as_str) {
            Some("succeed") => Reply::Success(json!({ "done": true })),
            Some("succeed with nonsense") => Reply::Success(json!(1)),
            Some("refuse") => Reply::Error("no".to_owned()),
            Some("answer later") => {
                self.handle.push(transaction, json!({ "number": 1 }), None);
                self.handle.push(None, json!({ "number": 2 }), None);
                Reply::Ack(Some("soon"))
            }
            Some("end") => {
                self.handle.end();
                Reply::Ack(None)
            }
            Some("panic") => panic!("as told"),
            _ => Reply::Ack(None),
        }
    }

    fn event(&mut self, event: HandleEvent) {
        self.log.lock().unwrap().push(format!("{event:?}"));
    }

    fn query(&self) -> Value {
        json!({ "opaque": self.handle.opaque_id() })
    }

    fn detach(&mut self) {
        self.log.lock().unwrap().push("detach".to_owned());
        self.handle.push(None, json!({ "too": "late" }), None);
    }
}
