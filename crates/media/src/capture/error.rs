//! Why a capture does not begin or end.

use std::io;
use std::path::PathBuf;

/// Why a capture does not begin or end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be made.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// What was to be made.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The peer is captured already.
    #[error("packets are captured already, to {}", path.display())]
    AlreadyStarted {
        /// The file that they go to.
        path: PathBuf,
    },
    /// The peer is not captured.
    #[error("no packets are captured")]
    NotStarted,
    /// There are as many captures as there may be.
    #[error("{most} captures are running already")]
    TooMany {
        /// How many there may be.
        most: usize,
    },
    /// The peer is gone.
    #[error("there is no such PeerConnection any more")]
    NoPeer,
}
