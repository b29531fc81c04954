//! The whitespace of JSON, as configurations name it.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// The whitespace of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonForm {
    /// Lines, indented by three spaces.
    Indented,
    /// One line, with a space after each comma and colon.
    Plain,
    /// No whitespace.
    #[default]
    Compact,
}

impl JsonForm {
    /// Appends a value.
    pub fn write(self, to: impl io::Write, value: &impl Serialize) {
        let written = match self {
            JsonForm::Indented => write(to, PrettyFormatter::with_indent(b"   "), value),
            JsonForm::Plain => write(to, PlainFormatter, value),
            JsonForm::Compact => write(to, CompactFormatter, value),
        };
        // Events are always valid JSON, and writing to memory cannot fail.
        debug_assert!(written.is_ok(), "{written:?}");
    }

    /// Returns a value as text.
    pub fn text(self, value: &impl Serialize) -> String {
        let mut to = Vec::new();
        self.write(&mut to, value);
        // JSON is UTF-8.
        String::from_utf8(to).unwrap_or_default()
    }
}

fn write(
    to: impl io::Write,
    formatter: impl Formatter,
    value: &impl Serialize,
) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(to, formatter))
}

struct PlainFormatter;

impl PlainFormatter {
    fn separate<W: ?Sized + io::Write>(to: &mut W, first: bool) -> io::Result<()> {
        match first {
            true => Ok(()),
            false => to.write_all(b", "),
        }
    }
}

impl Formatter for PlainFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        Self::separate(to, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        Self::separate(to, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_differ_in_white_space_only() {
        let value = json!({ "a": [1, 2], "b": {}, "c": "x, y: z" });
        let written = |form: JsonForm| {
            let text = form.text(&value);
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read, value);
            text
        };
        assert_eq!(
            written(JsonForm::Compact),
            r#"{"a":[1,2],"b":{},"c":"x, y: z"}"#
        );
        assert_eq!(
            written(JsonForm::Plain),
            r#"{"a": [1, 2], "b": {}, "c": "x, y: z"}"#
        );
        let indented =
            "{\n   \"a\": [\n      1,\n      2\n   ],\n   \"b\": {},\n   \"c\": \"x, y: z\"\n}";
        assert_eq!(written(JsonForm::Indented), indented);
    }
}
