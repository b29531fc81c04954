//! The events of a session.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{PATIENCE, get};

/// The events of a session, which a thread polls until the session or its server ends.
pub struct Events(mpsc::Receiver<Value>);

impl Events {
    /// Returns the events of a handle's session.
    pub fn of(handle: &str) -> Self {
        let session = handle.rsplit_once('/').unwrap().0.to_owned();
        let (to, events) = mpsc::channel();
        std::thread::spawn(move || {
            // The server may end at any moment.
            while let Ok(event) = std::panic::catch_unwind(|| get(&session)) {
                let Ok(event) = serde_json::from_str::<Value>(&event) else {
                    return;
                };
                let is_over = event["janus"] == "error" || event["janus"] == "timeout";
                if is_over || to.send(event).is_err() {
                    return;
                }
            }
        });
        Events(events)
    }

    /// Waits for an event.
    #[track_caller]
    pub fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left) {
                Ok(event) if holds(&event) => return event,
                Ok(event) => seen.push(event),
                Err(error) => panic!("{error}: {seen:#?}"),
            }
        }
    }

    /// Returns the events that have come and were not taken.
    pub fn come(&self) -> impl Iterator<Item = Value> {
        self.0.try_iter()
    }

    /// Returns the next event, or `None` if none comes in this time.
    pub fn within(&self, time: Duration) -> Option<Value> {
        self.0.recv_timeout(time).ok()
    }
}
