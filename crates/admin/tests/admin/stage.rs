//! A server with an administrator.

use std::sync::Arc;

use portunus_admin::{AdminConfig, AdminOptions, Administration};
use portunus_core::testing::{TestClient, TestServer};
use portunus_core::{
    Client, CoreConfig, Handle, Later, Plugin, PluginHandle, PluginInfo, Reply, Requester,
    ServerFacts,
};
use serde_json::{Value, json};

use crate::world::{PROBE, Probe, World};

/// A plugin that takes messages of administrators.
pub const TALKER: &str = "janus.plugin.talker";

pub struct Stage {
    pub world: World,
    pub administration: Administration,
    admin: Client,
}

impl Stage {
    pub fn new() -> Self {
        Self::knowing(ServerFacts::default())
    }

    /// With this secret.
    pub fn locked(secret: &str) -> Self {
        Self::configured(AdminConfig {
            secret: Some(secret.into()),
            ..AdminConfig::default()
        })
    }

    /// With this configuration of the Admin API.
    pub fn configured(config: AdminConfig) -> Self {
        Self::start(CoreConfig::default(), ServerFacts::default(), config)
    }

    pub fn knowing(facts: ServerFacts) -> Self {
        Self::with(CoreConfig::default(), facts)
    }

    pub fn with(core: CoreConfig, facts: ServerFacts) -> Self {
        Self::start(core, facts, AdminConfig::default())
    }

    pub fn start(core: CoreConfig, facts: ServerFacts, config: AdminConfig) -> Self {
        let plugin = Arc::new(Probe::default());
        let plugins: Vec<Arc<dyn Plugin>> = vec![plugin.clone(), Arc::new(Talker)];
        let server = TestServer::knowing(facts, core, plugins);
        let admin = Client::polled("test").on_behalf_of(Requester::unix());
        let options = AdminOptions {
            config,
            ..AdminOptions::default()
        };
        let administration = Administration::new(server.gateway.clone(), options);
        let world = World {
            gateway: server.gateway.clone(),
            plugin,
            server,
        };
        Stage {
            world,
            administration,
            admin,
        }
    }

    /// Asks the server.
    pub async fn ask(&self, verb: &str, members: Value) -> Value {
        self.ask_at(verb, (None, None), members).await
    }

    /// Asks for a session, or a handle of it.
    pub async fn ask_at(
        &self,
        verb: &str,
        (session, handle): (Option<u64>, Option<u64>),
        members: Value,
    ) -> Value {
        let mut request = json!({ "janus": verb, "transaction": "t" });
        for (name, id) in [("session_id", session), ("handle_id", handle)] {
            if let Some(id) = id {
                request[name] = id.into();
            }
        }
        let request = request.as_object_mut().unwrap();
        request.extend(members.as_object().unwrap().clone());
        let reply = self.raw(&Value::from(request.clone())).await;
        assert_eq!(reply["transaction"], "t", "{reply}");
        reply
    }

    /// Asks for the session and the handle of `client`.
    pub async fn ask_of(&self, verb: &str, client: &TestClient, members: Value) -> Value {
        let at = (Some(client.session), Some(client.handle));
        self.ask_at(verb, at, members).await
    }

    pub async fn raw(&self, request: &Value) -> Value {
        let request = request.to_string();
        self.administration
            .request(&self.admin, request.as_bytes())
            .await
    }

    /// Sends a request of another requester.
    pub async fn raw_from(&self, requester: Requester, request: &Value) -> Value {
        let client = self.admin.on_behalf_of(requester);
        let request = request.to_string();
        self.administration
            .request(&client, request.as_bytes())
            .await
    }

    pub async fn attach(&self) -> TestClient {
        self.world.server.attach(PROBE).await
    }
}

/// The code of an error; 0: it is none.
pub fn code(reply: &Value) -> u64 {
    match reply["janus"].as_str() {
        Some("error") => reply["error"]["code"].as_u64().unwrap(),
        Some("success" | "pong" | "server_info") => 0,
        _ => panic!("{reply}"),
    }
}

struct Talker;

impl Plugin for Talker {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: TALKER,
            name: "Talker",
            description: "Takes messages of administrators.",
            version: 1,
            version_string: "0.0.1",
        }
    }

    fn attach(&self, _handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(Silent)
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        Some(match request["request"].as_str() {
            Some("later") => Reply::Later(Later::new(async { json!({ "later": true }) })),
            Some("refuse") => Reply::Error("no".to_owned()),
            _ => Reply::Success(request),
        })
    }
}

struct Silent;

impl PluginHandle for Silent {
    fn message(&mut self, _message: portunus_core::Message) -> Reply {
        Reply::Success(json!({}))
    }
}
