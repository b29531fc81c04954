//! A builder for JSON objects with optional members.

use serde_json::{Map, Value};

/// A JSON object under construction.
#[derive(Debug, Clone, Default)]
pub struct Object(Map<String, Value>);

impl Object {
    /// An empty object.
    pub fn new() -> Self {
        Object::default()
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the members of `members` if it is an object.
    #[must_use]
    pub fn with_all(mut self, members: impl Into<Value>) -> Self {
        if let Value::Object(members) = members.into() {
            self.0.extend(members);
        }
        self
    }
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        object.0
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(object.0)
    }
}
