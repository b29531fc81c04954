//! A client of a server.

use std::time::Duration;

use portunus_core::{Client, Gateway, Outbox, Purse, Requester};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The longest time that a test waits for a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client that speaks JSON to a plugin.
#[derive(Debug)]
pub struct Caller {
    gateway: Gateway,
    client: Client,
    messages: Outbox,
    token: Option<String>,
    /// The id of its session.
    pub session: u64,
    /// The id of its handle.
    pub handle: u64,
}

impl Caller {
    /// Creates a session, and attaches it to a plugin. Each request shows `token`, if there is one.
    pub(crate) async fn attach(gateway: &Gateway, package: &str, token: Option<String>) -> Self {
        let (client, messages) = Client::pushed("test", Requester::unix(), Purse::default());
        let mut caller = Caller {
            gateway: gateway.clone(),
            client,
            messages,
            token,
            session: 0,
            handle: 0,
        };
        let create = json!({ "janus": "create", "transaction": "c" });
        let created = caller.ask(create).await;
        caller.session = created["data"]["id"].as_u64().unwrap();
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": caller.session, "plugin": package,
        });
        caller.handle = caller.ask(attach).await["data"]["id"].as_u64().unwrap();
        caller
    }

    /// Sends `request` and returns the reply. Drops events that arrive before it.
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

    /// Sends a request of the handle and returns the reply.
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

    /// Sends a message that the plugin answers immediately, and returns the data of the answer.
    pub async fn manage(&mut self, body: Value) -> Value {
        let reply = self.request("message", json!({ "body": body })).await;
        reply["plugindata"]["data"].clone()
    }

    /// Sends a message to the plugin, with the type and the SDP of a description if there is one.
    pub async fn message(&mut self, body: Value, jsep: Option<(&str, &str)>) {
        let mut members = json!({ "body": body });
        if let Some((kind, sdp)) = jsep {
            members["jsep"] = json!({ "type": kind, "sdp": sdp });
        }
        let reply = self.request("message", members).await;
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Returns the ids of its session and of its handle.
    pub fn ids(&self) -> (u64, u64) {
        (self.session, self.handle)
    }

    /// Sends a message to the plugin, with any `jsep`.
    pub async fn message_with(&mut self, body: Value, jsep: Value) {
        let members = json!({ "body": body, "jsep": jsep });
        let reply = self.request("message", members).await;
        assert_eq!(reply["janus"], "ack", "{reply}");
    }

    /// Returns the next message if it has already arrived.
    pub fn pending(&mut self) -> Option<Value> {
        self.messages.try_recv()
    }

    /// Waits for the next message.
    pub async fn next(&mut self) -> Value {
        let message = timeout(PATIENCE, self.messages.recv()).await;
        message
            .expect("a message in time")
            .expect("an open connection")
    }

    /// Waits for the first message with `value` at `pointer`, and drops those before it.
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
