//! The certificate of HTTPS, secure WebSocket and TURN by TLS.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{StartError, TlsConfig};

/// Protocols of HTTP (ALPN, RFC 7301).
const HTTP: &[u8] = b"http/1.1";
/// Protocols of TURN (RFC 7443).
const TURN: &[u8] = b"stun.turn";

/// Reads the PEM files for HTTPS; `user` is the configuration key that needs them.
pub(crate) fn acceptor(config: &TlsConfig, user: &'static str) -> Result<TlsAcceptor, StartError> {
    acceptor_for(HTTP, config, user)
}

/// Reads the PEM files for TURN.
pub fn turn_acceptor(config: &TlsConfig) -> Result<TlsAcceptor, StartError> {
    acceptor_for(TURN, config, "turn.tls")
}

fn acceptor_for(
    protocol: &[u8],
    config: &TlsConfig,
    user: &'static str,
) -> Result<TlsAcceptor, StartError> {
    let (Some(certificate), Some(key)) = (&config.certificate, &config.key) else {
        return Err(StartError::NoCertificate(user));
    };
    let failed = |reason: String| StartError::Certificate {
        certificate: certificate.clone(),
        key: key.clone(),
        reason,
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(format!("the certificate: {error}")))?;
    if chain.is_empty() {
        return Err(failed("the certificate's file holds none".into()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(format!("the key: {error}")))?;
    let mut tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| failed(error.to_string()))?;
    tls.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(tls)))
}
