//! A client at the other side of a broker, with an independent implementation of its protocol.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

/// The longest time that a test waits for an expected message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A received message.
#[derive(Debug, Clone)]
pub struct Message {
    /// The topic, queue or subject.
    pub place: String,
    /// The content.
    pub body: Value,
    /// The request that it answers, if the protocol names it.
    pub correlation: Option<String>,
}

/// A connection to a broker.
pub trait Wire {
    /// Returns where replies to its requests arrive, if not in the common place.
    fn inbox(&self) -> Option<String>;

    /// Returns whether replies name their requests.
    fn correlates(&self) -> bool;

    /// Sends a request.
    fn send(&mut self, place: &str, body: String, correlation: &str) -> impl Future<Output = ()>;

    /// Returns the next message of any place.
    fn next(&mut self) -> impl Future<Output = Message>;

    /// Leaves the broker.
    fn close(self) -> impl Future<Output = ()>
    where
        Self: Sized,
    {
        async {}
    }
}

/// A client that sends requests and receives replies and events.
#[derive(Debug)]
pub struct Correspondent<W> {
    wire: W,
    /// Received messages that nobody has wanted yet.
    backlog: VecDeque<Message>,
    asked: u32,
}

impl<W: Wire> Correspondent<W> {
    pub fn new(wire: W) -> Self {
        Correspondent {
            wire,
            backlog: VecDeque::new(),
            asked: 0,
        }
    }

    /// Sends a request to `to-janus` or `to-janus-admin`. Returns the reply, which must arrive in
    /// the right place.
    pub async fn ask(&mut self, to: &str, mut request: Value) -> Value {
        self.asked += 1;
        let transaction = format!("t{}", self.asked);
        request["transaction"] = transaction.clone().into();
        self.wire.send(to, request.to_string(), &transaction).await;
        let reply = self
            .until(|message| {
                message.body["transaction"] == *transaction && message.body["janus"] != "event"
            })
            .await;
        let place = self
            .wire
            .inbox()
            .unwrap_or_else(|| to.replace("to-", "from-"));
        assert_eq!(reply.place, place, "{reply:?}");
        if self.wire.correlates() {
            assert_eq!(reply.correlation.as_deref(), Some(&*transaction));
        }
        reply.body
    }

    /// Returns the connection itself.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Leaves the broker.
    pub async fn close(self) {
        self.wire.close().await;
    }

    /// Sends text unchanged.
    pub async fn say(&mut self, to: &str, text: String, correlation: &str) {
        self.wire.send(to, text, correlation).await;
    }

    /// Returns the next message that is wanted.
    pub async fn until(&mut self, wanted: impl Fn(&Message) -> bool) -> Message {
        if let Some(place) = self.backlog.iter().position(&wanted) {
            return self.backlog.remove(place).unwrap();
        }
        let waiting = async {
            loop {
                let message = self.wire.next().await;
                if wanted(&message) {
                    return message;
                }
                self.backlog.push_back(message);
            }
        };
        let came = timeout(PATIENCE, waiting).await;
        came.unwrap_or_else(|_| panic!("nothing came but {:#?}", self.backlog))
    }

    /// Returns the next event of a handle or session.
    pub async fn pushed(&mut self, janus: &str) -> Value {
        let message = self
            .until(|message| message.place == "from-janus" && message.body["janus"] == janus)
            .await;
        message.body
    }

    /// Returns the next event of the server that is published at `place`.
    pub async fn event(&mut self, place: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let message = self
            .until(|message| message.place == place && wanted(&message.body))
            .await;
        message.body
    }
}
