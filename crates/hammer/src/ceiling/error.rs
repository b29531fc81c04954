//! Errors of measuring a ceiling.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::machine::{CoreError, NamespaceError};
use crate::scenario::WordsError;
use crate::traffic::TrafficError;

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// The traffic is impossible.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// There are no namespaces.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A socket could not be opened.
    #[error("no socket on {ip}: {source}")]
    Socket {
        /// The address.
        ip: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Sending failed.
    #[error("sending: {0}")]
    Send(io::Error),
    /// The words do not name a scenario.
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
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
