//! `[jwt]`: the JSON Web Tokens that are accepted.

use std::path::PathBuf;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Secret, Section};
use serde::{Deserialize, Serialize};

use super::JwtVerifier;
use super::keys::MIN_SECRET;

/// The JSON Web Tokens that are accepted. Without a key none is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// The secret of tokens signed with HS256.
    #[serde(with = "portunus_config::optional")]
    pub secret: Option<Secret>,
    /// A file with such a secret.
    #[serde(with = "portunus_config::optional")]
    pub secret_file: Option<PathBuf>,
    /// A PEM file with the public key of tokens signed with RS256, ES256, ES384 or EdDSA.
    #[serde(with = "portunus_config::optional")]
    pub key_file: Option<PathBuf>,
    /// A file with a set of keys (RFC 7517). It is read again when it changes.
    #[serde(with = "portunus_config::optional")]
    pub jwks_file: Option<PathBuf>,
    /// The required issuer of a token (`iss`).
    #[serde(with = "portunus_config::optional")]
    pub issuer: Option<String>,
    /// The required audience of a token (`aud`).
    #[serde(with = "portunus_config::optional")]
    pub audience: Option<String>,
    /// Whether a token must have an expiry (`exp`).
    pub require_expiry: bool,
    /// The largest difference between the clocks of the issuer and the server.
    #[serde(with = "portunus_config::seconds")]
    pub leeway: Duration,
}

impl Default for JwtConfig {
    fn default() -> Self {
        JwtConfig {
            secret: None,
            secret_file: None,
            key_file: None,
            jwks_file: None,
            issuer: None,
            audience: None,
            require_expiry: true,
            leeway: Duration::from_secs(30),
        }
    }
}

impl Configuration for JwtConfig {
    const LIVE: &'static [&'static str] = &[
        "secret",
        "secret_file",
        "key_file",
        "jwks_file",
        "issuer",
        "audience",
        "require_expiry",
        "leeway",
    ];

    fn read(section: &mut Section<'_>) -> Self {
        let jwt: Self = section.keys();
        let short = jwt.secret.as_ref().is_some_and(|it| it.len() < MIN_SECRET);
        let text = "expected 32 bytes at least (RFC 7518 section 3.2)";
        section.require(&["secret"], !short, text);
        section.range("leeway", jwt.leeway.as_secs(), 0..=600);
        jwt
    }

    fn probe(&self, probe: &mut Probe) {
        let none = JwtConfig::default;
        let (secret_file, key_file) = (self.secret_file.clone(), self.key_file.clone());
        let jwks_file = self.jwks_file.clone();
        for (key, alone) in [
            (
                "secret_file",
                JwtConfig {
                    secret_file,
                    ..none()
                },
            ),
            ("key_file", JwtConfig { key_file, ..none() }),
            (
                "jwks_file",
                JwtConfig {
                    jwks_file,
                    ..none()
                },
            ),
        ] {
            if let Err(error) = JwtVerifier::load(alone) {
                probe.error(key, error);
            }
        }
    }
}
