//! Errors of captures.

use std::io;
use std::path::PathBuf;

/// Why a capture cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be created.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The peer is captured already.
    #[error("packets are captured already, to {}", path.display())]
    AlreadyStarted {
        /// The file of that capture.
        path: PathBuf,
    },
    /// The peer is not captured.
    #[error("no packets are captured")]
    NotStarted,
    /// The maximum number of captures is running.
    #[error("{most} captures are running already")]
    TooMany {
        /// The maximum.
        most: usize,
    },
    /// The peer is gone.
    #[error("there is no such PeerConnection any more")]
    NoPeer,
}
