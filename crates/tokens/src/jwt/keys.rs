//! Keys. Each key verifies by one algorithm, which the key determines and not the token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey};
use openssl::rsa::Rsa;
use serde::Deserialize;
use serde_json::Value;

use crate::TokenFault;

/// The shortest secret in bytes: the length of a signature by HS256 (RFC 7518 section 3.2).
pub(crate) const MIN_SECRET: usize = 32;

/// The shortest RSA key in bits (RFC 7518 section 3.3).
const MIN_RSA: u32 = 2_048;

/// The most keys in a set.
const MAX_KEYS: usize = 32;

/// The most keys that are tried for a token without a key id. Each costs work.
const MAX_TRIED: usize = 4;

/// The reason why a key or a set of keys is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A secret is too short.
    #[error("the secret has {0} bytes; it needs 32 at least, such as `openssl rand -hex 32` makes")]
    ShortSecret(usize),
    /// A private key is given where a public one is needed.
    #[error(
        "it is a private key; the server needs the public one: `openssl pkey -in FILE -pubout`"
    )]
    Private,
    /// It is not a public key in PEM.
    #[error("it is no public key in PEM (-----BEGIN PUBLIC KEY-----)")]
    NotPem,
    /// Keys of this kind verify no tokens.
    #[error("only keys of RSA, of the curves P-256 and P-384, and of Ed25519 can be used")]
    Unsupported,
    /// An RSA key is too short.
    #[error("the RSA key has {0} bits; it needs 2048 at least")]
    ShortRsa(u32),
    /// It is not a set of keys.
    #[error("it is no set of keys (RFC 7517 section 5): {0}")]
    NotSet(String),
    /// None of its keys is usable.
    #[error("none of its {0} keys can be used to verify tokens")]
    NoKey(usize),
    /// It has too many keys.
    #[error("it has {0} keys; there may be 32")]
    TooMany(usize),
}

/// A key with its algorithm.
#[derive(Debug)]
pub(super) struct Key {
    /// The id that tokens name it by (`kid`). Without an id it is tried for any token.
    id: Option<String>,
    algorithm: Algorithm,
    decoding: DecodingKey,
}

impl Key {
    /// A secret for HS256.
    pub(super) fn secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET {
            return Err(KeyError::ShortSecret(secret.len()));
        }
        Ok(Key {
            id: None,
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret),
        })
    }

    /// A public key in PEM. Its kind determines the algorithm: RS256, ES256, ES384 or EdDSA.
    pub(super) fn public(pem: &[u8]) -> Result<Self, KeyError> {
        let is_private = pem.windows(11).any(|text| text == b"PRIVATE KEY");
        if is_private {
            return Err(KeyError::Private);
        }
        let key = PKey::public_key_from_pem(pem)
            .or_else(|_| Rsa::public_key_from_pem_pkcs1(pem).and_then(PKey::from_rsa))
            .map_err(|_| KeyError::NotPem)?;
        let (algorithm, decoding) = match key.id() {
            Id::RSA if key.bits() < MIN_RSA => return Err(KeyError::ShortRsa(key.bits())),
            Id::RSA => (Algorithm::RS256, DecodingKey::from_rsa_pem(pem)),
            Id::EC => {
                let curve = key.ec_key().ok().and_then(|key| key.group().curve_name());
                let algorithm = match curve {
                    Some(Nid::X9_62_PRIME256V1) => Algorithm::ES256,
                    Some(Nid::SECP384R1) => Algorithm::ES384,
                    Some(_) | None => return Err(KeyError::Unsupported),
                };
                (algorithm, DecodingKey::from_ec_pem(pem))
            }
            Id::ED25519 => (Algorithm::EdDSA, DecodingKey::from_ed_pem(pem)),
            _ => return Err(KeyError::Unsupported),
        };
        Ok(Key {
            id: None,
            algorithm,
            decoding: decoding.map_err(|_| KeyError::NotPem)?,
        })
    }

    /// Reads a key of a set. Returns `None` if it is not for verifying tokens, or not of a usable
    /// kind.
    fn of_set(key: Value) -> Option<Self> {
        let key: Jwk = serde_json::from_value(key).ok()?;
        let common = &key.common;
        let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let operations = common.key_operations.as_ref();
        let verifies = operations.is_none_or(|known| known.contains(&KeyOperations::Verify));
        if !for_signatures || !verifies {
            return None;
        }
        let own = match &key.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
                EllipticCurve::P256 => Algorithm::ES256,
                EllipticCurve::P384 => Algorithm::ES384,
                _ => return None,
            },
            AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
            AlgorithmParameters::OctetKeyPair(parameters) => match parameters.curve {
                EllipticCurve::Ed25519 => Algorithm::EdDSA,
                _ => return None,
            },
            _ => return None,
        };
        let algorithm = match common.key_algorithm {
            None => own,
            Some(said) => Algorithm::try_from(said).ok()?,
        };
        // A curve has one algorithm. RSA and secrets have several, and the set may name an unusual
        // one.
        let fits = match algorithm.family() {
            AlgorithmFamily::Ec | AlgorithmFamily::Ed => algorithm == own,
            AlgorithmFamily::Hmac | AlgorithmFamily::Rsa => algorithm.family() == own.family(),
        };
        let decoding = DecodingKey::from_jwk(&key).ok()?;
        (fits && is_strong(&decoding)).then(|| Key {
            id: common.key_id.clone(),
            algorithm,
            decoding,
        })
    }

    fn is_signed_with(&self, message: &str, signature: &str) -> bool {
        let verified = jsonwebtoken::crypto::verify(
            signature,
            message.as_bytes(),
            &self.decoding,
            self.algorithm,
        );
        verified.unwrap_or(false)
    }
}

fn is_strong(key: &DecodingKey) -> bool {
    match key.kind() {
        DecodingKeyKind::SecretOrDer(secret) => {
            key.family() != AlgorithmFamily::Hmac || secret.len() >= MIN_SECRET
        }
        DecodingKeyKind::RsaModulusExponent { n, .. } => {
            let significant = n.iter().skip_while(|byte| **byte == 0).count();
            significant >= MIN_RSA as usize / 8
        }
    }
}

/// Returns the usable keys of a set (RFC 7517 section 5), and ignores others as RFC 7517 requires.
pub(super) fn of_set(json: &[u8]) -> Result<Vec<Key>, KeyError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set =
        serde_json::from_slice(json).map_err(|error| KeyError::NotSet(error.to_string()))?;
    let count = set.keys.len();
    if count > MAX_KEYS {
        return Err(KeyError::TooMany(count));
    }
    let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::of_set).collect();
    match keys.is_empty() {
        true => Err(KeyError::NoKey(count)),
        false => Ok(keys),
    }
}

/// Checks the signature of a token that names `algorithm` and the key `id`.
pub(super) fn verify<'k>(
    keys: impl Iterator<Item = &'k Key> + Clone,
    algorithm: &str,
    id: Option<&str>,
    message: &str,
    signature: &str,
) -> Result<(), TokenFault> {
    let algorithm: Algorithm = algorithm.parse().map_err(|_| TokenFault::Algorithm)?;
    let of_algorithm = keys.filter(|key| key.algorithm == algorithm);
    if of_algorithm.clone().next().is_none() {
        return Err(TokenFault::Algorithm);
    }
    let is_meant = |key: &&Key| match (key.id.as_deref(), id) {
        (Some(known), Some(named)) => known == named,
        (None, _) | (_, None) => true,
    };
    let mut meant = of_algorithm.filter(is_meant).take(MAX_TRIED).peekable();
    if meant.peek().is_none() {
        return Err(TokenFault::Key);
    }
    match meant.any(|key| key.is_signed_with(message, signature)) {
        true => Ok(()),
        false => Err(TokenFault::Signature),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use openssl::ec::{EcGroup, EcKey};
    use serde_json::json;

    use super::*;

    fn pem(key: PKey<openssl::pkey::Private>) -> Vec<u8> {
        key.public_key_to_pem().unwrap()
    }

    fn ec(curve: Nid) -> PKey<openssl::pkey::Private> {
        let group = EcGroup::from_curve_name(curve).unwrap();
        PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
    }

    #[test]
    fn a_public_key_says_its_algorithm() {
        let algorithm = |pem: &[u8]| Key::public(pem).map(|key| key.algorithm);
        let rsa = Rsa::generate(2_048).unwrap();
        let pkcs1 = rsa.public_key_to_pem_pkcs1().unwrap();
        assert_eq!(algorithm(&pkcs1), Ok(Algorithm::RS256));
        let rsa = PKey::from_rsa(rsa).unwrap();
        let private = rsa.private_key_to_pem_pkcs8().unwrap();
        assert_eq!(algorithm(&private), Err(KeyError::Private));
        assert_eq!(algorithm(&pem(rsa)), Ok(Algorithm::RS256));
        let short = PKey::from_rsa(Rsa::generate(1_024).unwrap()).unwrap();
        assert_eq!(algorithm(&pem(short)), Err(KeyError::ShortRsa(1_024)));
        for (curve, expected) in [
            (Nid::X9_62_PRIME256V1, Ok(Algorithm::ES256)),
            (Nid::SECP384R1, Ok(Algorithm::ES384)),
            (Nid::SECP521R1, Err(KeyError::Unsupported)),
        ] {
            assert_eq!(algorithm(&pem(ec(curve))), expected, "{curve:?}");
        }
        let ed = PKey::generate_ed25519().unwrap();
        assert_eq!(algorithm(&pem(ed)), Ok(Algorithm::EdDSA));
        assert_eq!(algorithm(b"nonsense"), Err(KeyError::NotPem));
        let cut = b"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n";
        assert_eq!(algorithm(cut), Err(KeyError::NotPem));
    }

    #[test]
    fn a_secret_is_long() {
        assert_eq!(
            Key::secret(&[7; 31]).unwrap_err(),
            KeyError::ShortSecret(31)
        );
        assert!(Key::secret(&[7; 32]).is_ok());
    }

    #[test]
    fn a_set_gives_the_keys_that_verify() {
        let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
        let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
        let k = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let short = "AQAB";
        let set = json!({ "keys": [
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "a" },
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "use": "enc" },
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "key_ops": ["sign"] },
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "alg": "ES384" },
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "alg": "RS256" },
            { "kty": "EC", "crv": "secp256k1", "x": x, "y": y },
            { "kty": "oct", "k": k, "alg": "HS512", "kid": "b" },
            { "kty": "oct", "k": short },
            { "kty": "RSA", "n": short, "e": "AQAB" },
            { "kty": "RSA", "n": short, "e": "AQAB", "alg": "HS256" },
            { "kty": "new" }, 7,
        ] });
        let keys = of_set(set.to_string().as_bytes()).unwrap();
        let told: Vec<_> = keys
            .iter()
            .map(|key| (key.id.as_deref(), key.algorithm))
            .collect();
        assert_eq!(
            told,
            [(Some("a"), Algorithm::ES256), (Some("b"), Algorithm::HS512)]
        );
        for (text, expected) in [
            (r#"{"keys":[]}"#, KeyError::NoKey(0)),
            (r#"{"keys":[{"kty":"new"}]}"#, KeyError::NoKey(1)),
        ] {
            assert_eq!(of_set(text.as_bytes()).unwrap_err(), expected);
        }
        let many = json!({ "keys": vec![json!({}); MAX_KEYS + 1] });
        let refused = of_set(many.to_string().as_bytes()).unwrap_err();
        assert_eq!(refused, KeyError::TooMany(MAX_KEYS + 1));
        for text in ["", "{", "[]", r#"{"key":1}"#] {
            let refused = of_set(text.as_bytes()).unwrap_err();
            assert!(matches!(refused, KeyError::NotSet(_)), "{text}");
        }
    }
}
