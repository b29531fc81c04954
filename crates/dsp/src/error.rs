//! The errors of codecs and resamplers.

/// A codec or a resampler could not be made, or has refused its input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The error of libopus.
    #[error("libopus: {0}")]
    Opus(&'static str),
    /// The resampler could not be made.
    #[error("cannot resample {from} Hz to {to} Hz: {why}")]
    Resampler {
        /// The sampling rate of the input.
        from: u32,
        /// The sampling rate of the output.
        to: u32,
        /// The error of the resampler.
        why: String,
    },
}

impl From<opusic_c::ErrorCode> for CodecError {
    fn from(code: opusic_c::ErrorCode) -> Self {
        CodecError::Opus(code.message())
    }
}
