//! Connections to servers, plain or over TLS, and the trusted certificates.

use std::sync::{Arc, OnceLock};

use hyper::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::ClientError;

/// The trusted certificates. Clones share them.
#[derive(Debug, Clone)]
pub struct Trust(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    kind: Kind,
    /// The configuration, made on first use.
    config: OnceLock<Arc<ClientConfig>>,
}

#[derive(Debug)]
enum Kind {
    System,
    Anybody,
    Only(RootCertStore),
}

impl Trust {
    /// Trusts the system's certificates, or those in the file of the variable `SSL_CERT_FILE`.
    pub fn system() -> Self {
        Self::new(Kind::System)
    }

    /// Trusts all certificates, for servers with a self-signed one. Somebody on the path can read
    /// everything.
    pub fn anybody() -> Self {
        Self::new(Kind::Anybody)
    }

    /// Trusts certificates signed by `roots`. Malformed ones are skipped.
    pub fn only(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots);
        Self::new(Kind::Only(store))
    }

    fn new(kind: Kind) -> Self {
        let config = OnceLock::new();
        Self(Arc::new(Shared { kind, config }))
    }

    fn connector(&self) -> TlsConnector {
        let config = self.0.config.get_or_init(|| Arc::new(self.0.kind.config()));
        TlsConnector::from(Arc::clone(config))
    }
}

impl Kind {
    fn config(&self) -> ClientConfig {
        let builder = ClientConfig::builder();
        let roots = match self {
            Self::Anybody => {
                let verifier = Anybody(Arc::new(aws_lc_rs::default_provider()));
                return builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
                    .with_no_client_auth();
            }
            Self::Only(roots) => roots.clone(),
            Self::System => {
                let mut roots = RootCertStore::empty();
                // Without any, each server is refused with the reason.
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                roots
            }
        };
        builder.with_root_certificates(roots).with_no_client_auth()
    }
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A connection to a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to the host of `uri`. Its scheme is `plain`, or `secure` for TLS.
pub(super) async fn connect(
    uri: &Uri,
    [plain, secure]: [&str; 2],
    trust: &Trust,
) -> Result<Box<dyn Stream>, ClientError> {
    let wrong = || ClientError::Url(uri.to_string());
    let failed = |reason: String| ClientError::Connect {
        url: uri.to_string(),
        reason,
    };
    let authority = uri.authority().ok_or_else(wrong)?;
    let is_secure = match uri.scheme_str() {
        Some(scheme) if scheme == plain => false,
        Some(scheme) if scheme == secure => true,
        _ => return Err(wrong()),
    };
    let host = authority.host();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = authority
        .port_u16()
        .unwrap_or(if is_secure { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| failed(error.to_string()))?;
    // Otherwise a body would wait for the acknowledgement of the headers.
    let _ = stream.set_nodelay(true);
    if !is_secure {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
    let stream = trust.connector().connect(name, stream).await;
    let stream = stream.map_err(|error| {
        let advice = match trust.0.kind {
            Kind::Anybody => "",
            Kind::System | Kind::Only(_) => "; --insecure takes any certificate",
        };
        failed(format!("TLS: {error}{advice}"))
    })?;
    Ok(Box::new(stream))
}
