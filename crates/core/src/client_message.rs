//! What clients are sent: a message of their own, or what many are told, which is written once for all of them.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::{HandleId, JsonForm, Object, SessionId};

/// What a plugin tells many clients: the data of an event. It is written when the first of them is sent it, and shared by all
/// that it waits for; cheap to clone.
#[derive(Debug, Clone)]
pub struct Notice(Arc<Told>);

#[derive(Debug)]
struct Told {
    data: Value,
    text: OnceLock<String>,
}

impl Notice {
    /// A notice of this data, an object.
    pub fn new(data: impl Into<Value>) -> Self {
        Self(Arc::new(Told {
            data: data.into(),
            text: OnceLock::new(),
        }))
    }

    fn text(&self) -> &str {
        self.0.text.get_or_init(|| self.0.data.to_string())
    }
}

/// A message to a client.
#[derive(Debug, Clone)]
pub struct ClientMessage(Form);

#[derive(Debug, Clone)]
enum Form {
    Own(Value),
    Shared(Addressed),
}

/// A notice on its way to one client.
#[derive(Debug, Clone)]
pub(crate) struct Addressed {
    pub(crate) session: SessionId,
    pub(crate) sender: HandleId,
    pub(crate) opaque_id: Option<Arc<str>>,
    /// Ids are strings in JSON.
    pub(crate) string_ids: bool,
    pub(crate) plugin: &'static str,
    pub(crate) notice: Notice,
}

impl ClientMessage {
    /// The message as it is written: one line of JSON.
    pub fn text(&self) -> String {
        match &self.0 {
            Form::Own(value) => value.to_string(),
            Form::Shared(addressed) => addressed.text(),
        }
    }

    /// The message as a value.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Own(value) => value,
            Form::Shared(addressed) => addressed.value(),
        }
    }

    /// Whether it is an event that answers a request.
    pub(crate) fn is_answer(&self) -> bool {
        match &self.0 {
            Form::Own(value) => value.get("transaction").is_some(),
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

/// Two messages are the same if they are written alike.
impl PartialEq for ClientMessage {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Own(one), Form::Own(other)) => one == other,
            _ => self.text() == other.text(),
        }
    }
}

impl Addressed {
    /// What [`Addressed::value`] is as text, with the notice as it was written for all.
    fn text(&self) -> String {
        /// What is around the notice, without names and ids.
        const AROUND: usize = 160;
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
}
