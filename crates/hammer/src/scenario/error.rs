//! Why a scenario ends before its time.

use std::io;

use super::crowd::JoinError;
use crate::client::ClientError;
use crate::machine::{CoreError, usage::UsageError};
use crate::speech::EncodeError;
use crate::traffic::TrafficError;
use crate::viewer::PrepareError;

/// Why a scenario ends before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The server does not do what is needed before anyone can join.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// No participant can be made at all.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// Nothing can be sampled.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// No way to the server's host.
    #[error("the host of {url}: {source}")]
    Host {
        /// The server.
        url: String,
        /// What the system says.
        source: io::Error,
    },
    /// A core cannot be used.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The source of media cannot start.
    #[error("the source: {0}")]
    Source(io::Error),
    /// The sources of media cannot be published.
    #[error("publishing: {0}")]
    Publish(#[from] JoinError),
    /// No threads for the participants.
    #[error("the load threads: {0}")]
    Load(io::Error),
    /// No runtime for the signalling.
    #[error("the signalling's runtime: {0}")]
    Runtime(io::Error),
    /// What participants say cannot be encoded.
    #[error("what is said: {0}")]
    Speech(#[from] EncodeError),
    /// Nobody could join.
    #[error("nobody got media; the last one to try: {0}")]
    Nobody(String),
    /// What the server recorded cannot be looked at.
    #[error("recordings in {folder}: {source}")]
    Recordings {
        /// Where.
        folder: String,
        /// What the system says.
        source: io::Error,
    },
    /// The file system cannot be made to stall.
    #[error(
        "fsfreeze of {folder}: {reason}; it takes root, and a file system besides the system's own"
    )]
    Stall {
        /// Where.
        folder: String,
        /// What fsfreeze says.
        reason: String,
    },
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Where.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}
