//! WHIP and WHEP without sockets, headers of proxies, and certificates.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up fails by a panic"
)]

use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use axum::{Extension, Router};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509, X509Name};
use portunus_core::{Gateway, Network, Requester};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::forwarded::Forwarded;
use crate::{Counters, HttpConfig, WhipConfig, whip};

/// Returns the router for `/whip` and `/whep`. All requests count as local.
pub fn whip_router(gateway: Gateway) -> Router {
    let (config, http) = (WhipConfig::default(), HttpConfig::default());
    let counters = Arc::new(Counters::default());
    whip::router(&config, &http, gateway, counters).layer(Extension(Requester::unix()))
}

/// Returns the client in the headers of a request by a proxy in one of these networks, if they name
/// one.
pub fn forwarded_client(headers: &HeaderMap, proxies: &[Network]) -> Option<IpAddr> {
    let is_trusted = |ip| proxies.iter().any(|network| network.contains(ip));
    match Forwarded::read(headers, is_trusted) {
        Forwarded::For(address) => Some(address.ip()),
        Forwarded::No | Forwarded::Unreadable | Forwarded::Contradictory => None,
    }
}

/// Writes a self-signed certificate for `localhost`, valid for a day, and its key to `cert.pem` and
/// `key.pem` in `folder`. Returns the certificate.
///
/// # Panics
///
/// If it cannot be made or written.
pub fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    write_certificate_for(folder, 0..1, &["localhost"])
}

/// Writes a certificate for these names and IP addresses. The two days of its validity are counted
/// from today.
///
/// # Panics
///
/// If it cannot be made or written.
pub fn write_certificate_for(
    folder: &Path,
    days: Range<i32>,
    names: &[&str],
) -> CertificateDer<'static> {
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
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let at = |days: i32| Asn1Time::from_unix(now as i64 + i64::from(days) * 86_400).unwrap();
    builder.set_not_before(&at(days.start)).unwrap();
    builder.set_not_after(&at(days.end)).unwrap();
    if !names.is_empty() {
        let mut alternative = SubjectAlternativeName::new();
        for name in names {
            match name.parse::<IpAddr>() {
                Ok(_) => alternative.ip(name),
                Err(_) => alternative.dns(name),
            };
        }
        let alternative = alternative.build(&builder.x509v3_context(None, None));
        builder.append_extension(alternative.unwrap()).unwrap();
    }
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let certificate = builder.build();
    std::fs::write(folder.join("cert.pem"), certificate.to_pem().unwrap()).unwrap();
    let key = key.private_key_to_pem_pkcs8().unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
    certificate.to_der().unwrap().into()
}
