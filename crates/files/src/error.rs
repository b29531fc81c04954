//! What can be wrong with a file.

use std::io;

use portunus_rtp::RtpError;
use thiserror::Error;

use crate::mjr::MjrError;
use crate::track::Kind;

/// Why a file is not played, or not any further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The name may not be used.
    #[error("the file name {0:?} is empty, has a NUL or goes up by '..'")]
    Path(String),
    /// It is in no folder that files may be asked for in.
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
    /// Writing what was read failed.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// No container that is known.
    #[error("neither Ogg, WebM, Matroska nor MP4, and not named .alaw or .mulaw")]
    UnknownType,
    /// A track that was asked for has a codec that WebRTC cannot carry, or that is not supported.
    #[error("track {track} ({kind}) is {codec}: {advice}")]
    Codec {
        /// The track's number in the file, from 1.
        track: u64,
        /// What it is.
        kind: Kind,
        /// Its codec, as the container names it.
        codec: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// It is no recording of Janus's format, or a corrupt one.
    #[error("{0}")]
    Recording(#[from] MjrError),
    /// A recording of a codec that is not known.
    #[error("a recording of {codec:?}, which is no codec of {medium}")]
    RecordedCodec {
        /// What the recording says that it is: `audio`, `video` or `data`.
        medium: &'static str,
        /// Its codec, as the recording names it.
        codec: String,
    },
    /// A form of the container that is not supported.
    #[error("{0}")]
    Unsupported(&'static str),
    /// There is no track of the kinds asked for.
    #[error("no {0} track in it")]
    NoTrack(&'static str),
    /// There is not a single frame in it.
    #[error("no media in it")]
    Empty,
    /// There are frames in it, but nothing in them that could be sent.
    #[error("no packets come of it: all of its frames are empty")]
    NoPackets,
    /// It ends in the middle of something.
    #[error("truncated after {0} bytes")]
    Truncated(u64),
    /// It contradicts its format.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Something in it is longer than what is read.
    #[error("{what} of {len} bytes is longer than {max}")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its length in bytes, as the file says.
        len: u64,
        /// The most that is read, in bytes.
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
