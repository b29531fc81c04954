//! Events.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;

use super::EventKind;
use crate::{HandleId, JsonForm, SessionId};

/// An event of the server. It is serialized once for all subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEvent {
    /// Its kind.
    pub kind: EventKind,
    /// Its number among several events of its kind, if the kind has such numbers.
    pub subtype: Option<u8>,
    /// In microseconds since 1970.
    pub timestamp: u64,
    /// The session, handle and plugin that it concerns.
    pub address: EventAddress,
    /// The whole event as JSON.
    json: Box<[u8]>,
    /// Where the body begins in it. The body ends before the last brace.
    body: usize,
}

/// The address of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventAddress {
    /// The session.
    pub session: Option<SessionId>,
    /// The handle.
    pub handle: Option<HandleId>,
    /// The client's text for the handle.
    pub opaque_id: Option<Arc<str>>,
    /// The plugin's package, for filters. On the wire it is in the body.
    pub plugin: Option<&'static str>,
}

/// The name of the server, and the form of ids.
#[derive(Debug, Clone)]
pub(super) struct Emitter {
    pub(super) name: Arc<str>,
    pub(super) string_ids: bool,
}

impl Emitter {
    /// Makes an event at the present time.
    pub(super) fn event(
        &self,
        kind: EventKind,
        subtype: Option<u8>,
        address: EventAddress,
        body: &impl Serialize,
    ) -> ServerEvent {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.unwrap_or_default().as_micros();
        let timestamp = u64::try_from(micros).unwrap_or_default();
        let head = Head {
            emitter: &self.name,
            kind: kind.number(),
            subtype,
            timestamp,
            session_id: address.session.map(|id| id.to_json(self.string_ids)),
            handle_id: address.handle.map(|id| id.to_json(self.string_ids)),
            opaque_id: address.opaque_id.as_deref(),
        };
        let (json, body) = write(&head, body);
        ServerEvent {
            kind,
            subtype,
            timestamp,
            address,
            json,
            body,
        }
    }
}

/// The members before the body.
#[derive(serde::Serialize)]
struct Head<'a> {
    emitter: &'a str,
    #[serde(rename = "type")]
    kind: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtype: Option<u8>,
    timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opaque_id: Option<&'a str>,
}

/// The largest buffer that is kept for the next event, in bytes.
const MAX_SCRATCH: usize = 16 << 10;

thread_local! {
    /// A buffer for serialization, so that each event takes only as much memory as it needs.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Returns the event as JSON, and where its body begins.
fn write(head: &Head<'_>, body: &impl Serialize) -> (Box<[u8]>, usize) {
    let mut to = SCRATCH.take();
    to.clear();
    // These members are always valid JSON, and writing to memory cannot fail.
    let written = serde_json::to_writer(&mut to, head);
    debug_assert!(written.is_ok(), "{written:?}");
    // The body is another member.
    to.pop();
    to.extend_from_slice(b",\"event\":");
    let begin = to.len();
    if serde_json::to_writer(&mut to, body).is_err() {
        // A plugin's body that is not valid JSON.
        to.truncate(begin);
        to.extend_from_slice(b"null");
    }
    to.push(b'}');
    let json = to.as_slice().into();
    if to.capacity() <= MAX_SCRATCH {
        SCRATCH.set(to);
    }
    (json, begin)
}

impl ServerEvent {
    /// Returns the event in its wire form: JSON without whitespace.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Appends the event in this form.
    pub fn write(&self, form: JsonForm, mut to: impl io::Write) {
        match form {
            // The wire form is ready.
            JsonForm::Compact => {
                let written = to.write_all(&self.json);
                debug_assert!(written.is_ok(), "{written:?}");
            }
            JsonForm::Indented | JsonForm::Plain => form.write(to, self),
        }
    }

    /// Returns the body.
    pub fn body(&self) -> Value {
        let end = self.json.len().saturating_sub(1);
        let body = self.json.get(self.body..end).unwrap_or_default();
        parse(body).unwrap_or_default()
    }

    /// Returns the whole event.
    pub(super) fn value(&self) -> Value {
        parse(&self.json).unwrap_or_default()
    }

    /// Returns its approximate size in bytes.
    pub(super) fn weight(&self) -> usize {
        self.json.len().saturating_add(256)
    }
}

/// The wire form. Where no other form is needed, [`ServerEvent::json`] costs less.
impl Serialize for ServerEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        parse(&self.json).map_err(S::Error::custom)?.serialize(to)
    }
}

/// Parses an event that was written here. Data of clients is no deeper than requests may be, but
/// nested deeper here.
fn parse(json: &[u8]) -> serde_json::Result<Value> {
    let mut from = serde_json::Deserializer::from_slice(json);
    from.disable_recursion_limit();
    Value::deserialize(&mut from)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    fn written(body: &impl Serialize) -> ServerEvent {
        let emitter = Emitter {
            name: "here \"and\" there".into(),
            string_ids: false,
        };
        let address = EventAddress {
            opaque_id: Some("viewer".into()),
            ..EventAddress::default()
        };
        emitter.event(EventKind::Core, Some(7), address, body)
    }

    #[test]
    fn an_event_is_one_text_whose_members_are_in_order() {
        let body = json!({ "z": 1, "a": [0.1, 1e300, "\u{1}\"}\n"] });
        let event = written(&body);
        let timestamp = event.timestamp;
        let text = format!(
            r#"{{"emitter":"here \"and\" there","type":256,"subtype":7,"timestamp":{timestamp},"opaque_id":"viewer","event":{body}}}"#
        );
        assert_eq!(event.json(), text.as_bytes());
        assert_eq!(event.body(), body);
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }

    #[test]
    fn what_is_as_deep_as_a_request_may_be_can_be_read() {
        let deep = (0..127).fold(json!(1), |inner, _| json!([inner]));
        let body = json!({ "data": { "of": deep } });
        let event = written(&body);
        assert_eq!(event.body(), body);
        assert_eq!(event.value()["event"], body);
        let mut text = Vec::new();
        event.write(JsonForm::Plain, &mut text);
        assert!(text.ends_with(b"]}}}"));
    }

    #[test]
    fn a_body_that_is_no_json_is_null() {
        let event = written(&HashMap::from([((1, 2), 3)]));
        assert_eq!(event.body(), Value::Null);
        assert!(event.json().ends_with(b"\"event\":null}"));
    }

    #[test]
    fn a_long_event_leaves_nothing_to_the_next() {
        let long = "x".repeat(2 * MAX_SCRATCH);
        assert_eq!(written(&long).body(), Value::from(long));
        assert_eq!(written(&1).body(), 1);
        assert_eq!(written(&2).body(), 2);
    }
}
