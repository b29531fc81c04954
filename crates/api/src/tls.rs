//! TLS for HTTPS and secure WebSocket.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{StartError, TlsConfig};

/// Reads certificate and key; `needed_by` is the configuration key that asks for them.
pub(crate) fn acceptor(
    config: &TlsConfig,
    needed_by: &'static str,
) -> Result<TlsAcceptor, StartError> {
    let (Some(certificate), Some(key)) = (&config.certificate, &config.key) else {
        return Err(StartError::NoCertificate(needed_by));
    };
    server_config(certificate, key)
        .map(|config| TlsAcceptor::from(Arc::new(config)))
        .map_err(|reason| StartError::Certificate {
            certificate: certificate.clone(),
            key: key.clone(),
            reason,
        })
}

fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, String> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| error.to_string())?;
    let builder = ServerConfig::builder().with_no_client_auth();
    builder
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())
}
