//! The errors of `hammer figures`.

use crate::lab::LabError;

/// The reason why no report was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FiguresError {
    /// A name is no figure's.
    #[error("there is no figure {0}; --list shows them")]
    Unknown(String),
    /// A name before a command is no peer's.
    #[error("--peer {0}=…: there is no such peer")]
    UnknownPeer(String),
    /// The state cannot be used.
    #[error("{0}")]
    State(String),
    /// The namespaces cannot be made, or the user interrupted.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// No figure could be measured.
    #[error("nothing could be measured: {0}")]
    Nothing(String),
    /// An output cannot be written.
    #[error("{0}")]
    Write(String),
}
