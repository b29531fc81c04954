//! The header fields that requests add to SIP messages, and those that clients want to see.

use portunus_core::{DRAIN_RETRY_SECONDS, FieldError, Fields};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The maximum size of all header fields of a request, in bytes.
const MOST: usize = 2_048;

/// The maximum number of prefixes of a handle, and the maximum length of one.
const MAX_PREFIXES: usize = 64;
const MAX_PREFIX: usize = 256;

/// The members of a request with header fields only.
#[derive(Deserialize)]
struct Headers {
    #[serde(default, deserialize_with = "member")]
    headers: Vec<(String, String)>,
}

/// Reads the member `headers` of a request with no others.
pub(crate) fn read(fields: Fields<'_>) -> Result<Vec<(String, String)>, FieldError> {
    Ok(fields.read::<Headers>()?.headers)
}

/// Reads a member with header fields: names and values. Drops values that are not text, names that
/// are no tokens, values with line ends, and everything beyond the limit.
pub(crate) fn member<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(String, String)>, D::Error> {
    Map::deserialize(from).map(|map| fit(&map))
}

fn fit(map: &Map<String, Value>) -> Vec<(String, String)> {
    let mut left = MOST;
    let mut headers = Vec::new();
    for (name, value) in map {
        let Some(value) = value.as_str() else {
            continue;
        };
        let breaks = |text: &str| text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        if !is_token(name) || breaks(value) {
            continue;
        }
        let Some(rest) = left.checked_sub(name.len() + value.len() + 4) else {
            continue;
        };
        left = rest;
        headers.push((name.clone(), value.to_owned()));
    }
    headers
}

/// Retry-After of a draining server (RFC 3261 section 20.33).
pub(crate) fn retry_after_drain() -> (String, String) {
    ("Retry-After".to_owned(), DRAIN_RETRY_SECONDS.to_string())
}

/// Whether the text is a `token` (RFC 3261 section 25.1).
fn is_token(name: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_of_token)
}

/// The prefixes of names of header fields that a handle wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prefixes(Vec<String>);

impl Prefixes {
    /// Adds the prefixes of a request.
    pub(crate) fn add(&mut self, prefixes: &[&str]) {
        for prefix in prefixes {
            let prefix = prefix.to_ascii_lowercase();
            let is_bounded = self.0.len() < MAX_PREFIXES && prefix.len() <= MAX_PREFIX;
            if is_bounded && !self.0.contains(&prefix) {
                self.0.push(prefix);
            }
        }
    }

    /// Returns the matching header fields, or `None` without prefixes.
    pub(crate) fn pick<'a>(
        &self,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let wanted = |name: &str| {
            let name = name.to_ascii_lowercase();
            self.0
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
        };
        let picked: Map<String, Value> = headers
            .filter(|(name, _)| wanted(name))
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        Some(Value::Object(picked))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::json;

    use super::*;

    fn read_of(headers: Value) -> Vec<(String, String)> {
        let members = json!({ "headers": headers });
        read(Fields(members.as_object().unwrap())).unwrap()
    }

    #[test]
    fn what_would_break_a_message_is_left_out() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = read_of(json!({
            "X-Room": "7", "X-Number": 7, "X-Break": "a\r\nVia: x", "Bad\nName": "x", "": "x", "a:b": "x", "P-One": "",
        }));
        assert_eq!(read, [pair("X-Room", "7"), pair("P-One", "")]);
    }

    #[test]
    fn headers_are_bounded_together() {
        let long = "x".repeat(1_500);
        let read = read_of(json!({ "X-A": long, "X-B": long, "X-C": "short" }));
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["X-A", "X-C"]);
    }

    #[test]
    fn a_map_is_asked_for() {
        let members = json!({ "headers": ["X-A"] });
        let error = read(Fields(members.as_object().unwrap())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Invalid element type (headers should be an object)"
        );
    }

    #[test]
    fn prefixes_are_of_any_case_and_add_up() {
        let message = [
            ("X-Room", "7"),
            ("x-who", "me"),
            ("P-Asserted-Identity", "a"),
            ("Via", "v"),
        ];
        let mut prefixes = Prefixes::default();
        assert_eq!(prefixes.pick(message.into_iter()), None);
        prefixes.add(&["x-"]);
        assert_eq!(
            prefixes.pick(message.into_iter()),
            Some(json!({ "X-Room": "7", "x-who": "me" }))
        );
        prefixes.add(&["P-ASSERTED", "x-"]);
        assert_eq!(
            prefixes.pick(message.into_iter()),
            Some(json!({ "X-Room": "7", "x-who": "me", "P-Asserted-Identity": "a" }))
        );
        assert_eq!(prefixes.pick([("Via", "v")].into_iter()), Some(json!({})));
    }
}
