//! The grants of access tokens.

use std::collections::{BTreeMap, HashMap};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use portunus_config::Secret;
use serde::Deserialize;

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

impl Claims {
    /// Returns the identity.
    pub fn identity(&self) -> &str {
        match self.sub.as_str() {
            "" => &self.jti,
            sub => sub,
        }
    }
}
