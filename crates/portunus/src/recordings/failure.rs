//! The failures of commands on recordings.

/// The reason why a command has not done everything.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The reasons were printed already.
    #[error("")]
    Told,
    #[error("{0}")]
    Other(String),
    #[error(
        "ffmpeg is not installed, or not in PATH: it decodes and encodes what is composed. On Debian and Ubuntu: apt install ffmpeg"
    )]
    NoFfmpeg,
}
