//! The expiry of certificates.

use std::fs;
use std::path::Path;

use openssl::asn1::Asn1Time;
use openssl::x509::X509;

/// Returns when the first certificate of a PEM file expires, in seconds since 1970, or `None` if it
/// cannot be read. Blocks.
pub fn certificate_expiry(file: &Path) -> Option<u64> {
    let certificate = X509::from_pem(&fs::read(file).ok()?).ok()?;
    let epoch = Asn1Time::from_unix(0).ok()?;
    let since = epoch.diff(certificate.not_after()).ok()?;
    let seconds = i64::from(since.days) * 86_400 + i64::from(since.secs);
    u64::try_from(seconds).ok()
}
