//! Making the files of recordings. All functions block.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::place::Places;
use crate::{RecordError, RecorderConfig};

/// A file that was made, and its paths.
pub(crate) struct NewFile {
    pub(crate) file: File,
    pub(crate) paths: Paths,
}

/// The paths of a file.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The path while it is written.
    pub(crate) temporary: PathBuf,
    /// The path once it is complete.
    pub(crate) complete: PathBuf,
}

/// Makes a file and its folder.
pub(crate) fn create_file(
    config: &RecorderConfig,
    places: &Places,
    path: &Path,
    name: &str,
) -> Result<NewFile, RecordError> {
    let name = || name.to_owned();
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => RecordError::Exists(name()),
        _ => RecordError::Create {
            name: name(),
            error,
        },
    };
    let made = places.make_folder(path);
    let path = made.map_err(|error| RecordError::Create {
        name: name(),
        error,
    })?;
    if let Some(folder) = path.parent() {
        check_room(rustix::fs::statvfs(folder), config.keep_free_mb, name)?;
    }
    let temporary = match config.temporary.as_str() {
        "" => path.clone(),
        suffix => PathBuf::from(format!("{}.{suffix}", path.display())),
    };
    let mut options = OpenOptions::new();
    if config.overwrite {
        // The target of a link must not be emptied.
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags);
    } else {
        if temporary != path && path.symlink_metadata().is_ok() {
            return Err(RecordError::Exists(name()));
        }
        options.write(true).create_new(true);
    }
    let file = options.open(&temporary).map_err(failed)?;
    hold(&file);
    let paths = Paths {
        temporary,
        complete: path,
    };
    Ok(NewFile { file, paths })
}

/// Locks a file that is being written, so that `portunus recordings repair` leaves it alone.
/// Failure is ignored.
pub(crate) fn hold(file: &File) {
    let _ = file.try_lock();
}

/// Checks that the disk has so many free MiB. An unknown number is accepted.
pub(crate) fn check_room(
    disk: rustix::io::Result<rustix::fs::StatVfs>,
    keep: u64,
    name: impl Fn() -> String,
) -> Result<(), RecordError> {
    let free = disk.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free >> 20 < keep {
        true => Err(RecordError::NoRoom { name: name(), keep }),
        false => Ok(()),
    }
}
