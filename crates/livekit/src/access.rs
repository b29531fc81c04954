//! The grants of access tokens.

use std::collections::{BTreeMap, HashMap};

use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, encode, get_current_timestamp,
};
use portunus_config::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The clock difference that is tolerated, in seconds.
const LEEWAY: u64 = 60;

/// The claims of an access token.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// The API key.
    pub iss: String,
    /// The identity.
    pub sub: String,
    /// The identity, if `sub` is empty.
    pub jti: String,
    /// The name for people.
    pub name: String,
    /// The metadata.
    pub metadata: String,
    /// The attributes.
    pub attributes: HashMap<String, String>,
    /// The kind of participant.
    pub kind: String,
    /// The grants in rooms.
    pub video: Option<VideoGrant>,
}

/// The grants in rooms.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VideoGrant {
    /// Whether the room may be joined.
    pub room_join: bool,
    /// The room.
    pub room: String,
    /// Whether rooms may be made.
    pub room_create: bool,
    /// Whether it may publish. `None` means yes.
    pub can_publish: Option<bool>,
    /// Whether it may subscribe. `None` means yes.
    pub can_subscribe: Option<bool>,
    /// Whether it may publish data. `None` means as media.
    pub can_publish_data: Option<bool>,
    /// The sources that it may publish. Empty means all.
    pub can_publish_sources: Vec<String>,
    /// Whether it may change its own metadata.
    pub can_update_own_metadata: Option<bool>,
    /// Whether the others do not see it.
    pub hidden: bool,
    /// Whether it records the room.
    pub recorder: bool,
    /// Whether it is an agent.
    pub agent: bool,
    /// Whether it gets metrics.
    pub can_subscribe_metrics: Option<bool>,
}

/// The reason why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no token.
    #[error("permissions denied")]
    Missing,
    /// The token's key is unknown.
    #[error("invalid API key: {0}")]
    Key(String),
    /// The token is no token, has expired, or has a wrong signature.
    #[error("invalid token: {0}")]
    Token(String),
}

/// Returns the claims of a token that one of the `keys` has signed.
pub fn verify(keys: &BTreeMap<String, Secret>, token: &str) -> Result<Claims, AccessError> {
    let wrong = |error: jsonwebtoken::errors::Error| AccessError::Token(error.to_string());
    let unverified: Claims = jsonwebtoken::dangerous::insecure_decode(token)
        .map_err(wrong)?
        .claims;
    let key = &unverified.iss;
    let secret = keys.get(key).ok_or_else(|| AccessError::Key(key.clone()))?;
    let mut validation = Validation::new(Algorithm::HS256);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp"]);
    validation.validate_aud = false;
    let key = DecodingKey::from_secret(secret.as_bytes());
    let verified = jsonwebtoken::decode(token, &key, &validation).map_err(wrong)?;
    Ok(verified.claims)
}

/// Makes tokens with the grants of another one, so that a client can reconnect later.
#[derive(Debug, Clone)]
pub struct Renewal {
    claims: Map<String, Value>,
    secret: Secret,
}

/// The least lifetime of a renewed token, in seconds.
const RENEWED: u64 = 600;

impl Renewal {
    /// Returns the renewal of a verified token.
    pub fn of(keys: &BTreeMap<String, Secret>, token: &str) -> Option<Self> {
        let read = jsonwebtoken::dangerous::insecure_decode::<Map<String, Value>>(token);
        let claims = read.ok()?.claims;
        let secret = keys.get(claims.get("iss")?.as_str()?)?.clone();
        Some(Renewal { claims, secret })
    }

    /// Returns a token that is valid for ten minutes at least, and no shorter than the original.
    pub fn renew(&self) -> Option<String> {
        let mut claims = self.claims.clone();
        let now = get_current_timestamp();
        let before = claims
            .get("exp")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let expiry = before.max(now.saturating_add(RENEWED));
        claims.insert("exp".to_owned(), expiry.into());
        claims.insert("nbf".to_owned(), now.into());
        let key = EncodingKey::from_secret(self.secret.as_bytes());
        encode(&Header::new(Algorithm::HS256), &claims, &key).ok()
    }
}

impl Claims {
    /// Returns the identity.
    pub fn identity(&self) -> &str {
        match self.sub.as_str() {
            "" => &self.jti,
            sub => sub,
        }
    }
}
