//! Why something is not done.

use std::io;

use portunus_dsp::RoomError;
use portunus_files::FileError;
use portunus_leg::LegError;
use portunus_record::RecordError;

/// Why a room does not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    /// The system gives no thread.
    #[error("cannot start a DSP thread: {0}")]
    Thread(io::Error),
    /// A file cannot be played.
    #[error("the file cannot be played: {0}")]
    File(#[from] FileError),
    /// A file has no track of Opus.
    #[error("the file has no Opus in it")]
    NotOpus,
    /// A file cannot be recorded to.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file has become as long as its form can be; what came until then is in it.
    #[error("the file is as long as a WAV file can be")]
    Longest,
    /// The room is being recorded already.
    #[error("the room is being recorded already")]
    Recorded,
    /// The disk is so slow that many former recordings are still being written.
    #[error("the former recordings of the room are still being written")]
    Unwritten,
    /// The room refuses.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// So many events of the room were not taken that it begins nothing of whose end it would have to tell.
    #[error("too much has happened in the room that nobody has taken note of yet")]
    Behind,
    /// The thread has ended: the server does.
    #[error("the audio room is gone")]
    Gone,
}

/// Why there is no leg of plain RTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RtpLegError {
    /// No ports, or no such interface.
    #[error(transparent)]
    Leg(#[from] LegError),
    /// An extension's number is not 1 to 14 (RFC 8285 section 4.2).
    #[error("extensions have the numbers 1 to 14, not {0}")]
    Extension(u8),
}
