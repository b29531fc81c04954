//! Commands and their answers over a browser's WebSocket: the same form in both protocols.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest};

use super::BrowserError;

/// The longest time until a command is answered. A browser on a busy core takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer = Result<Value, String>;
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

/// A connection for commands.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    outgoing: UnboundedSender<String>,
    waiting: Waiting,
    next: Arc<AtomicU64>,
}

impl Channel {
    /// Connects to a browser's WebSocket on this host.
    pub(super) async fn open(port: u16, path: &str) -> Result<Self, BrowserError> {
        let failed = |error: &dyn std::fmt::Display| BrowserError::Connection(error.to_string());
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .map_err(|error| failed(&error))?;
        let request = format!("ws://127.0.0.1:{port}{path}")
            .into_client_request()
            .map_err(|error| failed(&error))?;
        let opened = client_async(request, stream).await;
        let (socket, _) = opened.map_err(|error| failed(&error))?;
        let (mut sink, mut stream) = socket.split();
        let (outgoing, mut queue) = unbounded_channel::<String>();
        let waiting = Waiting::default();
        tokio::spawn(async move {
            while let Some(text) = queue.recv().await {
                if sink.send(Message::text(text)).await.is_err() {
                    return;
                }
            }
        });
        let answered = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                if let Message::Text(text) = message {
                    deliver(&answered, &text);
                }
            }
            // Whoever waits learns that the connection has ended.
            lock(&answered).clear();
        });
        Ok(Self {
            outgoing,
            waiting,
            next: Arc::default(),
        })
    }

    /// Sends a command, and returns its result. `session` is that of a tab in Chromium.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Value,
        session: Option<&str>,
    ) -> Result<Value, BrowserError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = Map::new();
        message.insert("id".to_owned(), id.into());
        message.insert("method".to_owned(), method.into());
        message.insert("params".to_owned(), params);
        if let Some(session) = session {
            message.insert("sessionId".to_owned(), session.into());
        }
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        let closed = || BrowserError::Connection("the browser has closed it".to_owned());
        self.outgoing
            .send(Value::Object(message).to_string())
            .map_err(|_| closed())?;
        match timeout(PATIENCE, receiver).await {
            Ok(Ok(answer)) => answer.map_err(|reason| BrowserError::Refused {
                method: method.to_owned(),
                reason,
            }),
            Ok(Err(_)) => Err(closed()),
            Err(_) => {
                lock(&self.waiting).remove(&id);
                Err(BrowserError::Timeout {
                    method: method.to_owned(),
                    after: PATIENCE,
                })
            }
        }
    }
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands an answer to its command. Events are ignored.
fn deliver(waiting: &Waiting, text: &str) {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let id = value.get("id").and_then(Value::as_u64);
    let Some(sender) = id.and_then(|id| lock(waiting).remove(&id)) else {
        return;
    };
    let _ = sender.send(answer(value));
}

/// Chromium describes errors by an object, BiDi by a name and a message.
fn answer(mut value: Value) -> Answer {
    match value.get("error") {
        None => Ok(value.get_mut("result").map(Value::take).unwrap_or_default()),
        Some(error) => {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let reason = text(error.get("message")).or_else(|| text(value.get("message")));
            Err(reason.unwrap_or_else(|| error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_both_protocols_are_told() {
        let chromium = json!({ "id": 1, "error": { "code": -32000, "message": "no" } });
        assert_eq!(answer(chromium), Err("no".to_owned()));
        let bidi = json!({ "type": "error", "id": 1, "error": "unknown", "message": "no" });
        assert_eq!(answer(bidi), Err("no".to_owned()));
        assert_eq!(answer(json!({ "id": 1, "result": 7 })), Ok(json!(7)));
    }
}
