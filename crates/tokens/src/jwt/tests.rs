#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use std::path::Path;

use jsonwebtoken::{Algorithm, EncodingKey, encode};
use openssl::ec::{EcGroup, EcKey};
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use serde_json::{Value, json};

use super::*;

const SECRET: &str = "a secret of more than thirty-two bytes";
const NOW: u64 = 1_000;

fn verifier(config: JwtConfig) -> JwtVerifier {
    JwtVerifier::load(config).unwrap()
}

fn with_secret() -> JwtConfig {
    JwtConfig {
        secret: Some(SECRET.into()),
        ..JwtConfig::default()
    }
}

fn sign(header: &Value, claims: &Value, key: &EncodingKey) -> String {
    let header: jsonwebtoken::Header = serde_json::from_value(header.clone()).unwrap();
    encode(&header, claims, key).unwrap()
}

fn hs256(claims: &Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    sign(&json!({ "alg": "HS256" }), claims, &key)
}

fn valid() -> Value {
    json!({ "exp": NOW + 60, "sub": "alice" })
}

fn fault(verifier: &JwtVerifier, token: &str) -> TokenFault {
    verifier.verify(token, NOW).unwrap_err()
}

/// A token of parts that nothing makes by itself.
fn made_of(header: &str, claims: &str, signature: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{signature}", part(header), part(claims))
}

#[test]
fn a_token_is_valid_in_its_time_only() {
    let verifier = verifier(with_secret());
    let token = hs256(&valid());
    assert!(JwtVerifier::is_like(&token));
    let claims = verifier.verify(&token, NOW).unwrap();
    assert_eq!(claims.subject().as_deref(), Some("alice"));
    assert!(verifier.verify(&token, NOW + 89).is_ok());
    let late = verifier.verify(&token, NOW + 90).unwrap_err();
    assert_eq!(late, TokenFault::Expired);
    let early = hs256(&json!({ "exp": NOW + 60, "nbf": NOW + 31 }));
    assert_eq!(fault(&verifier, &early), TokenFault::NotYet);
    assert!(verifier.verify(&early, NOW + 1).is_ok());
}

#[test]
fn each_fault_is_told_apart() {
    let strict = verifier(JwtConfig {
        issuer: Some("us".to_owned()),
        audience: Some("portunus".to_owned()),
        ..with_secret()
    });
    let ours = json!({ "exp": NOW + 60, "iss": "us", "aud": "portunus" });
    let with = |name: &str, value: Value| {
        let mut claims = ours.clone();
        claims[name] = value;
        hs256(&claims)
    };
    assert!(strict.verify(&hs256(&ours), NOW).is_ok());
    assert_eq!(
        fault(&strict, &with("iss", "them".into())),
        TokenFault::Issuer
    );
    assert_eq!(
        fault(&strict, &with("aud", "x".into())),
        TokenFault::Audience
    );
    assert_eq!(fault(&strict, &with("exp", 1.into())), TokenFault::Expired);

    let verifier = verifier(with_secret());
    let never_ends = fault(&verifier, &hs256(&json!({})));
    assert_eq!(never_ends, TokenFault::Malformed("exp is missing"));
    let other = EncodingKey::from_secret(b"another secret, which is as long as that");
    let forged = sign(&json!({ "alg": "HS256" }), &valid(), &other);
    assert_eq!(fault(&verifier, &forged), TokenFault::Signature);
    let (message, signature) = hs256(&valid())
        .rsplit_once('.')
        .map(|(m, s)| (m.to_owned(), s.to_owned()))
        .unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let claims = URL_SAFE_NO_PAD.encode(r#"{"exp":9999,"rights":["administer"]}"#);
    let changed = format!("{header}.{claims}.{signature}");
    assert_eq!(fault(&verifier, &changed), TokenFault::Signature);
    for (header, expected) in [
        (r#"{"alg":"none"}"#, TokenFault::Algorithm),
        (r#"{"alg":"None"}"#, TokenFault::Algorithm),
        (r#"{"alg":"HS384"}"#, TokenFault::Algorithm),
        (r#"{"alg":"RS256"}"#, TokenFault::Algorithm),
        (r#"{"alg":"HS256"}"#, TokenFault::Signature),
        (
            r#"{"alg":"HS256","crit":["b64"]}"#,
            TokenFault::Malformed("its header has crit"),
        ),
        ("{}", TokenFault::Malformed("its header cannot be read")),
        ("7", TokenFault::Malformed("its header cannot be read")),
    ] {
        for signature in ["", "AAAA", "?"] {
            let token = made_of(header, r#"{"exp":9999}"#, signature);
            assert_eq!(fault(&verifier, &token), expected, "{header} {signature}");
        }
    }
    for nonsense in ["", "..", "a.b", "a.b.c.d", "é.é.é"] {
        let fault = fault(&verifier, nonsense);
        assert!(matches!(fault, TokenFault::Malformed(_)), "{nonsense}");
    }
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let list = sign(&json!({ "alg": "HS256" }), &json!([1]), &key);
    assert!(matches!(fault(&verifier, &list), TokenFault::Malformed(_)));
    assert_eq!(
        fault(&JwtVerifier::default(), &hs256(&valid())),
        TokenFault::Unknown
    );
}

#[test]
fn a_token_need_not_end_where_the_configuration_says_so() {
    let verifier = verifier(JwtConfig {
        require_expiry: false,
        ..with_secret()
    });
    assert!(verifier.verify(&hs256(&json!({})), NOW).is_ok());
}

/// A public key in a file, and how to sign for it.
fn key_pair(algorithm: Algorithm, file: &Path) -> EncodingKey {
    let private: PKey<Private> = match algorithm {
        Algorithm::RS256 => PKey::from_rsa(Rsa::generate(2_048).unwrap()).unwrap(),
        Algorithm::EdDSA => PKey::generate_ed25519().unwrap(),
        _ => {
            let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
            PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
        }
    };
    std::fs::write(file, private.public_key_to_pem().unwrap()).unwrap();
    let pem = private.private_key_to_pem_pkcs8().unwrap();
    match algorithm {
        Algorithm::RS256 => EncodingKey::from_rsa_pem(&pem).unwrap(),
        Algorithm::EdDSA => EncodingKey::from_ed_pem(&pem).unwrap(),
        _ => EncodingKey::from_ec_pem(&pem).unwrap(),
    }
}

#[test]
fn a_public_key_verifies_by_its_own_algorithm_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    for algorithm in [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA] {
        let private = key_pair(algorithm, &file);
        let verifier = verifier(JwtConfig {
            key_file: Some(file.clone()),
            ..JwtConfig::default()
        });
        let header = json!({ "alg": algorithm, "kid": "any" });
        let token = sign(&header, &valid(), &private);
        assert!(verifier.verify(&token, NOW).is_ok(), "{algorithm:?}");
        // The public key is no secret: who signs with it by HMAC is not believed.
        let public = EncodingKey::from_secret(&std::fs::read(&file).unwrap());
        let confused = sign(&json!({ "alg": "HS256" }), &valid(), &public);
        assert_eq!(fault(&verifier, &confused), TokenFault::Algorithm);
    }
}

#[test]
fn a_secret_may_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let load = || {
        JwtVerifier::load(JwtConfig {
            secret_file: Some(file.clone()),
            ..JwtConfig::default()
        })
    };
    let token = hs256(&valid());
    assert!(load().unwrap().verify(&token, NOW).is_ok());
    std::fs::write(&file, "short").unwrap();
    let error = load().unwrap_err().to_string();
    assert!(error.contains("the secret has 5 bytes"), "{error}");
    std::fs::write(&file, vec![b'x'; 300_000]).unwrap();
    let error = load().unwrap_err().to_string();
    assert!(error.contains("larger than 256 KiB"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = load().unwrap_err().to_string();
    assert!(error.contains("secret: No such file"), "{error}");
}

/// Replaces a file atomically, as a rotation of keys should.
fn replace(file: &Path, content: &str) {
    let next = file.with_extension("next");
    std::fs::write(&next, content).unwrap();
    std::fs::rename(next, file).unwrap();
}

fn set(keys: &[(&str, &str)]) -> String {
    let key = |(id, secret): &(&str, &str)| json!({ "kty": "oct", "alg": "HS256", "kid": id, "k": URL_SAFE_NO_PAD.encode(secret) });
    json!({ "keys": keys.iter().map(key).collect::<Vec<_>>() }).to_string()
}

#[test]
fn keys_of_a_file_come_and_go_and_a_broken_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let (old, new) = (SECRET, "the next secret of thirty-two bytes or more");
    let token = |id: Option<&str>, secret: &str| {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let header = json!({ "alg": "HS256", "kid": id });
        sign(&header, &valid(), &key)
    };
    replace(&file, &set(&[("1", old)]));
    let verifier = verifier(JwtConfig {
        jwks_file: Some(file.clone()),
        ..JwtConfig::default()
    });
    let (of_old, of_new) = (token(Some("1"), old), token(Some("2"), new));
    assert!(verifier.verify(&of_old, NOW).is_ok());
    assert!(verifier.verify(&token(None, old), NOW).is_ok());
    assert_eq!(fault(&verifier, &of_new), TokenFault::Key);
    assert_eq!(
        fault(&verifier, &token(Some("1"), new)),
        TokenFault::Signature
    );
    verifier.refresh();
    assert_eq!(verifier.refreshes(), refreshes(0, 0));

    replace(&file, &set(&[("1", old), ("2", new)]));
    verifier.refresh();
    assert!(verifier.verify(&of_old, NOW).is_ok() && verifier.verify(&of_new, NOW).is_ok());

    replace(&file, "{ \"keys\": [");
    verifier.refresh();
    verifier.refresh();
    assert_eq!(verifier.refreshes(), refreshes(1, 1));
    assert!(verifier.verify(&of_new, NOW).is_ok());
    std::fs::remove_file(&file).unwrap();
    verifier.refresh();
    verifier.refresh();
    assert_eq!(verifier.refreshes(), refreshes(1, 2));
    assert!(verifier.verify(&of_new, NOW).is_ok());

    replace(&file, &set(&[("2", new)]));
    verifier.refresh();
    assert_eq!(verifier.refreshes(), refreshes(2, 2));
    assert!(verifier.verify(&of_new, NOW).is_ok());
    assert_eq!(fault(&verifier, &of_old), TokenFault::Key);
}

#[test]
fn a_token_that_names_no_key_is_tried_with_a_few() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let secrets: Vec<String> = (0..6).map(|n| format!("{n} {SECRET}")).collect();
    let keys: Vec<_> = secrets
        .iter()
        .map(|secret| ("same", secret.as_str()))
        .collect();
    replace(&file, &set(&keys));
    let verifier = verifier(JwtConfig {
        jwks_file: Some(file),
        ..JwtConfig::default()
    });
    let valid_with = |secret: &str| {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let token = sign(&json!({ "alg": "HS256" }), &valid(), &key);
        verifier.verify(&token, NOW).is_ok()
    };
    let found: Vec<bool> = secrets.iter().map(|secret| valid_with(secret)).collect();
    assert_eq!(found, [true, true, true, true, false, false]);
}

fn refreshes(reads: u64, failures: u64) -> KeyRefreshes {
    KeyRefreshes { reads, failures }
}
