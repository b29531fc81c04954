//! TLS on both sides: rustls with AWS-LC (RFC 5922).

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::message::Host;

use super::config::TlsFiles;
use super::error::StartError;

/// Our certificate with its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl TlsFiles {
    /// Checks the files.
    pub fn check(&self) -> Result<(), StartError> {
        connector(self)?;
        if self.certificate.is_some() {
            acceptor(self)?;
        }
        Ok(())
    }
}

/// Both sides of TLS. They can change while connections are open, which stay as they are. Cheap to
/// clone.
#[derive(Clone)]
pub(super) struct Tls(Arc<Mutex<Sides>>);

struct Sides {
    connector: TlsConnector,
    acceptor: Option<TlsAcceptor>,
    /// The certificate.
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// Reads the files. `is_listening` says that connections by TLS are accepted, too.
    pub(super) fn new(files: &TlsFiles, is_listening: bool) -> Result<Self, StartError> {
        let sides = Sides::read(files, is_listening)?;
        Ok(Tls(Arc::new(Mutex::new(sides))))
    }

    pub(super) fn connector(&self) -> TlsConnector {
        self.sides().connector.clone()
    }

    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.sides().acceptor.clone()
    }

    /// Reads the files again, for new connections. Returns whether the certificate has changed. An
    /// error changes nothing.
    pub(super) fn reload(&self, files: &TlsFiles) -> Result<bool, StartError> {
        let is_listening = self.sides().acceptor.is_some();
        let new = Sides::read(files, is_listening)?;
        let mut sides = self.sides();
        let is_new = sides.chain != new.chain;
        *sides = new;
        Ok(is_new)
    }

    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Sides {
    fn read(files: &TlsFiles, is_listening: bool) -> Result<Self, StartError> {
        Ok(Sides {
            connector: connector(files)?,
            acceptor: is_listening.then(|| acceptor(files)).transpose()?,
            chain: identity(files)?.map(|(chain, _)| chain).unwrap_or_default(),
        })
    }
}

/// Returns the client side.
fn connector(files: &TlsFiles) -> Result<TlsConnector, StartError> {
    let mut roots = RootCertStore::empty();
    // UDP works without authorities.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = &files.authorities {
        for certificate in certificates(path)? {
            roots.add(certificate)?;
        }
    }
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(roots);
    let config = match identity(files)? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the server side.
fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, StartError> {
    let (chain, key) = identity(files)?.ok_or(StartError::NoCertificate)?;
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the name that a server's certificate must have: the domain of the URI (RFC 5922 section
/// 7.3).
pub(super) fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
        Host::Address(address) => Some(ServerName::IpAddress((*address).into())),
    }
}

fn identity(files: &TlsFiles) -> Result<Option<Identity>, StartError> {
    let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(None);
    };
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| StartError::File {
        path: key.clone(),
        reason: error.to_string(),
    })?;
    Ok(Some((certificates(certificate)?, key)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let failed = |reason| StartError::File {
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        Err(failed("there are no certificates in it".to_owned()))
    } else {
        Ok(certificates)
    }
}
