//! The errors of files.

use std::io;

use portunus_rtp::RtpError;
use thiserror::Error;

use crate::mjr::MjrError;
use crate::track::Kind;

/// The reason why a file is not played, or not to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The name is not allowed.
    #[error("the file name {0:?} is empty, has a NUL or goes up by '..'")]
    Path(String),
    /// The file is in none of the allowed folders.
    #[error(
        "{0:?} is in none of the folders that files may be asked for in (`folders` of the plugin's section)"
    )]
    Outside(String),
    /// It is a folder, a pipe or a device.
    #[error("not a regular file")]
    NotAFile,
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Writing the output failed.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// The container is unknown.
    #[error("neither Ogg, WebM, Matroska nor MP4, and not named .alaw or .mulaw")]
    UnknownType,
    /// A wanted track has a codec that WebRTC cannot carry, or that is not supported.
    #[error("track {track} ({kind}) is {codec}: {advice}")]
    Codec {
        /// The number of the track in the file, from 1.
        track: u64,
        /// The kind of the track.
        kind: Kind,
        /// Its codec, as the container names it.
        codec: String,
        /// A remedy.
        advice: &'static str,
    },
    /// It is not in Janus's format, or is corrupt.
    #[error("{0}")]
    Recording(#[from] MjrError),
    /// The recording has an unknown codec.
    #[error("a recording of {codec:?}, which is no codec of {medium}")]
    RecordedCodec {
        /// The medium in the recording's header: `audio`, `video` or `data`.
        medium: &'static str,
        /// Its codec, as the recording names it.
        codec: String,
    },
    /// A variant of the container is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    /// It has no track of the wanted kinds.
    #[error("no {0} track in it")]
    NoTrack(&'static str),
    /// It has no frames.
    #[error("no media in it")]
    Empty,
    /// It has frames, but no packets could be made of them.
    #[error("no packets come of it: all of its frames are empty")]
    NoPackets,
    /// It ends in the middle of something.
    #[error("truncated after {0} bytes")]
    Truncated(u64),
    /// It contradicts its format.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Something in it is too long.
    #[error("{what} of {len} bytes is longer than {max}")]
    TooLong {
        /// The name of it.
        what: &'static str,
        /// Its length in bytes, according to the file.
        len: u64,
        /// The greatest length in bytes.
        max: u64,
    },
}

impl FileError {
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }
}

impl From<RtpError> for FileError {
    fn from(error: RtpError) -> Self {
        Self::Corrupt(format!("a frame: {error}"))
    }
}
