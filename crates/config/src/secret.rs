//! Confidential texts.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A password or the like: a text, which `{:?}` does not show, so that no log contains it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text itself.
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Login {
        password: Secret,
        #[serde(with = "crate::optional")]
        token: Option<Secret>,
    }

    #[test]
    fn it_is_text_in_the_file_and_no_log_has_it() {
        let text = "password = \"s3cret\"\ntoken = \"t0ken\"\n";
        let login: Login = toml::from_str(text).unwrap();
        assert_eq!(
            (&*login.password, login.token.as_deref()),
            ("s3cret", Some("t0ken"))
        );
        assert_eq!(toml::to_string(&login).unwrap(), text);
        assert_eq!(
            format!("{login:?}"),
            "Login { password: …, token: Some(…) }"
        );
    }
}
