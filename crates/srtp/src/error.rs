//! What can go wrong, and whose doing it is.

/// Keying material that no session keys can be made of: this side's misuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The master key or the master salt has another length than the profile asks for, in bytes.
    #[error("a master key of {key} and a salt of {salt} bytes do not fit the profile")]
    Length {
        /// Length of the key given.
        key: usize,
        /// Length of the salt given.
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
    /// The packet is shorter than its header, or the buffer has no room for what is appended.
    #[error("a packet of {len} bytes and its tag do not fit a buffer of {capacity} bytes")]
    Room {
        /// Length of the plain packet, in bytes.
        len: usize,
        /// Length of the buffer, in bytes.
        capacity: usize,
    },
    /// The key has sealed as many packets as it may: 2^31 SRTCP packets (RFC 3711 section 9.2).
    #[error("the key is used up")]
    Exhausted,
    /// The crypto library refused the operation.
    #[error("the crypto library refused to seal")]
    Refused,
}

/// A packet that is refused: the peer's doing, or that of someone in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Too short to hold a header and an authentication tag.
    #[error("truncated")]
    Truncated,
    /// Received before, or too old to tell.
    #[error("replayed")]
    Replayed,
    /// The authentication tag is wrong, or an SRTCP packet is not encrypted.
    #[error("not authentic")]
    Unauthenticated,
    /// More synchronisation sources than the limit.
    #[error("too many sources")]
    TooManySources,
}
