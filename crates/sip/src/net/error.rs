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
        /// Which.
        listen: Listen,
        /// What the system said.
        error: io::Error,
    },
    /// TLS is to be listened on, but there is no certificate or key for it.
    #[error("TLS needs a certificate and a key")]
    NoCertificate,
    /// A file of certificates or of a key is of no use.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// rustls refuses.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
}
