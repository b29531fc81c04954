//! Why there is no leg.

use portunus_media::IngestError;

/// Why a leg could not be opened: the system's doing, or the configuration's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LegError {
    /// No even port of the range is free together with the one above it.
    #[error("no pair of UDP ports from {first} to {last} is free")]
    NoPorts {
        /// The first of the range.
        first: u16,
        /// The last.
        last: u16,
    },
    /// The interface to listen on is not there.
    #[error(transparent)]
    Bind(IngestError),
}
