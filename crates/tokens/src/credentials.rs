//! The credentials of a request.

use serde_json::{Map, Value};

/// The secret and the token that a request carries.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The API secret.
    pub api_secret: Option<&'a str>,
    /// A token.
    pub token: Option<&'a str>,
}

impl<'a> Credentials<'a> {
    /// Reads the credentials in the members of a request.
    pub fn of(members: &'a Map<String, Value>) -> Self {
        let text = |name| members.get(name).and_then(Value::as_str);
        Credentials {
            api_secret: text("apisecret"),
            token: text("token"),
        }
    }
}
