//! An internal client of the gateway: one session with one handle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_core::sdp::IceCredentials;
use portunus_core::{Client, Gateway, HandleId, LocalIce, Outbox, SessionId};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

/// The time limit for the plugin's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session with one handle. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Link {
    gateway: Gateway,
    client: Client,
    session: SessionId,
    handle: HandleId,
    transactions: AtomicU64,
    waiting: Arc<Waiting>,
    state: watch::Receiver<State>,
}

/// The transaction of a message, and the receiver of the answering event.
type Waiting = Mutex<Option<(String, oneshot::Sender<Value>)>>;

/// The state of the PeerConnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Negotiating,
    Up,
    Ended,
}

/// An answer of a plugin.
#[derive(Debug)]
pub(super) struct Answer {
    /// The text of its offer or answer.
    pub(super) sdp: Option<String>,
}

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The core refused the request with this error.
    Core(u64, String),
    /// The plugin refused the request.
    Plugin(u64, String),
    /// The plugin did not answer in time.
    Silence,
    /// The session or the PeerConnection ended.
    Ended,
}

impl Link {
    /// Makes a session of the internal client `client`, and attaches to the plugin `package`.
    pub(super) async fn open(
        gateway: &Gateway,
        (client, messages): (Client, Outbox),
        package: &str,
    ) -> Result<Self, Failure> {
        let waiting = Arc::<Waiting>::default();
        let (sender, state) = watch::channel(State::Negotiating);
        tokio::spawn(pump(messages, waiting.clone(), sender));
        // From here on dropping it cleans up.
        let mut link = Link {
            gateway: gateway.clone(),
            client,
            session: SessionId(0),
            handle: HandleId(0),
            transactions: AtomicU64::new(1),
            waiting,
            state,
        };
        let created = link.request(json!({ "janus": "create" })).await?;
        link.session = SessionId(id_in(&created).ok_or(Failure::Ended)?);
        let attached = link
            .request(json!({ "janus": "attach", "session_id": link.session.0, "plugin": package }))
            .await?;
        link.handle = HandleId(id_in(&attached).ok_or(Failure::Ended)?);
        Ok(link)
    }

    /// Sends a message with an offer or answer to the plugin, and waits for the answering event.
    pub(super) async fn ask(
        &self,
        body: &Value,
        jsep: Option<(&str, &str)>,
    ) -> Result<Answer, Failure> {
        let transaction = self.transaction();
        let mut message = json!({ "janus": "message", "transaction": transaction, "body": body });
        if let (Some(members), Some((kind, sdp))) = (message.as_object_mut(), jsep) {
            let jsep = json!({ "type": kind, "sdp": sdp });
            members.insert("jsep".to_owned(), jsep);
        }
        let (sender, event) = oneshot::channel();
        *self.slot() = Some((transaction, sender));
        let reply = self.on_handle(message).await?;
        if reply.get("plugindata").is_some() {
            return read(&reply);
        }
        let mut state = self.state.clone();
        tokio::select! {
            // The answer counts, even if the end follows immediately.
            biased;
            event = event => read(&event.map_err(|_| Failure::Ended)?),
            _ = state.wait_for(|state| *state == State::Ended) => Err(Failure::Ended),
            () = tokio::time::sleep(PATIENCE) => Err(Failure::Silence),
        }
    }

    /// Passes candidates to the core.
    pub(super) async fn trickle(&self, candidates: Vec<Value>) -> Result<(), Failure> {
        let message = json!({ "janus": "trickle", "candidates": candidates });
        self.on_handle(message).await.map(drop)
    }

    /// Restarts ICE. Returns `None` if there is no PeerConnection.
    pub(super) async fn restart_ice(&self, remote: IceCredentials) -> Option<LocalIce> {
        self.gateway
            .restart_ice(self.session, self.handle, remote)
            .await
    }

    /// Detaches. Returns once the plugin has released the client.
    pub(super) async fn close(&self) {
        let detach = self.on_handle(json!({ "janus": "detach" }));
        // A hanging plugin does not delay the end of the session.
        let _ = tokio::time::timeout(PATIENCE, detach).await;
        self.gateway.client_gone(&self.client);
    }

    /// Waits until the PeerConnection is up, at most `limit`. Returns false if it ended or did not
    /// come up.
    pub(super) async fn is_up_within(&self, limit: Duration) -> bool {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| *state != State::Negotiating);
        match tokio::time::timeout(limit, settled).await {
            Ok(Ok(state)) => *state == State::Up,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Waits until the PeerConnection or the session has ended.
    pub(super) async fn ended(&self) {
        // An error means that the sender is gone, so it has ended.
        let _ = self
            .state
            .clone()
            .wait_for(|state| *state == State::Ended)
            .await;
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Whether the PeerConnection, the handle or the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        let ended = *self.state.borrow() == State::Ended;
        ended || !self.gateway.has_handle(self.session, self.handle)
    }

    async fn on_handle(&self, mut message: Value) -> Result<Value, Failure> {
        if let Some(members) = message.as_object_mut() {
            members.insert("session_id".to_owned(), self.session.0.into());
            members.insert("handle_id".to_owned(), self.handle.0.into());
        }
        self.request(message).await
    }

    async fn request(&self, mut message: Value) -> Result<Value, Failure> {
        if let Some(members) = message.as_object_mut() {
            members
                .entry("transaction")
                .or_insert_with(|| self.transaction().into());
        }
        let reply = self.gateway.request_value(&self.client, message).await;
        let Some(error) = reply.get("error") else {
            return Ok(reply);
        };
        let reason = error.get("reason").and_then(Value::as_str);
        let code = error.get("code").and_then(Value::as_u64);
        Err(Failure::Core(
            code.unwrap_or_default(),
            reason.unwrap_or_default().to_owned(),
        ))
    }

    fn transaction(&self) -> String {
        self.transactions
            .fetch_add(1, Ordering::Relaxed)
            .to_string()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<(String, oneshot::Sender<Value>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.gateway.client_gone(&self.client);
    }
}

/// Reads the client's events until its PeerConnection or session ends.
async fn pump(mut messages: Outbox, waiting: Arc<Waiting>, state: watch::Sender<State>) {
    while let Some(message) = messages.recv().await {
        match message.get("janus").and_then(Value::as_str) {
            Some("event") => {
                let transaction = message.get("transaction").and_then(Value::as_str);
                let mut slot = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = slot
                    .take_if(|(wanted, _)| transaction == Some(wanted.as_str()))
                    .map(|(_, sender)| sender);
                drop(slot);
                if let Some(sender) = wanted {
                    // The receiver is gone if the HTTP client has left.
                    let _ = sender.send(message);
                }
            }
            Some("webrtcup") => {
                state.send_replace(State::Up);
            }
            Some("hangup" | "detached" | "destroyed" | "timeout") => break,
            // Media, slow links and the like have no receiver.
            _ => {}
        }
    }
    state.send_replace(State::Ended);
}

/// Returns the answer in an event, or in a reply with the plugin's data.
fn read(event: &Value) -> Result<Answer, Failure> {
    let data = event.pointer("/plugindata/data");
    let member = |name: &str| data.and_then(|data| data.get(name));
    if let Some(code) = member("error_code").and_then(Value::as_u64) {
        let text = member("error").and_then(Value::as_str);
        return Err(Failure::Plugin(code, text.unwrap_or_default().to_owned()));
    }
    let sdp = event.pointer("/jsep/sdp").and_then(Value::as_str);
    Ok(Answer {
        sdp: sdp.map(str::to_owned),
    })
}

/// Returns the id in a reply: a number, or a string of digits.
fn id_in(reply: &Value) -> Option<u64> {
    let id = reply.pointer("/data/id")?;
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}
