//! Messages to clients: one for a single client, or one that is serialized once for many.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::{HandleId, JsonForm, Object, SessionId, prices};

/// The data of an event for many clients. It is serialized for the first of them, and shared by
/// all. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Notice(Arc<Told>);

#[derive(Debug)]
struct Told {
    data: Value,
    text: OnceLock<String>,
    price: OnceLock<usize>,
}

impl Notice {
    /// A notice with this data, an object.
    pub fn new(data: impl Into<Value>) -> Self {
        Self(Arc::new(Told {
            data: data.into(),
            text: OnceLock::new(),
            price: OnceLock::new(),
        }))
    }

    /// Returns its size in memory, including its text.
    fn price(&self) -> usize {
        let told = &self.0;
        *told.price.get_or_init(|| 2 * prices::value(&told.data))
    }

    fn text(&self) -> &str {
        self.0.text.get_or_init(|| self.0.data.to_string())
    }
}

/// A larger message in bytes waits as text, which is much smaller.
const PACKED_FROM: usize = 16 << 10;

/// The bytes around a notice, without names and ids.
const AROUND: usize = 160;

/// A message to a client.
#[derive(Debug, Clone)]
pub struct ClientMessage(Form);

#[derive(Debug, Clone)]
enum Form {
    Own(Value),
    /// Already serialized.
    Text {
        text: Box<str>,
        is_answer: bool,
    },
    Shared(Addressed),
}

/// A notice for one client.
#[derive(Debug, Clone)]
pub(crate) struct Addressed {
    pub(crate) session: SessionId,
    pub(crate) sender: HandleId,
    pub(crate) opaque_id: Option<Arc<str>>,
    /// Whether ids are strings in JSON.
    pub(crate) string_ids: bool,
    pub(crate) plugin: &'static str,
    pub(crate) notice: Notice,
}

impl ClientMessage {
    /// Returns the message as one line of JSON.
    pub fn text(&self) -> String {
        match &self.0 {
            Form::Own(value) => value.to_string(),
            Form::Text { text, .. } => text.to_string(),
            Form::Shared(addressed) => addressed.text(),
        }
    }

    /// Returns the message as one line of JSON, without copying text.
    pub(crate) fn into_text(self) -> String {
        match self.0 {
            Form::Text { text, .. } => text.into_string(),
            Form::Own(_) | Form::Shared(_) => self.text(),
        }
    }

    /// Converts the message into the form in which it waits, and returns that with its size in
    /// bytes.
    pub(crate) fn packed(self) -> (Self, usize) {
        let price = match &self.0 {
            Form::Own(value) => prices::value(value),
            Form::Text { text, .. } => text.len(),
            // Each waiting client may be the last one that holds the text.
            Form::Shared(addressed) => AROUND.saturating_add(addressed.notice.price()),
        };
        if price <= PACKED_FROM || !matches!(self.0, Form::Own(_)) {
            return (self, price);
        }
        let (is_answer, text) = (self.is_answer(), self.text().into_boxed_str());
        let price = text.len();
        (ClientMessage(Form::Text { text, is_answer }), price)
    }

    /// Returns the message as a value.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Own(value) => value,
            // The text was serialized from a value.
            Form::Text { text, .. } => serde_json::from_str(&text).unwrap_or_default(),
            Form::Shared(addressed) => addressed.value(),
        }
    }

    /// Whether it is an event that answers a request.
    pub(crate) fn is_answer(&self) -> bool {
        match &self.0 {
            Form::Own(value) => value.get("transaction").is_some(),
            Form::Text { is_answer, .. } => *is_answer,
            Form::Shared(_) => false,
        }
    }
}

impl From<Value> for ClientMessage {
    fn from(value: Value) -> Self {
        ClientMessage(Form::Own(value))
    }
}

impl From<Addressed> for ClientMessage {
    fn from(addressed: Addressed) -> Self {
        ClientMessage(Form::Shared(addressed))
    }
}

/// Messages are equal if their texts are equal.
impl PartialEq for ClientMessage {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Own(one), Form::Own(other)) => one == other,
            _ => self.text() == other.text(),
        }
    }
}

impl Addressed {
    /// Returns the text of [`Addressed::value`], reusing the text of the notice.
    fn text(&self) -> String {
        let data = self.notice.text();
        let opaque_id = self.opaque_id.as_deref();
        let more = opaque_id.map_or(0, str::len) + self.plugin.len();
        let mut text = Vec::with_capacity(data.len() + AROUND + more);
        let write = |text: &mut Vec<u8>, name: &str, value: &Value| {
            text.extend_from_slice(name.as_bytes());
            JsonForm::Compact.write(text, value);
        };
        text.extend_from_slice(br#"{"janus":"event""#);
        let ids = self.string_ids;
        write(&mut text, r#","session_id":"#, &self.session.to_json(ids));
        write(&mut text, r#","sender":"#, &self.sender.to_json(ids));
        if let Some(opaque_id) = opaque_id {
            text.extend_from_slice(br#","opaque_id":"#);
            JsonForm::Compact.write(&mut text, &opaque_id);
        }
        text.extend_from_slice(br#","plugindata":{"plugin":"#);
        JsonForm::Compact.write(&mut text, &self.plugin);
        text.extend_from_slice(br#","data":"#);
        text.extend_from_slice(data.as_bytes());
        text.extend_from_slice(b"}}");
        // JSON is UTF-8.
        String::from_utf8(text).unwrap_or_default()
    }

    fn value(self) -> Value {
        let Told { data, .. } = &*self.notice.0;
        Object::new()
            .with("janus", "event")
            .with("session_id", self.session.to_json(self.string_ids))
            .with("sender", self.sender.to_json(self.string_ids))
            .with_some("opaque_id", self.opaque_id.as_deref())
            .with("plugindata", json!({ "plugin": self.plugin, "data": data }))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_written_as_the_event_that_it_is() {
        let notice = Notice::new(json!({ "told": "a \"word\"", "n": [1, 2.5, null] }));
        for (string_ids, opaque_id) in [(false, None), (true, Some("o \"1\" \u{e9}"))] {
            let message = ClientMessage::from(Addressed {
                session: SessionId(1),
                sender: HandleId(u64::MAX),
                opaque_id: opaque_id.map(Arc::from),
                string_ids,
                plugin: "portunus.plugin.test",
                notice: notice.clone(),
            });
            assert!(!message.is_answer());
            let text = message.text();
            assert_eq!(text, message.clone().into_value().to_string());
            assert_eq!(message, ClientMessage::from(message.clone().into_value()));
        }
    }

    #[test]
    fn a_large_message_waits_as_text() {
        let event = json!({ "janus": "event", "transaction": "t", "list": vec!["room"; 1_000] });
        let (small, price) = ClientMessage::from(json!({ "janus": "ack" })).packed();
        assert!(matches!(small.0, Form::Own(_)) && price > 0);
        let (large, price) = ClientMessage::from(event.clone()).packed();
        assert!(matches!(large.0, Form::Text { .. }));
        assert_eq!(price, event.to_string().len());
        assert!(large.is_answer());
        assert_eq!(large.packed().1, price);
        let again = ClientMessage::from(event.clone()).packed().0;
        assert_eq!(again.clone().into_text(), event.to_string());
        assert_eq!(again.into_value(), event);
    }
}
