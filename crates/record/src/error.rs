//! The errors of recordings.

use std::io::{self, ErrorKind};

use portunus_files::manifest::FileEnd;
use thiserror::Error;

/// The reason why something is not recorded, or why a recording has ended. The texts name files as
/// clients do, because the folders of the server are confidential.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Recording is turned off in the configuration.
    #[error("recording is switched off (recording.enabled)")]
    Disabled,
    /// The name is not allowed.
    #[error("the file name {0:?} is empty, too long, has a control character or goes up by '..'")]
    Name(String),
    /// The folder is not one of the configured ones.
    #[error("{0:?} is below none of the folders for recordings (recording.dir, recording.folders)")]
    Outside(String),
    /// The format does not fit the codec.
    #[error("{name:?} cannot be recorded as .{format}")]
    Unfit {
        /// The requested name.
        name: String,
        /// The extension of the format.
        format: &'static str,
    },
    /// Another recording writes to the file now.
    #[error("{0:?} is being recorded already")]
    Busy(String),
    /// The file exists.
    #[error("there is a file {0:?} already")]
    Exists(String),
    /// The file or its folder cannot be made.
    #[error("{name:?} cannot be made: {error}")]
    Create {
        /// The requested name.
        name: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The disk does not answer, or too many requests wait for it.
    #[error("{0:?} is not recorded: the disk does not answer")]
    Stalled(String),
    /// The file has reached its greatest length. It is complete up to there.
    #[error("{name:?} has reached {limit} bytes (recording.max_file_bytes)")]
    Full {
        /// The requested name.
        name: String,
        /// The greatest length in bytes.
        limit: u64,
    },
    /// The disk has too little free space.
    #[error("{name:?} is not recorded: less than {keep} MiB are free (recording.keep_free_mb)")]
    NoRoom {
        /// The requested name.
        name: String,
        /// The MiB to keep free.
        keep: u64,
    },
    /// Codec, size or rotation changed too often, and each change needs a file.
    #[error("{name:?} has {limit} files: what is recorded changes too often")]
    Parts {
        /// The requested name.
        name: String,
        /// The limit of files of a recording.
        limit: u32,
    },
    /// A fault of the server. The file is complete up to there.
    #[error("{name:?} is not recorded any more: a fault of the server, which its log tells of")]
    Fault {
        /// The requested name.
        name: String,
    },
    /// Writing failed. The file is complete up to there.
    #[error("{name:?} cannot be written any more: {error}")]
    Write {
        /// The requested name.
        name: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl RecordError {
    /// Whether the file can still be completed.
    pub(crate) fn leaves_room(&self) -> bool {
        matches!(self, RecordError::Full { .. } | RecordError::NoRoom { .. })
    }

    /// Returns the reason for the manifest.
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
