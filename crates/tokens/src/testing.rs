//! Makes and opens tokens, for tests.
#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};

use crate::signed::{self, SignedToken};
use crate::{JwtConfig, JwtVerifier, TokenFault};

/// Makes a signed token. `data` is `EXPIRY,REALM[,DESCRIPTOR…]`.
pub fn signed_token(data: &str, secret: &str) -> String {
    signed::sign(data, secret)
}

/// Whether a signed token opens `descriptor` of `realm` at `now`, in seconds since 1970.
pub fn signed_token_opens(
    token: &str,
    secret: &str,
    now: u64,
    realm: &str,
    descriptor: &str,
) -> bool {
    let token = SignedToken::verify_at(token, secret, now);
    token.is_ok_and(|token| token.is_for(realm) && token.opens(descriptor))
}

/// A verifier of JSON Web Tokens that are signed with `secret`, of at least 32 bytes.
pub fn jwt_verifier(secret: &str) -> JwtVerifier {
    let config = JwtConfig {
        secret: Some(secret.into()),
        ..JwtConfig::default()
    };
    JwtVerifier::load(config).expect("a secret")
}

/// Makes a JSON Web Token with these claims, which may be any text.
pub fn jwt(claims: &str, secret: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", part(r#"{"alg":"HS256"}"#), part(claims));
    let key = EncodingKey::from_secret(secret.as_bytes());
    let signature = sign(message.as_bytes(), &key, Algorithm::HS256).expect("a signature");
    format!("{message}.{signature}")
}

/// Whether a JSON Web Token opens a room or mountpoint of a plugin at `now`, in seconds since 1970.
pub fn jwt_opens_room(
    verifier: &JwtVerifier,
    token: &str,
    now: u64,
    package: &str,
    room: &str,
) -> Result<bool, TokenFault> {
    let claims = verifier.verify(token, now)?;
    Ok(claims.opens_room(package, room))
}
