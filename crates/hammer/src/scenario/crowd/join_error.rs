//! The errors of joining.

use std::time::Duration;

use crate::client::ClientError;
use crate::viewer::PrepareError;

/// The longest time until a participant's first packet.
pub(in crate::scenario) const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why a participant could not join.
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
    /// No media arrived.
    #[error("no media in {} s", PATIENCE.as_secs())]
    NoMedia,
    /// The server hung up.
    #[error("the call ended: {0}")]
    HungUp(String),
    /// The server ended the session.
    #[error("the server ended the session: {0}")]
    Dismissed(String),
    /// ICE or DTLS failed.
    #[error("no connection in {} s", PATIENCE.as_secs())]
    NotConnected,
}
