//! Why something is not recorded.

use std::io::{self, ErrorKind};

use portunus_files::manifest::FileEnd;
use thiserror::Error;

/// Why something is not recorded, or not any further. Texts name files as clients did: where the server keeps them is
/// not for everybody.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The configuration says so.
    #[error("recording is switched off (recording.enabled)")]
    Disabled,
    /// The name may not be used.
    #[error("the file name {0:?} is empty, too long, has a control character or goes up by '..'")]
    Name(String),
    /// It is in no folder that files may be in.
    #[error("{0:?} is below none of the folders for recordings (recording.dir, recording.folders)")]
    Outside(String),
    /// The format is not one for what is to be recorded.
    #[error("{name:?} cannot be recorded as .{format}")]
    Unfit {
        /// As it was asked for.
        name: String,
        /// What names of its files end with.
        format: &'static str,
    },
    /// Another recording writes to it now.
    #[error("{0:?} is being recorded already")]
    Busy(String),
    /// There is a file of that name.
    #[error("there is a file {0:?} already")]
    Exists(String),
    /// The file or its folder cannot be made.
    #[error("{name:?} cannot be made: {error}")]
    Create {
        /// As it was asked for.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The disk does not answer, or too much waits for it.
    #[error("{0:?} is not recorded: the disk does not answer")]
    Stalled(String),
    /// It has become as long as files may be: what came before is in the file.
    #[error("{name:?} has reached {limit} bytes (recording.max_file_bytes)")]
    Full {
        /// As it was asked for.
        name: String,
        /// The most that a file may have.
        limit: u64,
    },
    /// The disk is to keep some room for others.
    #[error("{name:?} is not recorded: less than {keep} MiB are free (recording.keep_free_mb)")]
    NoRoom {
        /// As it was asked for.
        name: String,
        /// What is to stay free.
        keep: u64,
    },
    /// Its codec, size or rotation changes all the time, and each change is a file.
    #[error("{name:?} has {limit} files: what is recorded changes too often")]
    Parts {
        /// As it was asked for.
        name: String,
        /// The most files that a recording may have.
        limit: u32,
    },
    /// A fault of the server's own: what was written before is in the file.
    #[error("{name:?} is not recorded any more: a fault of the server, which its log tells of")]
    Fault {
        /// As it was asked for.
        name: String,
    },
    /// Writing failed: what was written before is in the file.
    #[error("{name:?} cannot be written any more: {error}")]
    Write {
        /// As it was asked for.
        name: String,
        /// What the system says.
        error: io::Error,
    },
}

impl RecordError {
    /// Whether the file can be completed all the same.
    pub(crate) fn leaves_room(&self) -> bool {
        matches!(self, RecordError::Full { .. } | RecordError::NoRoom { .. })
    }

    /// Why a file ended by it.
    pub(crate) fn end(&self) -> FileEnd {
        match self {
            RecordError::Full { .. } => FileEnd::Limit,
            RecordError::NoRoom { .. } => FileEnd::Full,
            RecordError::Write { error, .. } if error.kind() == ErrorKind::StorageFull => {
                FileEnd::Full
            }
            _ => FileEnd::Failed,
        }
    }
}
