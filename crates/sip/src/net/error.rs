//! Why an endpoint does not start.

use std::io;
use std::path::PathBuf;

use super::config::Listen;

/// Why an endpoint does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {}/{}: {error}", listen.address, listen.transport.param())]
    Listen {
        /// The address.
        listen: Listen,
        /// The error of the system.
        error: io::Error,
    },
    /// There is a TLS listener without a certificate or key.
    #[error("TLS needs a certificate and a key")]
    NoCertificate,
    /// A file of certificates or of a key cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// rustls refuses the configuration.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
}
