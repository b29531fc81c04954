//! Why sound cannot be encoded or decoded.

use opusic_c::ErrorCode;

/// Why something cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("libopus: {}", .0.message())]
pub struct EncodeError(pub(super) ErrorCode);
