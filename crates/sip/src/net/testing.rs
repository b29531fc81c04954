//! A certificate for tests.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::LazyLock;

use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509, X509Name};
use tempfile::TempDir;

use super::config::TlsFiles;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("CN", "localhost").unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(1).unwrap())
        .unwrap();
    let mut names = SubjectAlternativeName::new();
    let names = names.dns("localhost").dns("portunus.test").ip("127.0.0.1");
    let names = names.build(&builder.x509v3_context(None, None)).unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("certificate.pem"),
        builder.build().to_pem().unwrap(),
    )
    .unwrap();
    std::fs::write(
        folder.path().join("key.pem"),
        key.private_key_to_pem_pkcs8().unwrap(),
    )
    .unwrap();
    folder
});

/// A certificate for `localhost`, `portunus.test` and 127.0.0.1, signed by itself, and trusted.
pub(super) fn certificate() -> TlsFiles {
    let file = |name: &str| Some(FOLDER.path().join(name));
    TlsFiles {
        certificate: file("certificate.pem"),
        key: file("key.pem"),
        authorities: file("certificate.pem"),
    }
}
