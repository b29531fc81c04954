//! Why participants do not come.

use std::time::Duration;

use crate::client::ClientError;
use crate::viewer::PrepareError;

/// How long a participant may take until its first packet.
pub(in crate::scenario) const PATIENCE: Duration = Duration::from_secs(30);

/// Why somebody could not join.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The server refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's description is not acceptable.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The server or the network ended it.
    #[error("{0}")]
    Ended(String),
    /// Nothing came.
    #[error("no media in {} s", PATIENCE.as_secs())]
    NoMedia,
    /// The server hung up.
    #[error("the call ended: {0}")]
    HungUp(String),
    /// ICE or DTLS came to nothing.
    #[error("no connection in {} s", PATIENCE.as_secs())]
    NotConnected,
}
