//! The certificate of HTTPS and secure WebSocket, which can change while the server runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{StartError, TlsConfig};

/// The certificate that connections are accepted with. Cheap to clone; all clones have the same one.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Arc<ArcSwap<Certificate>>);

/// A certificate that fits its key.
#[derive(Debug)]
pub(crate) struct Certificate {
    config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    pub(crate) fn new(certificate: Certificate) -> Self {
        Tls(Arc::new(ArcSwap::from_pointee(certificate)))
    }

    /// Returns what accepts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load().config.clone())
    }

    /// Accepts connections with `certificate` from now on. Those that there are go on with theirs. Returns whether it is another
    /// one.
    pub(crate) fn set(&self, certificate: Certificate) -> bool {
        let is_new = self.0.load().chain != certificate.chain;
        self.0.store(Arc::new(certificate));
        is_new
    }
}

/// Reads the PEM files; `user` is the configuration key that needs them. It blocks.
pub(crate) fn read(config: &TlsConfig, user: &'static str) -> Result<Certificate, StartError> {
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
    // It refuses a certificate that does not fit the key.
    let mut tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.clone(), private)
        .map_err(|error| failed(error.to_string()))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Certificate {
        config: Arc::new(tls),
        chain,
    })
}
