//! Errors, by their cause.

/// Unusable keying material: this side's misuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The length of the master key or of the master salt does not fit the profile, in bytes.
    #[error("a master key of {key} and a salt of {salt} bytes do not fit the profile")]
    Length {
        /// The length of the key.
        key: usize,
        /// The length of the salt.
        salt: usize,
    },
    /// The crypto library refused the key.
    #[error("the crypto library refused the key")]
    Refused,
}

/// A packet that cannot be sealed: this side's misuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The packet is shorter than its header, or the buffer has no room for the tag.
    #[error("a packet of {len} bytes and its tag do not fit a buffer of {capacity} bytes")]
    Room {
        /// The length of the plain packet, in bytes.
        len: usize,
        /// The length of the buffer, in bytes.
        capacity: usize,
    },
    /// The key has sealed the most packets allowed: 2^31 SRTCP packets (RFC 3711 section 9.2).
    #[error("the key is used up")]
    Exhausted,
    /// The crypto library refused the operation.
    #[error("the crypto library refused to seal")]
    Refused,
}

/// A refused packet: caused by the peer, or by somebody on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Too short to hold a header and an authentication tag.
    #[error("truncated")]
    Truncated,
    /// Received before, or too old to check.
    #[error("replayed")]
    Replayed,
    /// The authentication tag is wrong, or an SRTCP packet is not encrypted.
    #[error("not authentic")]
    Unauthenticated,
    /// There are more synchronisation sources than the limit.
    #[error("too many sources")]
    TooManySources,
}

/// The crypto library refused an operation, or an authentication tag is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused;
