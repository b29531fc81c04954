//! Expiring credentials (draft-uberti-behave-turn-rest-00). They are made and checked with a
//! secret, so none are stored.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The most bytes of a user name. RFC 8489 allows 508.
const MAX_USERNAME: usize = 128;

/// The credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The expiry in seconds since 1970, a colon, and a name.
    pub username: String,
    /// The HMAC-SHA1 of the user name in Base64.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Login");
        shown
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Makes and checks credentials.
pub struct Keychain {
    key: hmac::Key,
}

impl std::fmt::Debug for Keychain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keychain").finish_non_exhaustive()
    }
}

impl Keychain {
    /// Makes a keychain. Servers with the same secret have the same credentials.
    pub fn new(secret: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
        Keychain { key }
    }

    /// Makes credentials of `name` that expire at `expiry`, in seconds since 1970.
    pub fn login(&self, name: &str, expiry: u64) -> Login {
        let username = format!("{expiry}:{name}");
        let password = self.password(&username);
        Login { username, password }
    }

    /// Returns the password of a user name.
    pub(crate) fn password(&self, username: &str) -> String {
        STANDARD.encode(hmac::sign(&self.key, username.as_bytes()))
    }
}

/// Returns the expiry of a user name, in seconds since 1970. Returns `None` if the name has another
/// form.
pub(crate) fn expiry(username: &str) -> Option<u64> {
    if username.len() > MAX_USERNAME {
        return None;
    }
    let expiry = username.split_once(':').map_or(username, |(it, _)| it);
    let is_number = !expiry.is_empty() && expiry.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| expiry.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_hmac_of_the_user_name() {
        // printf '%s' '1433895918:foo' | openssl dgst -sha1 -hmac north -binary | base64
        let login = Keychain::new(b"north").login("foo", 1_433_895_918);
        assert_eq!(login.username, "1433895918:foo");
        assert_eq!(login.password, PASSWORD);
    }

    const PASSWORD: &str = "0OlFg2/bHqbjlkzHi9Xi1YLEVmE=";

    #[test]
    fn a_user_name_says_when_it_expires() {
        let long = format!("1:{}", "x".repeat(127));
        for (name, expected) in [
            ("1433895918:foo", Some(1_433_895_918)),
            ("7", Some(7)),
            ("7:", Some(7)),
            ("", None),
            (":foo", None),
            ("foo:7", None),
            ("+7:foo", None),
            ("99999999999999999999:foo", None),
            (long.as_str(), None),
        ] {
            assert_eq!(expiry(name), expected, "{name}");
        }
    }

    #[test]
    fn no_log_has_a_password() {
        let login = Keychain::new(b"north").login("foo", 7);
        let shown = format!("{login:?} {:?}", Keychain::new(b"north"));
        assert!(!shown.contains(&login.password) && !shown.contains("north"));
    }
}
