//! The errors of scenarios.

use std::io;

use super::crowd::JoinError;
use crate::browsers::BrowserError;
use crate::client::ClientError;
use crate::machine::{CoreError, usage::UsageError};
use crate::speech::EncodeError;
use crate::traffic::TrafficError;
use crate::viewer::PrepareError;

/// The reason why a scenario ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The traffic is impossible.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The server does not do what is needed before anyone can join.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// No participant can be created.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// Nothing can be sampled.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// There is no route to the server's host.
    #[error("the host of {url}: {source}")]
    Host {
        /// The server's URL.
        url: String,
        /// The system's error.
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
    /// The threads for the participants cannot start.
    #[error("the load threads: {0}")]
    Load(io::Error),
    /// The runtime for the signalling cannot start.
    #[error("the signalling's runtime: {0}")]
    Runtime(io::Error),
    /// What participants say cannot be encoded.
    #[error("what is said: {0}")]
    Speech(#[from] EncodeError),
    /// No participant could join.
    #[error("nobody got media; the last one to try: {0}")]
    Nobody(String),
    /// Viewers of a node of a cluster could not join.
    #[error("{failed} viewers got no media at {node}; the last one: {reason}")]
    Joins {
        /// The node.
        node: String,
        /// Their number.
        failed: u32,
        /// The reason of the last one.
        reason: String,
    },
    /// A browser does not do what it should.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// The load besides the browsers is no scenario.
    #[error("--among: {0}")]
    Words(#[from] WordsError),
    /// The load besides the browsers cannot start.
    #[error("the load besides the browsers: {0}")]
    Among(io::Error),
    /// The server's recordings cannot be read.
    #[error("recordings in {folder}: {source}")]
    Recordings {
        /// The folder.
        folder: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file system cannot be made to stall.
    #[error(
        "fsfreeze of {folder}: {reason}; it takes root, and a file system besides the system's own"
    )]
    Stall {
        /// The folder.
        folder: String,
        /// The error of fsfreeze.
        reason: String,
    },
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The reason why words name no scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WordsError {
    /// The scenario does not exist.
    #[error("what follows -- has to be a scenario, such as streaming or room: {0}")]
    Name(clap::Error),
    /// Its options are wrong. Contains clap's message.
    #[error("{0}")]
    Options(clap::Error),
}
