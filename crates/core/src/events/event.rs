//! One event.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::EventKind;
use crate::{HandleId, SessionId};

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

    /// About how many bytes it takes, as text and in memory.
    pub(super) fn weight(&self) -> usize {
        weight(&self.body).saturating_add(256)
    }
}

/// An event as it is written on the wire.
#[derive(Debug, Clone, Copy)]
pub struct WrittenEvent<'a> {
    pub(super) emitter: &'a str,
    pub(super) string_ids: bool,
    pub(super) event: &'a ServerEvent,
}

impl Serialize for WrittenEvent<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let event = self.event;
        let address = &event.address;
        let mut members = to.serialize_map(None)?;
        members.serialize_entry("emitter", self.emitter)?;
        members.serialize_entry("type", &event.kind.number())?;
        if let Some(subtype) = event.subtype {
            members.serialize_entry("subtype", &subtype)?;
        }
        members.serialize_entry("timestamp", &event.timestamp)?;
        if let Some(session) = address.session {
            members.serialize_entry("session_id", &session.to_json(self.string_ids))?;
        }
        if let Some(handle) = address.handle {
            members.serialize_entry("handle_id", &handle.to_json(self.string_ids))?;
        }
        if let Some(opaque_id) = &address.opaque_id {
            members.serialize_entry("opaque_id", &**opaque_id)?;
        }
        members.serialize_entry("event", &event.body)?;
        members.end()
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
