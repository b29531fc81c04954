//! A watcher of a server's events for event handlers.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_core::events::Subscription;
use serde_json::Value;
use tokio::time::timeout;

use crate::Caller;
use crate::shape::{Shape, is, object};

/// The longest time that a test waits for an expected event.
const PATIENCE: Duration = Duration::from_secs(20);

/// Receives the events of a server.
#[derive(Debug)]
pub struct Watcher {
    events: Subscription,
    /// Events of other handles than the expected one.
    others: VecDeque<Value>,
}

impl Watcher {
    pub(crate) fn new(events: Subscription) -> Self {
        Watcher {
            events,
            others: VecDeque::new(),
        }
    }

    /// Returns the next event of `plugin` about the handle of `caller`, or about none.
    pub async fn told(&mut self, plugin: &str, caller: Option<&Caller>) -> Value {
        let event = self.next(caller.map(|caller| caller.ids().1)).await;
        let data = event["event"]["data"].clone();
        let body = [("plugin", is(plugin)), ("data", is(data.clone()))];
        let envelope = object([
            ("emitter", is("watched")),
            ("type", is(64)),
            ("timestamp", Shape::Count),
            ("event", object(body)),
        ]);
        let envelope = match caller.map(Caller::ids) {
            Some((session, handle)) => {
                envelope.and([("session_id", is(session)), ("handle_id", is(handle))])
            }
            None => envelope,
        };
        envelope.check(&event);
        data
    }

    async fn next(&mut self, handle: Option<u64>) -> Value {
        let is_about = |event: &Value| event["handle_id"].as_u64() == handle;
        if let Some(known) = self.others.iter().position(is_about) {
            return self.others.remove(known).unwrap();
        }
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let event = event.unwrap_or_else(|_| panic!("in time nothing but {:?}", self.others));
            let event = self.events.to_json(&event.expect("an open bus"));
            if is_about(&event) {
                return event;
            }
            self.others.push_back(event);
        }
    }

    /// Fails if there is another event.
    pub fn expect_silence(&self) {
        assert!(self.others.is_empty(), "unexpected: {:?}", self.others);
        if let Some(event) = self.events.try_recv() {
            panic!("unexpected: {}", event.body());
        }
    }
}
