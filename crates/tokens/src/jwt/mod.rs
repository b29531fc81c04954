//! JSON Web Tokens (RFC 7519), signed with the keys of the configuration (RFC 7515).

mod claims;
mod config;
mod jwks_file;
mod keys;
mod recent;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::sha::sha256;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::TokenFault;
use claims::Rules;
use jwks_file::{JwksFile, read_file};
use keys::Key;
use recent::Recent;

pub(crate) use claims::Claims;
pub use config::JwtConfig;
pub use jwks_file::KeyFileError;
pub use keys::KeyError;
pub(crate) use recent::Digest;

/// How many valid tokens are remembered.
const KNOWN_GOOD: usize = 4_096;

/// How many invalid tokens are remembered, separately, so that invented tokens do not push out
/// valid ones.
const KNOWN_BAD: usize = 512;

/// Verifies JSON Web Tokens; cheap to clone. The default has no keys, and accepts none.
#[derive(Debug, Clone, Default)]
pub struct JwtVerifier {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    rules: Rules,
    /// The keys that do not change.
    keys: Vec<Key>,
    jwks: Option<JwksFile>,
    state: Mutex<State>,
    reads: AtomicU64,
    failures: AtomicU64,
}

/// How often the file with keys was read again since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeyRefreshes {
    pub(crate) reads: u64,
    /// How often that gave no keys.
    pub(crate) failures: u64,
}

#[derive(Debug)]
struct State {
    /// The keys of the file.
    of_file: Arc<Vec<Key>>,
    good: Recent<Arc<Claims>>,
    bad: Recent<TokenFault>,
}

/// An error in the configured keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// A file has no usable key.
    #[error("cannot read the keys of tokens (section [jwt]): {0}")]
    File(#[from] KeyFileError),
    /// The secret is not usable.
    #[error("jwt.secret: {0}")]
    Secret(KeyError),
}

/// The members of a token's header that are used.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that the verifier must understand (RFC 7515 section 4.1.11). None is supported.
    crit: Option<serde_json::Value>,
}

impl JwtVerifier {
    /// Reads the configured keys.
    pub fn load(config: JwtConfig) -> Result<Self, JwtError> {
        let mut keys = Vec::new();
        if let Some(secret) = &config.secret {
            keys.push(Key::secret(secret.as_bytes()).map_err(JwtError::Secret)?);
        }
        if let Some(file) = &config.secret_file {
            keys.push(read_file(file, |secret| Key::secret(secret.trim_ascii()))?);
        }
        if let Some(file) = &config.key_file {
            keys.push(read_file(file, Key::public)?);
        }
        let (jwks, of_file) = config.jwks_file.map(JwksFile::open).transpose()?.unzip();
        if keys.is_empty() && jwks.is_none() {
            return Ok(JwtVerifier::default());
        }
        let state = State {
            of_file: Arc::new(of_file.unwrap_or_default()),
            good: Recent::new(KNOWN_GOOD),
            bad: Recent::new(KNOWN_BAD),
        };
        Ok(JwtVerifier {
            inner: Some(Arc::new(Inner {
                rules: Rules {
                    issuer: config.issuer,
                    audience: config.audience,
                    require_expiry: config.require_expiry,
                    leeway: config.leeway.as_secs(),
                },
                keys,
                jwks,
                state: Mutex::new(state),
                reads: AtomicU64::new(0),
                failures: AtomicU64::new(0),
            })),
        })
    }

    /// Whether it has keys.
    pub(crate) fn is_used(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether its keys can change.
    pub(crate) fn has_file(&self) -> bool {
        let inner = self.inner.as_ref();
        inner.is_some_and(|inner| inner.jwks.is_some())
    }

    /// Whether `token` looks like a JSON Web Token.
    pub(crate) fn is_like(token: &str) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        token.bytes().filter(|byte| *byte == b'.').count() == 2 && token.bytes().all(is_part)
    }

    /// Whether `token` was verified lately, or cannot be.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.inner.as_ref().is_none_or(|inner| {
            let digest = sha256(token.as_bytes());
            let mut state = inner.state();
            state.good.get(&digest).is_some() || state.bad.get(&digest).is_some()
        })
    }

    /// Verifies a token, and returns its claims if it is valid at `now`, in seconds since 1970.
    pub(crate) fn verify(&self, token: &str, now: u64) -> Result<Arc<Claims>, TokenFault> {
        let inner = self.inner.as_ref().ok_or(TokenFault::Unknown)?;
        let claims = inner.claims(token)?;
        claims.hold(now, inner.rules.leeway)?;
        Ok(claims)
    }

    /// Reads the file with keys again if it has changed. Keeps the former keys if the file has
    /// none.
    pub(crate) fn refresh(&self) {
        let Some((inner, file)) = self
            .inner
            .as_ref()
            .and_then(|inner| Some((inner, inner.jwks.as_ref()?)))
        else {
            return;
        };
        match file.changed() {
            None => {}
            Some(Ok(keys)) => {
                tracing::info!(keys = keys.len(), "read {} again", file.path().display());
                inner.reads.fetch_add(1, Ordering::Relaxed);
                let mut state = inner.state();
                state.of_file = Arc::new(keys);
                state.good.clear();
                state.bad.clear();
            }
            Some(Err(error)) => {
                inner.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("the keys of tokens stay as they were: {error}");
            }
        }
    }

    /// Adds the counts of the verifier that this one replaces.
    pub(crate) fn continue_counts(&self, former: &JwtVerifier) {
        let KeyRefreshes { reads, failures } = former.refreshes();
        if let Some(inner) = &self.inner {
            inner.reads.fetch_add(reads, Ordering::Relaxed);
            inner.failures.fetch_add(failures, Ordering::Relaxed);
        }
    }

    /// Returns how often the file with keys was read again.
    pub(crate) fn refreshes(&self) -> KeyRefreshes {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = |inner: &Arc<Inner>| KeyRefreshes {
            reads: read(&inner.reads),
            failures: read(&inner.failures),
        };
        self.inner.as_ref().map(counts).unwrap_or_default()
    }
}

impl Inner {
    /// Returns the claims of a token with a valid signature that keeps the rules. Does not check
    /// its times.
    fn claims(&self, token: &str) -> Result<Arc<Claims>, TokenFault> {
        let digest = sha256(token.as_bytes());
        let of_file = {
            let mut state = self.state();
            if let Some(claims) = state.good.get(&digest) {
                return Ok(claims);
            }
            if let Some(fault) = state.bad.get(&digest) {
                return Err(fault);
            }
            state.of_file.clone()
        };
        // Without the lock, so that others do not wait for the verification.
        let outcome = self.examine(token, &of_file).map(Arc::new);
        let mut state = self.state();
        if Arc::ptr_eq(&state.of_file, &of_file) {
            match &outcome {
                Ok(claims) => state.good.insert(digest, claims.clone()),
                Err(fault) => state.bad.insert(digest, *fault),
            }
        }
        outcome
    }

    fn examine(&self, token: &str, of_file: &[Key]) -> Result<Claims, TokenFault> {
        let parts = token.rsplit_once('.').and_then(|(message, signature)| {
            let (header, claims) = message.split_once('.')?;
            Some((message, header, claims, signature))
        });
        let malformed = TokenFault::Malformed;
        let (message, header, claims, signature) =
            parts.ok_or(malformed("it is not HEADER.CLAIMS.SIGNATURE"))?;
        let header: Header = read_part(header).ok_or(malformed("its header cannot be read"))?;
        if header.crit.is_some() {
            return Err(malformed("its header has crit"));
        }
        let keys = self.keys.iter().chain(of_file);
        keys::verify(keys, &header.alg, header.kid.as_deref(), message, signature)?;
        let claims: serde_json::Map<_, _> =
            read_part(claims).ok_or(malformed("its claims are no JSON object"))?;
        let claims = Claims::read(&claims)?;
        claims.keep(&self.rules)?;
        Ok(claims)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes a part of a token: JSON in base64 for URLs, without padding.
fn read_part<T: DeserializeOwned>(part: &str) -> Option<T> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests;
