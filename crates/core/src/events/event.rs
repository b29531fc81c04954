//! One event.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::EventKind;
use crate::{HandleId, Object, SessionId};

/// Something that happened, as those who watch the server are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEvent {
    /// What it is about.
    pub kind: EventKind,
    /// Which of several events of its kind it is, where the kind has such numbers.
    pub subtype: Option<u8>,
    /// Microseconds since 1970.
    pub timestamp: u64,
    /// Whom it concerns.
    pub address: EventAddress,
    /// What happened.
    pub body: Value,
}

/// Whom an event concerns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventAddress {
    /// The session.
    pub session: Option<SessionId>,
    /// The handle.
    pub handle: Option<HandleId>,
    /// The text that the client gave the handle.
    pub opaque_id: Option<Arc<str>>,
    /// The plugin's package, for filters; on the wire it is in the body.
    pub plugin: Option<&'static str>,
}

impl ServerEvent {
    /// An event of this moment.
    pub(super) fn now(
        kind: EventKind,
        subtype: Option<u8>,
        address: EventAddress,
        body: Value,
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.unwrap_or_default().as_micros();
        ServerEvent {
            kind,
            subtype,
            timestamp: u64::try_from(micros).unwrap_or_default(),
            address,
            body,
        }
    }

    /// Its form on the wire; `emitter` is the server's name.
    pub fn to_json(&self, emitter: &str, string_ids: bool) -> Value {
        let address = &self.address;
        Object::new()
            .with("emitter", emitter)
            .with("type", self.kind.number())
            .with_some("subtype", self.subtype)
            .with("timestamp", self.timestamp)
            .with_some(
                "session_id",
                address.session.map(|id| id.to_json(string_ids)),
            )
            .with_some("handle_id", address.handle.map(|id| id.to_json(string_ids)))
            .with_some("opaque_id", address.opaque_id.as_deref())
            .with("event", self.body.clone())
            .into()
    }

    /// About how many bytes it takes, as text and in memory.
    pub(super) fn weight(&self) -> usize {
        weight(&self.body).saturating_add(256)
    }
}

fn weight(value: &Value) -> usize {
    let own: usize = 32;
    let inner: usize = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len().saturating_add(weight(value)))
            .sum(),
    };
    own.saturating_add(inner)
}
