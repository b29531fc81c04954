//! Reads the members of a JSON object, with the errors that Janus clients know.

use serde_json::{Map, Value};

/// The members of a request. A member that is there but of the wrong type is an error, also where it is optional.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

/// What is wrong with a member; its text is what clients are told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It has to be there.
    #[error("Missing mandatory element ({0})")]
    Missing(String),
    /// It has the wrong type.
    #[error("Invalid element type ({name} should be {wanted})")]
    Type {
        /// The member.
        name: String,
        /// What it should be, with its article.
        wanted: &'static str,
    },
    /// It names a layer that there cannot be.
    #[error("Invalid value ({0} should be 0, 1 or 2)")]
    Layer(String),
}

impl<'a> Fields<'a> {
    /// Whether the member is there.
    pub fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A string.
    pub fn string(self, name: &str) -> Result<Option<&'a str>, FieldError> {
        self.read(name, "a string", Value::as_str)
    }

    /// A string that has to be there.
    pub fn required_string(self, name: &str) -> Result<&'a str, FieldError> {
        self.string(name)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }

    /// An object that has to be there.
    pub fn required_object(self, name: &str) -> Result<&'a Map<String, Value>, FieldError> {
        self.read(name, "an object", Value::as_object)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }

    /// A boolean.
    pub fn boolean(self, name: &str) -> Result<Option<bool>, FieldError> {
        self.read(name, "a boolean", Value::as_bool)
    }

    /// An integer of 0 or more.
    pub fn positive(self, name: &str) -> Result<Option<u64>, FieldError> {
        self.read(name, "a positive integer", Value::as_u64)
    }

    /// An integer.
    pub fn integer(self, name: &str) -> Result<Option<i64>, FieldError> {
        self.read(name, "an integer", Value::as_i64)
    }

    /// A number, whole or not.
    pub fn number(self, name: &str) -> Result<Option<f64>, FieldError> {
        self.read(name, "a number", Value::as_f64)
    }

    /// A simulcast, spatial or temporal layer: 0, 1 or 2.
    pub fn layer(self, name: &str) -> Result<Option<u8>, FieldError> {
        match self.positive(name)? {
            None => Ok(None),
            Some(layer @ 0..=2) => Ok(Some(layer as u8)),
            Some(_) => Err(FieldError::Layer(name.to_owned())),
        }
    }

    fn read<T>(
        self,
        name: &str,
        wanted: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let wrong = || FieldError::Type {
            name: name.to_owned(),
            wanted,
        };
        convert(value).map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_is_wrong_as_clients_know_it() {
        let object = json!({ "text": 1, "flag": "yes", "count": -1, "real": 1.5, "layer": 3 });
        let fields = Fields(object.as_object().unwrap());
        let text = |error: FieldError| error.to_string();
        assert_eq!(
            text(fields.required_string("none").unwrap_err()),
            "Missing mandatory element (none)"
        );
        assert_eq!(
            text(fields.string("text").unwrap_err()),
            "Invalid element type (text should be a string)"
        );
        assert_eq!(
            text(fields.boolean("flag").unwrap_err()),
            "Invalid element type (flag should be a boolean)"
        );
        assert_eq!(
            text(fields.positive("count").unwrap_err()),
            "Invalid element type (count should be a positive integer)"
        );
        assert_eq!(
            text(fields.integer("real").unwrap_err()),
            "Invalid element type (real should be an integer)"
        );
        assert_eq!(
            text(fields.layer("layer").unwrap_err()),
            "Invalid value (layer should be 0, 1 or 2)"
        );
        assert_eq!(
            text(fields.number("flag").unwrap_err()),
            "Invalid element type (flag should be a number)"
        );
        assert_eq!(fields.number("real"), Ok(Some(1.5)));
        assert_eq!(fields.number("count"), Ok(Some(-1.0)));
        assert_eq!(fields.positive("none"), Ok(None));
        assert_eq!(fields.integer("count"), Ok(Some(-1)));
    }
}
