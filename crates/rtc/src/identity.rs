//! The DTLS certificate of this side, and the AWS-LC context with it.

use std::fmt;

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl::ssl::{
    SslContext, SslMethod, SslMode, SslOptions, SslSessionCacheMode, SslVerifyMode, SslVersion,
};
use openssl::x509::{X509, X509Name, X509Ref};
use portunus_sdp::negotiated::{Fingerprint, FingerprintHash};
use portunus_srtp::Profile;

/// Peers check only the fingerprint, so the dates are for people who look at it.
const VALID_DAYS: u32 = 3_650;

/// GCM only, since the record layer in `dtls::record` supports nothing else. Security level 1
/// accepts the RSA certificates of 1,024 bits of old peers, which the fingerprint authenticates.
const CIPHERS: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                       ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384";

/// In order of preference. The last two are for certificates: that of ffmpeg with GnuTLS has a
/// P-224 key, and keys of unlisted groups are refused.
const GROUPS: &str = "X25519:P-256:P-384:P-521:P-224";

/// A certificate with its private key, shared by all transports.
pub struct Identity {
    context: SslContext,
    fingerprint: Fingerprint,
}

/// An unusable certificate or key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The PEM text holds no certificate or no key, or the two do not match.
    #[error("the certificate or its key cannot be used: {0}")]
    Unusable(ErrorStack),
    /// AWS-LC refused to make a certificate or a context.
    #[error("AWS-LC refused: {0}")]
    Refused(#[from] ErrorStack),
}

impl Identity {
    /// Makes a self-signed ECDSA P-256 certificate.
    pub fn generate() -> Result<Self, IdentityError> {
        Self::generate_for(&Profile::PREFERENCE)
    }

    /// Makes one that accepts only these SRTP profiles, the most preferred first.
    pub fn generate_for(profiles: &[Profile]) -> Result<Self, IdentityError> {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
        let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
        Self::self_signed(&key, profiles)
    }

    /// Makes a self-signed certificate for `key`.
    pub(crate) fn self_signed(
        key: &PKeyRef<Private>,
        profiles: &[Profile],
    ) -> Result<Self, IdentityError> {
        let mut name = X509Name::builder()?;
        name.append_entry_by_text("CN", "WebRTC")?;
        let name = name.build();
        let mut serial = BigNum::new()?;
        serial.rand(64, MsbOption::MAYBE_ZERO, false)?;

        let mut builder = X509::builder()?;
        builder.set_version(2)?;
        builder.set_serial_number(serial.to_asn1_integer()?.as_ref())?;
        builder.set_subject_name(&name)?;
        builder.set_issuer_name(&name)?;
        builder.set_not_before(Asn1Time::days_from_now(0)?.as_ref())?;
        builder.set_not_after(Asn1Time::days_from_now(VALID_DAYS)?.as_ref())?;
        builder.set_pubkey(key)?;
        builder.sign(key, MessageDigest::sha256())?;
        Ok(Self::new(&builder.build(), key, profiles)?)
    }

    /// Reads a certificate and its private key from PEM texts.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let certificate = X509::from_pem(certificate).map_err(IdentityError::Unusable)?;
        let key = PKey::private_key_from_pem(key).map_err(IdentityError::Unusable)?;
        Self::new(&certificate, &key, &Profile::PREFERENCE).map_err(IdentityError::Unusable)
    }

    /// Returns the certificate's SHA-256 fingerprint for SDP.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Returns the context for handshakes of both roles.
    pub(crate) fn context(&self) -> &SslContext {
        &self.context
    }

    fn new(
        certificate: &X509Ref,
        key: &PKeyRef<Private>,
        profiles: &[Profile],
    ) -> Result<Self, ErrorStack> {
        let mut builder = SslContext::builder(SslMethod::dtls())?;
        builder.set_certificate(certificate)?;
        builder.set_private_key(key)?;
        builder.check_private_key()?;
        builder.set_min_proto_version(Some(SslVersion::DTLS1_2))?;
        builder.set_max_proto_version(Some(SslVersion::DTLS1_2))?;
        builder.set_cipher_list(CIPHERS)?;
        builder.set_groups_list(GROUPS)?;
        let profiles: Vec<&str> = profiles.iter().map(|profile| profile.name()).collect();
        builder.set_tlsext_use_srtp(&profiles.join(":"))?;
        builder.set_options(
            SslOptions::NO_QUERY_MTU
                | SslOptions::NO_RENEGOTIATION
                | SslOptions::NO_TICKET
                | SslOptions::CIPHER_SERVER_PREFERENCE,
        );
        builder.set_mode(SslMode::RELEASE_BUFFERS);
        builder.set_session_cache_mode(SslSessionCacheMode::OFF);
        // Any certificate is accepted here. Its fingerprint is checked after the handshake.
        let mode = SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT;
        builder.set_verify_callback(mode, |_, _| true);
        let digest = certificate.digest(MessageDigest::sha256())?.to_vec();
        Ok(Self {
            context: builder.build(),
            fingerprint: Fingerprint {
                hash: FingerprintHash::Sha256,
                digest,
            },
        })
    }
}

/// Shows the fingerprint, but not the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}
