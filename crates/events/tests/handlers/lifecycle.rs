//! A handler at work.

use std::time::{Duration, Instant};

use portunus_core::configuration;
use portunus_core::events::{
    ConfiguredEventHandler, EventAddress, EventBus, EventHandlerConfig, EventHandlerRegistration,
    EventKind,
};
use serde_json::{Value, json};

/// A bus with one handler.
pub struct Running {
    pub bus: EventBus,
    package: &'static str,
}

/// Reads the section of `H` with these keys. Returns its mistakes on failure.
pub fn read<H: ConfiguredEventHandler>(keys: &str) -> Result<EventHandlerConfig, Vec<String>> {
    let text = format!("[events.{}]\nenabled = true\n{keys}", H::NAME);
    let handler = EventHandlerRegistration::of::<H>();
    let read = configuration::read(&text, |file| {
        file.section("events", |events| handler.read(events))
    });
    read.map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

/// Starts `H` with these keys.
pub async fn start<H: ConfiguredEventHandler>(keys: &str) -> Running {
    let bus = EventBus::new("here", false);
    read::<H>(keys).unwrap().start(&bus).await.unwrap();
    let package = bus.handlers()[0].package;
    Running { bus, package }
}

impl Running {
    /// Publishes events with these numbers.
    pub fn publish(&self, numbers: impl IntoIterator<Item = u64>) {
        for n in numbers {
            self.publish_body(json!({ "n": n }));
        }
    }

    pub fn publish_body(&self, body: Value) {
        let bus = &self.bus;
        bus.publish(EventKind::Core, None, EventAddress::default, || body);
    }

    /// Returns a counter of the handler.
    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.bus.counters();
        let own = &counters.handlers[0].own;
        own.iter().find(|it| it.name == name).unwrap().value
    }

    /// Events that the handler did not take in time.
    pub fn dropped(&self) -> u64 {
        self.bus.counters().handlers[0].dropped
    }

    /// Sends an administrator's request. An error is its number.
    pub fn ask(&self, request: Value) -> Result<Value, u16> {
        let answer = self.bus.query(self.package, request.as_object().unwrap());
        answer.unwrap().map_err(|error| error.code())
    }

    /// Changes these members.
    pub fn tweak(&self, mut members: Value) -> Result<(), u16> {
        members["request"] = json!("tweak");
        self.ask(members)
            .map(|answer| assert_eq!(answer["result"], 200))
    }

    pub fn last_error(&self) -> String {
        let status = self.ask(json!({ "request": "status" })).unwrap();
        status["last_error"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a counter of the handler has this value.
    pub async fn until(&self, name: &str, value: u64) {
        let state = || {
            format!(
                "{name} is {} (last error {:?})",
                self.counter(name),
                self.last_error()
            )
        };
        until(|| self.counter(name) >= value, state).await;
        assert_eq!(self.counter(name), value, "{name}");
    }
}

/// Waits for a condition. `state` describes the state for the failure.
pub async fn until(condition: impl Fn() -> bool, state: impl Fn() -> String) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", state());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The numbers of events that came as JSON: objects, or arrays of them.
pub fn numbers(body: &[u8]) -> Vec<u64> {
    let number = |event: &Value| event["event"]["n"].as_u64();
    match serde_json::from_slice(body).unwrap() {
        Value::Array(events) => events.iter().filter_map(number).collect(),
        event => number(&event).into_iter().collect(),
    }
}
