//! What can be wrong with bytes from a peer, and with a request to write some.

use thiserror::Error;

/// Why something was not parsed (the peer's fault) or not written (ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RtpError {
    /// The bytes end before what they announce.
    #[error("truncated: {expected} bytes expected, {actual} there")]
    Truncated {
        /// Bytes that the headers read so far ask for.
        expected: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// Longer than any datagram (65,535 bytes).
    #[error("{actual} bytes do not fit a datagram")]
    TooLong {
        /// Bytes that are there.
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
        /// Bytes that may be padding.
        room: usize,
    },
    /// A field has a value that its specification forbids.
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// The output slice is too short (our fault).
    #[error("{needed} bytes to write, room for {available}")]
    NoRoom {
        /// Bytes to be written.
        needed: usize,
        /// Length of the slice given.
        available: usize,
    },
    /// A value to be written does not fit its field (our fault).
    #[error("{0} out of range")]
    OutOfRange(&'static str),
}
