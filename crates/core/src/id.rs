//! The ids of sessions and handles, and their form in JSON.

use std::fmt;

use rand::Rng;
use serde_json::Value;

/// The largest integer that JavaScript represents exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = concat!("The id of ", $what, "; never 0.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns an id that JavaScript can represent and that is not `taken`.
            pub(crate) fn random(taken: impl Fn(Self) -> bool) -> Self {
                loop {
                    let id = Self(rand::rng().random_range(1..=MAX_SAFE_INTEGER));
                    if !taken(id) {
                        return id;
                    }
                }
            }

            /// Returns the id in JSON: a number, or a string if ids are strings (`string_ids`).
            pub fn to_json(self, string_ids: bool) -> Value {
                if string_ids {
                    Value::from(self.0.to_string())
                } else {
                    Value::from(self.0)
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(SessionId, "a session");
id!(HandleId, "a handle");

/// Reads an id. A missing id or a wrong type counts as 0, as in Janus.
pub(crate) fn read(value: Option<&Value>, string_ids: bool) -> u64 {
    match value {
        Some(Value::Number(number)) => number.as_u64().unwrap_or(0),
        Some(Value::String(text)) if string_ids => text.parse().unwrap_or(0),
        _ => 0,
    }
}
