//! Reads the members of a JSON object, with the errors of Janus.

mod members;
pub mod with;

use std::borrow::Cow;

use portunus_record::Format;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use members::Members;

/// The members of a request. A member of a wrong type is an error even if it is optional.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

/// A fault of a member. Clients get its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The member is missing.
    #[error("Missing mandatory element ({0})")]
    Missing(String),
    /// The member has a wrong type.
    #[error("Invalid element type ({name} should be {wanted})")]
    Type {
        /// The member.
        name: String,
        /// The wanted type, with its article.
        wanted: Cow<'static, str>,
    },
    /// The member has the right type and an invalid value.
    #[error("Invalid value ({name} {reason})")]
    Value {
        /// The member.
        name: String,
        /// The wanted values, as in "should be audio or video".
        reason: String,
    },
}

impl FieldError {
    /// The error of a member with a wrong type. `wanted` has its article.
    pub fn wrong_type(name: &str, wanted: impl Into<Cow<'static, str>>) -> Self {
        FieldError::Type {
            name: name.to_owned(),
            wanted: wanted.into(),
        }
    }

    /// The error of a member with an invalid value.
    pub fn value(name: &str, reason: impl Into<String>) -> Self {
        FieldError::Value {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The longest list of objects, since each costs work.
const MAX_OBJECTS: usize = 2_000;

impl<'a> Fields<'a> {
    /// Reads the members of the struct `T`, in the order of their declaration. The error is that of
    /// the first field that is missing or wrong. Other members are ignored.
    ///
    /// An absent `Option` is `None`. A field with `#[serde(default)]` may be absent. A field that
    /// is a struct takes its own fields from the same object. serde's aliases and `flatten` are not
    /// supported.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, FieldError> {
        Members::new(self, false).read()
    }

    /// Reads one member by serde, as [`Fields::read`] reads a field. Returns `None` if the member
    /// is absent.
    pub fn member<T: Deserialize<'a>>(self, name: &str) -> Result<Option<T>, FieldError> {
        Members::new(self, false).member(name)
    }

    /// Reads one required member.
    pub fn required<T: Deserialize<'a>>(self, name: &str) -> Result<T, FieldError> {
        self.member(name)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }

    /// Whether the member exists.
    pub fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Reads a string.
    pub fn string(self, name: &str) -> Result<Option<&'a str>, FieldError> {
        self.member(name)
    }

    /// Reads a required string.
    pub fn required_string(self, name: &str) -> Result<&'a str, FieldError> {
        self.required(name)
    }

    /// Reads a string. An empty string counts as absent.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, FieldError> {
        let text = self.string(name)?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// Reads `record_format`, the format of recordings.
    pub fn record_format(self) -> Result<Option<Format>, FieldError> {
        let format = |value: &Value| value.as_str()?.parse().ok();
        self.convert("record_format", with::FORMATS, format)
    }

    /// Reads an object.
    pub fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, FieldError> {
        self.convert(name, "an object", Value::as_object)
    }

    /// Reads a required object.
    pub fn required_object(self, name: &str) -> Result<&'a Map<String, Value>, FieldError> {
        self.object(name)?
            .ok_or_else(|| FieldError::Missing(name.to_owned()))
    }

    /// Reads a list of at most 2,000 objects.
    pub fn objects(self, name: &str) -> Result<Option<Vec<Fields<'a>>>, FieldError> {
        let Some(list) = self.convert(name, "an array", Value::as_array)? else {
            return Ok(None);
        };
        if list.len() > MAX_OBJECTS {
            let wanted = "an array of at most 2000 objects";
            return Err(FieldError::wrong_type(name, wanted));
        }
        let objects = list.iter().map(|value| value.as_object().map(Fields));
        let objects: Option<Vec<_>> = objects.collect();
        let wrong = || FieldError::wrong_type(name, "an array of objects");
        objects.map(Some).ok_or_else(wrong)
    }

    /// Reads a boolean.
    pub fn boolean(self, name: &str) -> Result<Option<bool>, FieldError> {
        self.member(name)
    }

    /// Reads an integer of 0 or more.
    pub fn positive(self, name: &str) -> Result<Option<u64>, FieldError> {
        self.member(name)
    }

    fn convert<T>(
        self,
        name: &str,
        wanted: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        convert(value)
            .map(Some)
            .ok_or_else(|| FieldError::wrong_type(name, wanted))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_is_wrong_as_clients_know_it() {
        let object = json!({ "text": 1, "flag": "yes", "count": -1, "real": 1.5 });
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
            text(fields.member::<i64>("real").unwrap_err()),
            "Invalid element type (real should be an integer)"
        );
        assert_eq!(
            text(fields.member::<f64>("flag").unwrap_err()),
            "Invalid element type (flag should be a number)"
        );
        assert_eq!(fields.member::<f64>("real"), Ok(Some(1.5)));
        assert_eq!(fields.member::<f64>("count"), Ok(Some(-1.0)));
        assert_eq!(fields.positive("none"), Ok(None));
        assert_eq!(fields.member("count"), Ok(Some(-1_i64)));
    }

    #[test]
    fn lists_say_what_should_be_in_them() {
        let many: Vec<_> = (0..=MAX_OBJECTS).map(|_| json!({})).collect();
        let object = json!({
            "empty": [], "texts": ["a", "b"], "mixed": ["a", 1], "objects": [{ "a": 1 }],
            "many": many, "none": null, "blank": "",
        });
        let fields = Fields(object.as_object().unwrap());
        assert_eq!(fields.member("texts"), Ok(Some(vec!["a", "b"])));
        assert_eq!(fields.member::<Vec<&str>>("absent"), Ok(None));
        assert_eq!(fields.text("blank"), Ok(None));
        assert_eq!(fields.objects("objects").unwrap().unwrap().len(), 1);
        assert!(fields.objects("empty").unwrap().unwrap().is_empty());
        let text = |error: FieldError| error.to_string();
        assert_eq!(
            text(fields.member::<Vec<&str>>("mixed").unwrap_err()),
            "Invalid element type (mixed should be an array of strings)"
        );
        assert_eq!(
            text(fields.objects("none").unwrap_err()),
            "Invalid element type (none should be an array)"
        );
        assert_eq!(
            text(fields.objects("many").unwrap_err()),
            "Invalid element type (many should be an array of at most 2000 objects)"
        );
        assert_eq!(
            text(fields.object("texts").unwrap_err()),
            "Invalid element type (texts should be an object)"
        );
    }
}
