//! The errors of encoding and decoding sound.

use opusic_c::ErrorCode;

/// The reason why sound cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("libopus: {}", .0.message())]
pub struct EncodeError(pub(super) ErrorCode);
