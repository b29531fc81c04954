//! What a codec or a resampler may refuse.

/// A codec or a resampler could not be made, or refused what it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// libopus refused, and says why.
    #[error("libopus: {0}")]
    Opus(&'static str),
    /// The resampler could not be made.
    #[error("cannot resample {from} Hz to {to} Hz: {why}")]
    Resampler {
        /// Samples a second that come in.
        from: u32,
        /// Samples a second that were wanted.
        to: u32,
        /// What the resampler says.
        why: String,
    },
}

impl From<opusic_c::ErrorCode> for CodecError {
    fn from(code: opusic_c::ErrorCode) -> Self {
        CodecError::Opus(code.message())
    }
}
