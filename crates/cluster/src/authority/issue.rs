//! Makes keys, requests and certificates.

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private, Public};
use openssl::x509::extension::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName,
};
use openssl::x509::{X509, X509Builder, X509Name, X509NameRef, X509Req, X509ReqBuilder};

use super::AuthorityError;
use crate::id::NodeId;

/// How long the authority and a node's certificate are valid, in days.
const AUTHORITY_DAYS: u32 = 3_650;
const NODE_DAYS: u32 = 825;
pub(super) const NODE_SECONDS: u64 = 86_400 * NODE_DAYS as u64;

/// The authority of a cluster, with its key.
pub(crate) struct Authority {
    certificate: X509,
    key: PKey<Private>,
}

/// A request for a certificate, with its key.
#[derive(Debug)]
pub(crate) struct Request {
    /// The request (PEM).
    pub(crate) csr: Vec<u8>,
    /// The key (PEM).
    pub(crate) key: Vec<u8>,
}

impl Request {
    /// Makes a key and a request for a node.
    pub(crate) fn make(name: &NodeId) -> Result<Self, ErrorStack> {
        let key = new_key()?;
        let mut builder = X509ReqBuilder::new()?;
        builder.set_pubkey(&key)?;
        let subject = named(name.as_str())?;
        builder.set_subject_name(&subject)?;
        builder.sign(&key, MessageDigest::sha256())?;
        Ok(Request {
            csr: builder.build().to_pem()?,
            key: key.private_key_to_pem_pkcs8()?,
        })
    }
}

impl Authority {
    /// Makes an authority.
    pub(crate) fn make() -> Result<Self, ErrorStack> {
        let key = new_key()?;
        let name = named("Portunus cluster")?;
        let mut builder = begun(&name, AUTHORITY_DAYS)?;
        builder.set_issuer_name(&name)?;
        builder.set_pubkey(&key)?;
        let certificate = certified(builder, &key)?;
        Ok(Authority { certificate, key })
    }

    /// Makes a certificate (PEM) of another authority by this one.
    pub(super) fn certify(&self, other: &Authority) -> Result<Vec<u8>, ErrorStack> {
        let mut builder = begun(other.certificate.subject_name(), AUTHORITY_DAYS)?;
        builder.set_not_after(self.certificate.not_after())?;
        builder.set_issuer_name(self.certificate.subject_name())?;
        builder.set_pubkey(&other.key)?;
        certified(builder, &self.key)?.to_pem()
    }

    /// Reads an authority from PEM texts.
    pub(super) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, AuthorityError> {
        Ok(Authority {
            certificate: X509::from_pem(certificate)?,
            key: PKey::private_key_from_pem(key)?,
        })
    }

    pub(super) fn key(&self) -> &PKey<Private> {
        &self.key
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn certificate(&self) -> &X509 {
        &self.certificate
    }

    pub(super) fn certificate_pem(&self) -> Result<Vec<u8>, ErrorStack> {
        self.certificate.to_pem()
    }

    pub(super) fn key_pem(&self) -> Result<Vec<u8>, ErrorStack> {
        self.key.private_key_to_pem_pkcs8()
    }

    /// Issues a certificate (PEM) for the key of a request. Nothing else of the request counts.
    pub(super) fn issue(&self, name: &NodeId, csr: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        let request = X509Req::from_pem(csr)?;
        let key: PKey<Public> = request.public_key()?;
        if !request.verify(&key)? {
            let text = "the request is not signed by its own key".to_owned();
            return Err(AuthorityError::Invitation(text));
        }
        let subject = named(name.as_str())?;
        let mut builder = begun(&subject, NODE_DAYS)?;
        builder.set_issuer_name(self.certificate.subject_name())?;
        builder.set_pubkey(&key)?;
        builder.append_extension(BasicConstraints::new().critical().build()?)?;
        let usage = KeyUsage::new().critical().digital_signature().build()?;
        builder.append_extension(usage)?;
        let usage = ExtendedKeyUsage::new()
            .server_auth()
            .client_auth()
            .build()?;
        builder.append_extension(usage)?;
        let mut names = SubjectAlternativeName::new();
        let names = names.dns(name.as_str());
        let names = names.build(&builder.x509v3_context(Some(&self.certificate), None))?;
        builder.append_extension(names)?;
        builder.sign(&self.key, MessageDigest::sha256())?;
        Ok(builder.build().to_pem()?)
    }
}

/// Returns the certificate of an authority, signed by `key`.
fn certified(mut builder: X509Builder, key: &PKey<Private>) -> Result<X509, ErrorStack> {
    builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    let usage = KeyUsage::new()
        .critical()
        .key_cert_sign()
        .crl_sign()
        .build()?;
    builder.append_extension(usage)?;
    builder.sign(key, MessageDigest::sha256())?;
    Ok(builder.build())
}

/// Returns when a certificate (PEM) expires, in seconds since 1970.
pub(super) fn expiry(certificate: &[u8]) -> Result<u64, ErrorStack> {
    let certificate = X509::from_pem(certificate)?;
    let left = Asn1Time::from_unix(0)?.diff(certificate.not_after())?;
    let seconds = i64::from(left.days) * 86_400 + i64::from(left.secs);
    Ok(u64::try_from(seconds).unwrap_or_default())
}

fn new_key() -> Result<PKey<Private>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&group)?)
}

fn named(name: &str) -> Result<X509Name, ErrorStack> {
    let mut builder = X509Name::builder()?;
    builder.append_entry_by_nid(Nid::COMMONNAME, name)?;
    Ok(builder.build())
}

/// Begins a certificate that is valid from yesterday on, since clocks differ.
fn begun(subject: &X509NameRef, days: u32) -> Result<X509Builder, ErrorStack> {
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
    let serial = serial.to_asn1_integer()?;
    builder.set_serial_number(&serial)?;
    builder.set_subject_name(subject)?;
    let day = 86_400;
    let now = std::time::SystemTime::now();
    let since = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let since = i64::try_from(since.as_secs()).unwrap_or_default();
    let from = Asn1Time::from_unix(since.saturating_sub(day))?;
    builder.set_not_before(&from)?;
    let until = Asn1Time::days_from_now(days)?;
    builder.set_not_after(&until)?;
    Ok(builder)
}
