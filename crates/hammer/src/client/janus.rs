//! The Janus API over WebSocket: many sessions and handles over one connection.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{interval, timeout};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use super::{ClientError, Trust, tls};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interval of keep-alives. Janus drops sessions after 60 s of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// The credentials of every request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The API secret.
    pub secret: Option<String>,
    /// A token.
    pub token: Option<String>,
}

/// A connection to a server. Clones share it.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Shared>);

/// A session on a connection.
#[derive(Debug, Clone)]
pub struct Session {
    connection: Connection,
    id: Value,
}

/// A handle of a session: attached to one plugin.
#[derive(Debug)]
pub struct Handle {
    session: Session,
    id: Value,
    /// Unsolicited messages of the server: `webrtcup`, `trickle`, `hangup`, events of the plugin.
    pub events: UnboundedReceiver<Value>,
}

#[derive(Debug)]
struct Shared {
    outgoing: UnboundedSender<String>,
    credentials: Credentials,
    transactions: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// The receivers of replies by transaction.
    waiting: HashMap<String, UnboundedSender<Value>>,
    /// The receivers of a handle's messages.
    handles: HashMap<String, UnboundedSender<Value>>,
    /// The sessions to keep alive.
    sessions: HashSet<Value>,
}

impl Connection {
    /// Connects to `url` (`ws://…` or `wss://…`).
    pub async fn open(
        url: &str,
        credentials: Credentials,
        trust: &Trust,
    ) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::Connect {
            url: url.to_owned(),
            reason,
        };
        let mut request = url
            .into_client_request()
            .map_err(|_| ClientError::Url(url.to_owned()))?;
        let protocol = HeaderValue::from_static("janus-protocol");
        request
            .headers_mut()
            .insert("Sec-WebSocket-Protocol", protocol);
        let connecting = async {
            let stream = tls::connect(request.uri(), ["ws", "wss"], trust).await?;
            let opened = client_async(request, stream).await;
            opened.map_err(|error| failed(error.to_string()))
        };
        let (socket, _) = timeout(PATIENCE, connecting)
            .await
            .map_err(|_| failed("no answer".to_owned()))??;
        let (mut sink, mut stream) = socket.split();
        let (outgoing, mut queue) = unbounded_channel::<String>();
        let shared = Arc::new(Shared {
            outgoing,
            credentials,
            transactions: AtomicU64::new(0),
            state: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            let mut keep_alive = interval(KEEP_ALIVE);
            loop {
                tokio::select! {
                    text = queue.recv() => {
                        let Some(text) = text else { break };
                        if sink.send(Message::text(text)).await.is_err() {
                            break;
                        }
                    }
                    _ = keep_alive.tick() => {
                        let Some(shared) = weak.upgrade() else { break };
                        shared.keep_alive();
                    }
                }
            }
            let _ = sink.close().await;
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                let Some(shared) = weak.upgrade() else { return };
                if let Message::Text(text) = message
                    && let Ok(value) = serde_json::from_str(&text)
                {
                    shared.deliver(value);
                }
            }
            if let Some(shared) = weak.upgrade() {
                shared.close();
            }
        });
        Ok(Self(shared))
    }

    /// Returns the server's information about itself.
    pub async fn info(&self) -> Result<Value, ClientError> {
        self.request("info", json!({})).await
    }

    /// Creates a session.
    pub async fn create(&self) -> Result<Session, ClientError> {
        let reply = self.request("create", json!({})).await?;
        let id = id_of(&reply, "create")?;
        self.0.state().sessions.insert(id.clone());
        Ok(Session {
            connection: self.clone(),
            id,
        })
    }

    /// Sends a request. Returns the reply that is not an acknowledgement.
    async fn request(&self, verb: &str, members: Value) -> Result<Value, ClientError> {
        let transaction = self
            .0
            .transactions
            .fetch_add(1, Ordering::Relaxed)
            .to_string();
        let (sender, mut replies) = unbounded_channel();
        if !self.0.expect(&transaction, sender) {
            return Err(ClientError::Closed);
        }
        self.0.send(verb, &transaction, members);
        let reply = timeout(PATIENCE, async {
            loop {
                match replies.recv().await {
                    Some(reply) if verb_of(&reply) == "ack" && verb != "keepalive" => {}
                    Some(reply) => return Ok(reply),
                    None => return Err(ClientError::Closed),
                }
            }
        });
        let reply = reply.await;
        self.0.state().waiting.remove(&transaction);
        let reply = reply.map_err(|_| ClientError::Timeout {
            request: verb.to_owned(),
            after: PATIENCE,
        })??;
        match reply.get("error") {
            Some(error) => Err(ClientError::Refused {
                request: verb.to_owned(),
                code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
                reason: text(error, "reason"),
            }),
            None => Ok(reply),
        }
    }
}

impl Session {
    /// Attaches to a plugin.
    pub async fn attach(&self, plugin: &str) -> Result<Handle, ClientError> {
        let members = json!({ "session_id": self.id, "plugin": plugin });
        let reply = self.connection.request("attach", members).await?;
        let id = id_of(&reply, "attach")?;
        let (sender, events) = unbounded_channel();
        let listeners = &mut self.connection.0.state().handles;
        listeners.insert(id.to_string(), sender);
        Ok(Handle {
            session: self.clone(),
            id,
            events,
        })
    }

    /// Destroys the session with all its handles.
    pub async fn destroy(&self) -> Result<(), ClientError> {
        self.connection.0.state().sessions.remove(&self.id);
        let members = json!({ "session_id": self.id });
        self.connection.request("destroy", members).await?;
        Ok(())
    }
}

impl Handle {
    /// Sends a message to the plugin. Returns the event or reply that answers it. Refusals of the
    /// plugin are errors.
    pub async fn message(&self, body: Value, jsep: Option<Value>) -> Result<Value, ClientError> {
        let request = text(&body, "request");
        let mut members = json!({
            "session_id": self.session.id, "handle_id": self.id, "body": body,
        });
        if let (Some(jsep), Some(members)) = (jsep, members.as_object_mut()) {
            members.insert("jsep".to_owned(), jsep);
        }
        let reply = self.session.connection.request("message", members).await?;
        let data = plugin_data(&reply);
        match data.get("error_code").and_then(Value::as_i64) {
            Some(code) => Err(ClientError::Refused {
                request,
                code,
                reason: text(data, "error"),
            }),
            None => Ok(reply),
        }
    }

    /// Detaches from the plugin.
    pub async fn detach(&self) -> Result<(), ClientError> {
        let members = json!({ "session_id": self.session.id, "handle_id": self.id });
        self.session.connection.request("detach", members).await?;
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.session.connection.0.state();
        state.handles.remove(&self.id.to_string());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the receiver of a transaction's replies. Returns false if none can arrive.
    fn expect(&self, transaction: &str, replies: UnboundedSender<Value>) -> bool {
        let mut state = self.state();
        if !state.closed {
            state.waiting.insert(transaction.to_owned(), replies);
        }
        !state.closed
    }

    fn send(&self, verb: &str, transaction: &str, members: Value) {
        let mut request = Map::new();
        request.insert("janus".to_owned(), verb.into());
        request.insert("transaction".to_owned(), transaction.into());
        if let Some(secret) = &self.credentials.secret {
            request.insert("apisecret".to_owned(), secret.as_str().into());
        }
        if let Some(token) = &self.credentials.token {
            request.insert("token".to_owned(), token.as_str().into());
        }
        if let Value::Object(members) = members {
            request.extend(members);
        }
        // If the connection has closed, the receiver of the reply gets an error.
        let _ = self.outgoing.send(Value::Object(request).to_string());
    }

    fn keep_alive(&self) {
        let sessions: Vec<Value> = self.state().sessions.iter().cloned().collect();
        for session in sessions {
            self.send("keepalive", "keepalive", json!({ "session_id": session }));
        }
    }

    fn deliver(&self, message: Value) {
        let mut state = self.state();
        let transaction = message.get("transaction").and_then(Value::as_str);
        let waiting = transaction.and_then(|transaction| match verb_of(&message) {
            "ack" => state.waiting.get(transaction).cloned(),
            // Later messages with the same transaction are events of the handle: plugins reuse that
            // of a request.
            _ => state.waiting.remove(transaction),
        });
        let listening = || {
            let sender = message.get("sender")?;
            state.handles.get(&sender.to_string()).cloned()
        };
        if let Some(receiver) = waiting.or_else(listening) {
            // A receiver that is gone does not need it.
            let _ = receiver.send(message);
        }
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        state.handles.clear();
        state.sessions.clear();
    }
}

/// Returns the plugin's data in a reply or event.
pub(crate) fn plugin_data(message: &Value) -> &Value {
    message.pointer("/plugindata/data").unwrap_or(&Value::Null)
}

/// Returns the description in a reply to `request`.
pub(crate) fn description(reply: &Value, request: &str) -> Result<String, ClientError> {
    let sdp = reply.pointer("/jsep/sdp").and_then(Value::as_str);
    sdp.map(str::to_owned)
        .ok_or_else(|| ClientError::Malformed {
            request: request.to_owned(),
            missing: "jsep",
        })
}

fn verb_of(message: &Value) -> &str {
    message
        .get("janus")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn id_of(reply: &Value, request: &str) -> Result<Value, ClientError> {
    reply
        .pointer("/data/id")
        .cloned()
        .ok_or_else(|| ClientError::Malformed {
            request: request.to_owned(),
            missing: "id",
        })
}

fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
