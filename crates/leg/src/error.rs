//! Errors of opening a leg.

use portunus_media::IngestError;

/// The error of opening a leg, by the system or the configuration.
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
    /// The interface is not there.
    #[error(transparent)]
    Bind(IngestError),
}
