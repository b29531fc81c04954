//! TLS to a broker.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portunus_config::{Probe, Section};
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::verifier::Lenient;

/// The TLS options for a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerTls {
    /// Whether it is.
    pub tls_enable: bool,
    /// Whether the broker's certificate has to be of a known authority.
    pub tls_verify_peer: bool,
    /// Whether that certificate has to be for the name that is connected to.
    pub tls_verify_hostname: bool,
    /// The authorities (PEM). `None` means those of the system.
    #[serde(with = "portunus_config::optional")]
    pub tls_cacert: Option<PathBuf>,
    /// The certificate that is shown to the broker (PEM).
    #[serde(with = "portunus_config::optional")]
    pub tls_client_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[serde(with = "portunus_config::optional")]
    pub tls_client_key: Option<PathBuf>,
}

impl Default for BrokerTls {
    fn default() -> Self {
        BrokerTls {
            tls_enable: false,
            tls_verify_peer: true,
            tls_verify_hostname: true,
            tls_cacert: None,
            tls_client_cert: None,
            tls_client_key: None,
        }
    }
}

/// The errors of the files of TLS. The texts name the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be used.
    #[error("{key}: cannot use {}: {reason}", path.display())]
    File {
        /// The configuration key of the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The system knows no authorities.
    #[error("tls_cacert is needed: the system knows no certificate authorities ({0})")]
    NoAuthorities(String),
    /// The library refuses what was configured.
    #[error("TLS cannot be set up: {0}")]
    Library(String),
}

impl BrokerTls {
    /// Takes its keys of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        let tls: Self = section.keys();
        section.require(
            &["tls_client_cert", "tls_client_key"],
            tls.tls_client_cert.is_some() == tls.tls_client_key.is_some(),
            "tls_client_cert and tls_client_key belong together",
        );
        tls
    }

    /// Looks whether the files can be used that its keys name.
    pub fn probe(&self, probe: &mut Probe) {
        let files = [&self.tls_cacert, &self.tls_client_cert];
        if !self.tls_enable && files.iter().all(|file| file.is_none()) {
            return;
        }
        if let Some(path) = &self.tls_client_cert {
            probe.certificate("tls_client_cert", path);
        }
        // A URL may ask for TLS, too.
        let on = BrokerTls {
            tls_enable: true,
            ..self.clone()
        };
        match on.client().err() {
            Some(TlsError::File { key, path, reason }) => {
                probe.error(key, format!("cannot use {}: {reason}", path.display()));
            }
            Some(error) => probe.error("tls_enable", error),
            None => {}
        }
    }

    /// Returns the options for the library, or `None` without TLS. Reads the files.
    pub(crate) fn client(&self) -> Result<Option<Arc<ClientConfig>>, TlsError> {
        if !self.tls_enable {
            return Ok(None);
        }
        let library = |error: &dyn std::fmt::Display| TlsError::Library(error.to_string());
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| library(&error))?;
        let builder = if self.tls_verify_peer {
            let roots = Arc::new(self.roots()?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            let verifier = verifier.build().map_err(|error| library(&error))?;
            match self.tls_verify_hostname {
                true => builder.with_webpki_verifier(verifier),
                false => builder
                    .dangerous()
                    .with_custom_certificate_verifier(Lenient::any_name(verifier, provider)),
            }
        } else {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Lenient::anybody(provider))
        };
        let client = match (&self.tls_client_cert, &self.tls_client_key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates("tls_client_cert", certificate)?;
                let private = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| file("tls_client_key", key, error))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| file("tls_client_cert", certificate, error))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Some(Arc::new(client)))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.tls_cacert {
            Some(path) => {
                for certificate in certificates("tls_cacert", path)? {
                    roots
                        .add(certificate)
                        .map_err(|error| file("tls_cacert", path, error))?;
                }
            }
            None => {
                let native = rustls_native_certs::load_native_certs();
                let (added, _) = roots.add_parsable_certificates(native.certs);
                if added == 0 {
                    let first = native.errors.first();
                    let reason = first.map_or("none are installed".into(), ToString::to_string);
                    return Err(TlsError::NoAuthorities(reason));
                }
            }
        }
        Ok(roots)
    }
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| file(key, path, error))?;
    match read.is_empty() {
        true => Err(file(key, path, io::Error::other("it holds no certificate"))),
        false => Ok(read),
    }
}

fn file(key: &'static str, path: &Path, error: impl std::fmt::Display) -> TlsError {
    TlsError::File {
        key,
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn tls() -> BrokerTls {
        BrokerTls {
            tls_enable: true,
            ..BrokerTls::default()
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let with = |path: &Path| BrokerTls {
            tls_cacert: Some(path.to_owned()),
            ..tls()
        };
        let missing = with(&path).client().unwrap_err().to_string();
        assert!(missing.starts_with("tls_cacert: cannot use"), "{missing}");
        std::fs::write(&path, "nothing").unwrap();
        let empty = with(&path).client().unwrap_err().to_string();
        assert!(empty.ends_with("it holds no certificate"), "{empty}");
        let key = BrokerTls {
            tls_verify_peer: false,
            tls_client_cert: Some(path.clone()),
            tls_client_key: Some(path),
            ..tls()
        };
        assert!(key.client().is_err());
    }

    #[test]
    fn without_verification_no_authority_is_needed() {
        let lenient = BrokerTls {
            tls_verify_peer: false,
            ..tls()
        };
        assert!(lenient.client().unwrap().is_some());
        assert!(BrokerTls::default().client().unwrap().is_none());
    }
}
