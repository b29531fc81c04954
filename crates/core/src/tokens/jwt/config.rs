//! `[jwt]`: which JSON Web Tokens are accepted.

use std::path::PathBuf;
use std::time::Duration;

use portunus_config::{Configuration, Probe, Secret, Section};
use serde::{Deserialize, Serialize};

use super::JwtVerifier;
use super::keys::MIN_SECRET;

/// Which JSON Web Tokens are accepted; without a key, none are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// The secret of tokens that are signed by HS256.
    #[serde(with = "portunus_config::optional")]
    pub secret: Option<Secret>,
    /// A file with such a secret.
    #[serde(with = "portunus_config::optional")]
    pub secret_file: Option<PathBuf>,
    /// A PEM file: the public key of tokens that are signed by RS256, ES256, ES384 or EdDSA.
    #[serde(with = "portunus_config::optional")]
    pub key_file: Option<PathBuf>,
    /// A file with a set of keys (RFC 7517), which is read again when it changes.
    #[serde(with = "portunus_config::optional")]
    pub jwks_file: Option<PathBuf>,
    /// Who has to have issued a token (`iss`).
    #[serde(with = "portunus_config::optional")]
    pub issuer: Option<String>,
    /// Whom a token has to be for (`aud`).
    #[serde(with = "portunus_config::optional")]
    pub audience: Option<String>,
    /// Whether a token has to say when it ends (`exp`).
    pub require_expiry: bool,
    /// How far the clocks of the issuer and the server may differ.
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
