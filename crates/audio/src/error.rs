//! The errors of rooms and legs.

use std::io;

use portunus_dsp::RoomError;
use portunus_files::FileError;
use portunus_leg::LegError;
use portunus_record::RecordError;

/// The reason why a room refuses a request, or why something in it has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    /// The system cannot start a thread.
    #[error("cannot start a DSP thread: {0}")]
    Thread(io::Error),
    /// The file cannot be played.
    #[error("the file cannot be played: {0}")]
    File(#[from] FileError),
    /// The file has no Opus track.
    #[error("the file has no Opus in it")]
    NotOpus,
    /// The file cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The file has reached the greatest length of its format. It is complete up to there.
    #[error("the file is as long as a WAV file can be")]
    Longest,
    /// The room is being recorded already.
    #[error("the room is being recorded already")]
    Recorded,
    /// The disk is so slow that too many earlier recordings are still being written.
    #[error("the former recordings of the room are still being written")]
    Unwritten,
    /// The room refuses.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The event backlog is full, so the room starts nothing whose end it could not report.
    #[error("too much has happened in the room that nobody has taken note of yet")]
    Behind,
    /// The thread has ended, because the server stops or by a fault.
    #[error("the audio room is gone")]
    Gone,
}

/// The reason why a leg of plain RTP cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RtpLegError {
    /// There is no free port, or no such interface.
    #[error(transparent)]
    Leg(#[from] LegError),
    /// The number of an extension is not in 1 to 14 (RFC 8285 section 4.2).
    #[error("extensions have the numbers 1 to 14, not {0}")]
    Extension(u8),
}
