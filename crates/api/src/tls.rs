//! The certificate of HTTPS, secure WebSocket and TURN by TLS, which can change at run time.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portunus_config::{Configuration, Probe, Section};
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::StartError;

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate chain, the server's own first.
    #[serde(with = "portunus_config::optional")]
    pub certificate: Option<PathBuf>,
    /// The private key.
    #[serde(with = "portunus_config::optional")]
    pub key: Option<PathBuf>,
}

impl Configuration for TlsConfig {
    const LIVE: &'static [&'static str] = &["certificate", "key"];

    fn read(section: &mut Section<'_>) -> Self {
        let tls: Self = section.keys();
        let (certificate, key) = (tls.certificate.is_some(), tls.key.is_some());
        let keys = &["certificate", "key"];
        section.require(keys, key || !certificate, "needs tls.key");
        let keys = &["key", "certificate"];
        section.require(keys, certificate || !key, "needs tls.certificate");
        tls
    }

    fn probe(&self, probe: &mut Probe) {
        let Some(certificate) = &self.certificate else {
            return;
        };
        probe.certificate("certificate", certificate);
        if let Err(error) = read(self, "") {
            probe.error("certificate", error);
        }
    }
}

/// The certificate for accepted connections. Cheap to clone. All clones share one certificate.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Arc<ArcSwap<Certificate>>);

/// The protocol of HTTP (ALPN, RFC 7301).
const HTTP: &[u8] = b"http/1.1";
/// The protocol of TURN (RFC 7443).
const TURN: &[u8] = b"stun.turn";

/// A certificate with a matching key.
#[derive(Debug)]
pub(crate) struct Certificate {
    config: Arc<ServerConfig>,
    /// For TURN.
    turn: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    pub(crate) fn new(certificate: Certificate) -> Self {
        Tls(Arc::new(ArcSwap::from_pointee(certificate)))
    }

    /// Returns the acceptor for the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load().config.clone())
    }

    /// Returns the acceptor for the next connection of TURN.
    pub(crate) fn turn_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load().turn.clone())
    }

    /// Accepts new connections with `certificate`, and keeps present ones. Returns whether the
    /// certificate has changed.
    pub(crate) fn set(&self, certificate: Certificate) -> bool {
        let is_new = self.0.load().chain != certificate.chain;
        self.0.store(Arc::new(certificate));
        is_new
    }
}

/// Reads the PEM files. `user` is the configuration key that needs them. Blocks.
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
    // Fails if the certificate does not match the key.
    let mut tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.clone(), private)
        .map_err(|error| failed(error.to_string()))?;
    tls.alpn_protocols = vec![HTTP.to_vec()];
    let mut turn = tls.clone();
    turn.alpn_protocols = vec![TURN.to_vec()];
    Ok(Certificate {
        config: Arc::new(tls),
        turn: Arc::new(turn),
        chain,
    })
}
