//! TLS 1.3 with certificates of the cluster's authority on both sides.

use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{AlertDescription, ClientConfig, Error, RootCertStore, ServerConfig};

use super::error::StartError;
use crate::authority::Identity;

/// The protocol of control links.
pub(super) const LINK: &[u8] = b"portunus-cluster";

/// The protocol by which an invited node gets its certificate. It has none yet.
pub(super) const JOIN: &[u8] = b"portunus-join";

/// The protocol by which a node gets a new certificate for one that is still valid.
pub(super) const RENEW: &[u8] = b"portunus-renew";

/// Returns the options of the side that listens.
pub(super) fn server(identity: &Identity) -> Result<Arc<ServerConfig>, StartError> {
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(identity.roots.clone(), provider.clone())
            // Who shows no certificate may only join.
            .allow_unauthenticated()
            .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    config.alpn_protocols = vec![LINK.to_vec(), JOIN.to_vec(), RENEW.to_vec()];
    // A resumed session would skip the check of a certificate that has expired meanwhile.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the options of the side that dials, for one of the protocols with certificates.
pub(super) fn client(
    identity: &Identity,
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, StartError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(identity.roots.clone())
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

/// Returns the options of a node that joins.
pub(super) fn joining(roots: RootCertStore) -> Result<Arc<ClientConfig>, StartError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![JOIN.to_vec()];
    Ok(Arc::new(config))
}

/// Returns the first certificate that the other side has shown.
pub(super) fn shown(
    certificates: Option<&[CertificateDer<'static>]>,
) -> Option<CertificateDer<'static>> {
    certificates?.first().cloned()
}

/// Returns whether a handshake failed because of the other side's certificate, or because the other
/// side refuses this one's.
pub(super) fn is_of_certificate(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let refusals = [
        AlertDescription::BadCertificate,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
    ];
    match error {
        Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => true,
        Some(Error::AlertReceived(alert)) => refusals.contains(alert),
        _ => false,
    }
}
