//! Access tokens of LiveKit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use crate::client::ClientError;

/// The lifetime of a token, longer than any run.
const LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// An API key with its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiKey {
    /// The key.
    pub(crate) key: String,
    /// The secret, which signs tokens.
    pub(crate) secret: String,
}

/// The rights of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grants {
    Publish,
    Subscribe,
    Both,
}

impl ApiKey {
    /// Returns a token that lets `identity` join `room`.
    pub(crate) fn token(
        &self,
        room: &str,
        identity: &str,
        grants: Grants,
    ) -> Result<String, ClientError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let claims = json!({
            "iss": self.key,
            "sub": identity,
            "nbf": now.as_secs(),
            "exp": (now + LIFETIME).as_secs(),
            "video": {
                "roomJoin": true,
                "room": room,
                "canPublish": grants != Grants::Subscribe,
                "canSubscribe": grants != Grants::Publish,
            },
        });
        let key = EncodingKey::from_secret(self.secret.as_bytes());
        encode(&Header::new(Algorithm::HS256), &claims, &key)
            .map_err(|error| ClientError::Token(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use jsonwebtoken::{DecodingKey, Validation, decode};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_token_names_room_and_identity_and_is_signed_by_the_secret() {
        let key = ApiKey {
            key: "devkey".to_owned(),
            secret: "secret".to_owned(),
        };
        let token = key.token("r", "p1", Grants::Publish).unwrap();
        let read = |secret: &[u8]| {
            let key = DecodingKey::from_secret(secret);
            decode::<Value>(&token, &key, &Validation::new(Algorithm::HS256))
        };
        let claims = read(b"secret").unwrap().claims;
        let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str);
        let read_back = [text("/iss"), text("/sub"), text("/video/room")];
        assert_eq!(read_back, [Some("devkey"), Some("p1"), Some("r")]);
        assert_eq!(claims.pointer("/video/roomJoin"), Some(&true.into()));
        assert_eq!(claims.pointer("/video/canPublish"), Some(&true.into()));
        assert_eq!(claims.pointer("/video/canSubscribe"), Some(&false.into()));
        assert!(read(b"other").is_err());
    }
}
