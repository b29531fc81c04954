//! Why a ceiling cannot be measured.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::machine::{CoreError, NamespaceError};
use crate::scenario::WordsError;
use crate::traffic::TrafficError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// No namespaces.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A socket could not be made.
    #[error("no socket on {ip}: {source}")]
    Socket {
        /// Where.
        ip: IpAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Sending failed.
    #[error("sending: {0}")]
    Send(io::Error),
    /// The words for a scenario say none.
    #[error(transparent)]
    Scenario(#[from] WordsError),
    /// The crypto library refused.
    #[error("the crypto library refused to seal")]
    Crypto,
    /// A thread ended unexpectedly.
    #[error("a measuring thread ended unexpectedly")]
    Thread,
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
