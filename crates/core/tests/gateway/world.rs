//! A gateway with a plugin that follows instructions.

use std::sync::{Arc, Mutex};

use portunus_core::sdp::{
    AnswerOptions, CodecName, Description, Direction, Kind, MediaOffer, OfferOptions, Simulcast,
};
use portunus_core::testing::{TestClient, TestServer};
use portunus_core::{
    CoreConfig, ExtensionKind, Gateway, Handle, HandleEvent, Jsep, Later, Message, PendingOffer,
    Plugin, PluginHandle, PluginInfo, Reply, Right, ServerFacts,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub const PROBE: &str = "janus.plugin.probe";

/// A server under test.
pub struct World {
    pub gateway: Gateway,
    pub plugin: Arc<Probe>,
    pub server: TestServer,
}

impl World {
    pub fn new() -> Self {
        Self::with(CoreConfig::default())
    }

    pub fn with(config: CoreConfig) -> Self {
        let plugin = Arc::new(Probe::default());
        let server = TestServer::new(config, vec![plugin.clone()]);
        World {
            gateway: server.gateway.clone(),
            plugin,
            server,
        }
    }

    /// One that was started with these facts.
    pub fn knowing(facts: ServerFacts) -> Self {
        let plugin = Arc::new(Probe::default());
        let server = TestServer::knowing(facts, CoreConfig::default(), vec![plugin.clone()]);
        World {
            gateway: server.gateway.clone(),
            plugin,
            server,
        }
    }

    /// One with so many milliseconds between an ack and its answer.
    pub fn pausing(ack_pause_ms: u32) -> Self {
        let plugin = Arc::new(Probe::default());
        let config = CoreConfig {
            ack_pause_ms,
            ..CoreConfig::default()
        };
        let server = TestServer::pausing(config, vec![plugin.clone()]);
        World {
            gateway: server.gateway.clone(),
            plugin,
            server,
        }
    }

    pub fn connect(&self) -> TestClient {
        self.server.connect()
    }
}

/// A plugin that follows the instructions in a message, and records its calls.
#[derive(Default)]
pub struct Probe {
    pub log: Arc<Mutex<Vec<String>>>,
    /// Ends what was told to wait.
    pub release: Arc<Notify>,
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

    fn begins(&self, request: &str) -> bool {
        request == "begin"
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(ProbeHandle {
            handle,
            log: self.log.clone(),
            release: self.release.clone(),
            offer: None,
        })
    }
}

struct ProbeHandle {
    handle: Handle,
    log: Arc<Mutex<Vec<String>>>,
    release: Arc<Notify>,
    /// Offers that wait for an answer.
    offer: Option<PendingOffer>,
}

impl ProbeHandle {
    fn note(&self, jsep: &Jsep) {
        let Jsep {
            kind,
            update,
            restart,
            e2ee,
            ..
        } = jsep;
        let rids = |s: &Simulcast| s.rids.iter().map(|rid| rid.to_string()).collect::<Vec<_>>();
        let simulcast: Vec<_> = jsep.simulcast.iter().map(rids).collect();
        let svc: Vec<_> = jsep
            .svc
            .iter()
            .map(|svc| (svc.mid.to_string(), &svc.mode))
            .collect();
        self.log.lock().unwrap().push(format!(
            "{kind:?} update={update} restart={restart} e2ee={e2ee} simulcast={simulcast:?} svc={svc:?}"
        ));
    }
}

impl PluginHandle for ProbeHandle {
    fn message(&mut self, message: Message) -> Reply {
        if let Some(jsep) = &message.jsep {
            self.note(jsep);
        }
        let transaction = Some(message.transaction.as_str());
        match message.body.get("do").and_then(Value::as_str) {
            Some("succeed") => Reply::Success(json!({ "done": true })),
            Some("succeed with nonsense") => Reply::Success(json!(1)),
            Some("wait") => {
                let release = self.release.clone();
                Reply::Later(Later::new(async move {
                    release.notified().await;
                    json!({})
                }))
            }
            Some("tell rights") => {
                let rights = Right::ALL.into_iter();
                let rights = rights.filter(|right| message.rights.may(*right));
                let names: Vec<_> = rights.map(Right::as_str).collect();
                let from = message.client.to_string();
                Reply::Success(json!({ "rights": names, "from": from }))
            }
            Some("tell token") => Reply::Success(json!({ "token": self.handle.token() })),
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
            Some("answer") => {
                let offer = message.jsep.unwrap().description;
                let options = AnswerOptions {
                    extensions: ExtensionKind::ALL.to_vec(),
                    ..Default::default()
                };
                let answer = self
                    .handle
                    .answer(Description::answer(&offer, &options))
                    .unwrap();
                self.handle
                    .push(transaction, json!({ "answered": true }), Some(answer));
                Reply::Ack(None)
            }
            Some("offer") => {
                let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
                audio.add_codec(CodecName::Opus, None, None);
                let offer = OfferOptions {
                    media: vec![audio],
                    ..Default::default()
                };
                let offer = self.handle.offer(Description::offer(offer), false).unwrap();
                self.handle.push(transaction, json!({}), Some(offer));
                Reply::Ack(None)
            }
            Some("keep") => {
                self.offer = message.offer;
                Reply::Ack(None)
            }
            Some("close") => {
                self.handle.close_pc();
                Reply::Ack(None)
            }
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
