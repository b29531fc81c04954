//! The certificate of HTTPS and secure WebSocket.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{StartError, TlsConfig};

/// Reads the PEM files; `user` is the configuration key that needs them.
pub(crate) fn acceptor(config: &TlsConfig, user: &'static str) -> Result<TlsAcceptor, StartError> {
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
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(tls)))
}
