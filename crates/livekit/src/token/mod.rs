//! Access tokens: JSON Web Tokens, signed by HS256 with the secret of an API key.

mod fault;
mod grants;
mod renewal;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use portunus_config::Secret;
use serde_json::{Map, Value};

pub use fault::{InvalidToken, JoinFault, TokenFault};
pub use grants::{Grants, SipGrant, VideoGrant};
pub use renewal::{PresentClaims, Renewal};

/// The largest difference between the clocks of the issuer and the server, in seconds.
const LEEWAY: u64 = 60;

/// The header of the tokens that the server makes: `{"alg":"HS256","typ":"JWT"}`.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// The secrets of API keys by name; cheap to clone. All clones see the same keys.
#[derive(Clone, Default)]
pub struct Keys {
    secrets: Arc<RwLock<BTreeMap<String, Secret>>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.secrets().keys()).finish()
    }
}

/// A token that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The name of the API key.
    pub key: String,
    /// The claims.
    pub grants: Grants,
    /// The expiry in seconds since 1970.
    pub expires_at: u64,
}

/// The reason why no token can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// There is no such key.
    #[error("there is no such API key")]
    NoKey,
    /// The claims or the signature cannot be made.
    #[error("the token cannot be signed")]
    Unsigned,
}

impl Keys {
    /// Returns the keys with these names and secrets.
    pub fn new(secrets: impl IntoIterator<Item = (String, Secret)>) -> Self {
        Keys {
            secrets: Arc::new(RwLock::new(secrets.into_iter().collect())),
        }
    }

    /// Replaces all keys.
    pub fn replace(&self, secrets: impl IntoIterator<Item = (String, Secret)>) {
        let secrets: BTreeMap<String, Secret> = secrets.into_iter().collect();
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = secrets;
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.secrets().is_empty()
    }

    /// Returns whether there is a key of this name.
    pub fn contains(&self, key: &str) -> bool {
        self.secrets().contains_key(key)
    }

    /// Returns the name of the first key, by which the server signs tokens of its own.
    pub fn first(&self) -> Option<String> {
        self.secrets().keys().next().cloned()
    }

    fn secrets(&self) -> RwLockReadGuard<'_, BTreeMap<String, Secret>> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn secret(&self, key: &str) -> Option<Secret> {
        self.secrets().get(key).cloned()
    }

    /// Verifies a token at `now`, in seconds since 1970.
    pub fn verify(&self, token: &str, now: u64) -> Result<Verified, TokenFault> {
        let parts = Parts::of(token).ok_or(TokenFault::Malformed)?;
        let text = |name| parts.text(name).map(str::to_owned);
        let key = text("iss").ok_or(TokenFault::Malformed)?;
        let subject = text("sub").ok_or(TokenFault::Malformed)?;
        let id = text("jti").ok_or(TokenFault::Malformed)?;
        let secret = self.secret(&key).filter(|_| !key.is_empty());
        let secret = secret.ok_or_else(|| TokenFault::UnknownKey(key.clone()))?;
        let held = parts.hold(&secret, now);
        let (mut grants, expires_at) = held.map_err(|reason| TokenFault::Invalid {
            token: token.into(),
            reason,
        })?;
        grants.identity = if subject.is_empty() { id } else { subject };
        Ok(Verified {
            key,
            grants,
            expires_at,
        })
    }

    /// Makes a token that is valid from `now`, in seconds since 1970.
    pub fn sign(
        &self,
        key: &str,
        grants: &Grants,
        now: u64,
        valid_for: Duration,
    ) -> Result<String, SigningError> {
        let secret = self.secret(key).ok_or(SigningError::NoKey)?;
        let claims = serde_json::to_value(grants).map_err(|_| SigningError::Unsigned)?;
        let Value::Object(mut claims) = claims else {
            return Err(SigningError::Unsigned);
        };
        let mut add = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        add("iss", key.into());
        if !grants.identity.is_empty() {
            add("sub", grants.identity.as_str().into());
        }
        add("nbf", now.into());
        add("exp", now.saturating_add(valid_for.as_secs()).into());
        let claims = URL_SAFE_NO_PAD.encode(Value::Object(claims).to_string());
        let message = format!("{HEADER}.{claims}");
        let secret = EncodingKey::from_secret(secret.as_bytes());
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &secret, Algorithm::HS256);
        let signature = signature.map_err(|_| SigningError::Unsigned)?;
        Ok(format!("{message}.{signature}"))
    }
}

/// Returns the token of a request: that of the header `Authorization`, else that of the query.
/// `None` means that there is no token.
pub fn of_request<'a>(
    authorization: Option<&'a str>,
    access_token: Option<&'a str>,
) -> Result<Option<&'a str>, TokenFault> {
    let token = match authorization.filter(|header| !header.is_empty()) {
        Some(header) => Some(header.strip_prefix("Bearer ").ok_or(TokenFault::NoBearer)?),
        None => access_token,
    };
    Ok(token.filter(|token| !token.is_empty()))
}

/// A token whose signature is not verified yet.
struct Parts<'a> {
    algorithm: String,
    /// The header and the claims, as they are signed.
    message: &'a str,
    signature: &'a str,
    claims: Map<String, Value>,
    /// The expiry in seconds since 1970.
    expires_at: Option<u64>,
    /// The first second of validity.
    valid_from: Option<u64>,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header = read(header)?;
        let claims = without_nulls(Value::Object(read(claims)?));
        let Value::Object(claims) = claims else {
            return None;
        };
        let algorithm = header.get("alg")?.as_str()?.to_owned();
        Some(Parts {
            algorithm,
            message,
            signature,
            expires_at: optional_time(&claims, "exp")?,
            valid_from: optional_time(&claims, "nbf")?,
            claims,
        })
    }

    /// Returns a claim that is a text, empty if it is not there, or `None` if it is no text.
    fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).map_or(Some(""), Value::as_str)
    }

    /// Returns the grants and the expiry of a token that holds at `now`.
    fn hold(self, secret: &str, now: u64) -> Result<(Grants, u64), InvalidToken> {
        if self.algorithm != "HS256" {
            let shown = self.algorithm.chars().take(32).collect();
            return Err(InvalidToken::Algorithm(shown));
        }
        let key = DecodingKey::from_secret(secret.as_bytes());
        let message = self.message.as_bytes();
        let verified =
            jsonwebtoken::crypto::verify(self.signature, message, &key, Algorithm::HS256);
        if !verified.unwrap_or(false) {
            return Err(InvalidToken::Signature);
        }
        let expires_at = self.expires_at.ok_or(InvalidToken::NoExpiry)?;
        if now >= expires_at.saturating_add(LEEWAY) {
            return Err(InvalidToken::Expired);
        }
        if now.saturating_add(LEEWAY) < self.valid_from.unwrap_or_default() {
            return Err(InvalidToken::NotYet);
        }
        let grants = serde_json::from_value(Value::Object(self.claims))
            .map_err(|error| InvalidToken::Claims(error.to_string()))?;
        Ok((grants, expires_at))
    }
}

/// Returns a time in seconds since 1970, if it is there, or `None` if it is no number. Fractions
/// are cut off, and an earlier time is 0.
fn optional_time(claims: &Map<String, Value>, name: &str) -> Option<Option<u64>> {
    let time = |value: &Value| value.as_u64().or_else(|| Some(value.as_f64()? as u64));
    claims
        .get(name)
        .map_or(Some(None), |value| time(value).map(Some))
}

/// Decodes a part of a token: a JSON object in base64 for URLs, without padding.
fn read(part: &str) -> Option<Map<String, Value>> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Leaves out members that are `null`: such count as absent.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                members
                    .map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests;
