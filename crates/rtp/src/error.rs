//! Errors of bytes from a peer, and of requests to write some.

use thiserror::Error;

/// The reason why bytes were not parsed (the peer's fault) or not written (ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RtpError {
    /// The bytes end before their announced length.
    #[error("truncated: {expected} bytes expected, {actual} there")]
    Truncated {
        /// The bytes that the headers require so far.
        expected: usize,
        /// The bytes available.
        actual: usize,
    },
    /// Longer than any datagram (65,535 bytes).
    #[error("{actual} bytes do not fit a datagram")]
    TooLong {
        /// The bytes available.
        actual: usize,
    },
    /// Not RTP or RTCP version 2.
    #[error("version {0} instead of 2")]
    Version(u8),
    /// The padding count is zero or reaches into the headers.
    #[error("{padding} bytes of padding in {room} bytes")]
    Padding {
        /// The count in the last byte.
        padding: u8,
        /// The bytes that may be padding.
        room: usize,
    },
    /// A field has a value that its specification forbids.
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// The output slice is too short (our fault).
    #[error("{needed} bytes to write, room for {available}")]
    NoRoom {
        /// The bytes to write.
        needed: usize,
        /// The length of the slice.
        available: usize,
    },
    /// A value does not fit its field (our fault).
    #[error("{0} out of range")]
    OutOfRange(&'static str),
}
