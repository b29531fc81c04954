//! TLS: rustls with AWS-LC, and the certificates of the system or of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// The reason why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file of authorities is of no use.
    #[error("cannot take certificates from {}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// rustls refuses.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] tokio_rustls::rustls::Error),
}

/// Returns the options of a client. The certificates of the PEM file `authorities` replace the
/// system's.
pub fn client(authorities: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(path) => add_file(&mut roots, path).map_err(|reason| TlsError::Authorities {
            path: path.to_owned(),
            reason,
        })?,
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there are none in it".to_owned());
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}
