//! Files of recordings: where they are made, and what they are called. All of it is blocking.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_files::manifest::FileEnd;
use rustix::fs::OFlags;

use crate::place::Places;
use crate::session::Entry;
use crate::shared::{Claim, Unfinished};
use crate::{RecordError, RecorderConfig};

/// A file of a recording that somebody else writes. What it is called while it is open may differ from its name
/// ([`RecordedFile::finish`]). No other recording may have that name meanwhile.
#[derive(Debug)]
pub struct RecordedFile {
    claim: Claim,
    /// As it was asked for.
    name: String,
    file: File,
    /// Where it is while it is written, and then.
    paths: (PathBuf, PathBuf),
    made: Instant,
    bytes: AtomicU64,
    /// How long what is in it is, in ms; the greatest number: nobody has said it.
    lasted: AtomicU64,
}

impl RecordedFile {
    pub(crate) fn create(claim: Claim, places: &Places, name: &str) -> Result<Self, RecordError> {
        let shared = Arc::clone(claim.shared());
        let set_up = (&shared.config, places);
        let created = create_file(set_up, claim.path(), name);
        if created.is_err() {
            shared.counters.failed.fetch_add(1, Relaxed);
        }
        let (file, temporary, path) = created?;
        Ok(Self {
            claim,
            name: name.to_owned(),
            file,
            paths: (temporary, path),
            made: Instant::now(),
            bytes: AtomicU64::new(0),
            lasted: AtomicU64::new(u64::MAX),
        })
    }

    /// Its name, without folders.
    pub fn file_name(&self) -> String {
        let name = self.paths.1.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that it may have; none: any.
    pub fn limit(&self) -> Option<u64> {
        Some(self.claim.shared().config.max_file_bytes).filter(|limit| *limit > 0)
    }

    /// The error of a file that has reached its limit.
    pub fn full(&self, limit: u64) -> RecordError {
        RecordError::Full {
            name: self.name.clone(),
            limit,
        }
    }

    /// The error of a file that cannot be written.
    pub fn failed(&self, error: io::Error) -> RecordError {
        RecordError::Write {
            name: self.name.clone(),
            error,
        }
    }

    /// Counts what was written, and frames that were not because the disk was too slow.
    pub fn count(&self, bytes: u64, frames: u64, dropped: u64) {
        let counters = &self.claim.shared().counters;
        self.bytes.fetch_add(bytes, Relaxed);
        counters.bytes.fetch_add(bytes, Relaxed);
        counters.frames.fetch_add(frames, Relaxed);
        counters.dropped.fetch_add(dropped, Relaxed);
    }

    /// Says how long what is in it is by now. Otherwise it is taken for as long as it was open.
    pub fn lasts(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.lasted.store(millis, Relaxed);
    }

    /// Whether the disk has room for more: some of it is left for others.
    pub fn check_room(&self) -> Result<(), RecordError> {
        let disk = rustix::fs::fstatvfs(&self.file);
        let keep = self.claim.shared().config.keep_free_mb;
        check_room(disk, keep, || self.name.clone())
    }

    /// Gives the file, complete or as far as it came, the name that it is to have; with what went wrong, if something has.
    pub fn finish(self, wrong: Option<&RecordError>) -> Result<(), RecordError> {
        let (temporary, path) = &self.paths;
        let renamed = match temporary == path {
            true => Ok(()),
            false => fs::rename(temporary, path),
        };
        let renamed = renamed.map_err(|error| self.failed(error));
        let shared = Arc::clone(self.claim.shared());
        let end = match wrong.or(renamed.as_ref().err()) {
            None => FileEnd::Stopped,
            Some(error) => {
                shared.counters.failed.fetch_add(1, Relaxed);
                error.end()
            }
        };
        let lasted = match self.lasted.load(Relaxed) {
            u64::MAX => self.made.elapsed(),
            millis => Duration::from_millis(millis),
        };
        // With headers, as far as the disk says it.
        let bytes = self.file.metadata().map(|it| it.len());
        let bytes = bytes.unwrap_or_else(|_| self.bytes.load(Relaxed));
        let (_, path) = self.paths;
        let whose = self.claim.whose().cloned();
        let _unfinished = Unfinished::new(&shared);
        // Whoever hears of the end finds the name free.
        drop(self.claim);
        let done = (end, None, lasted, bytes);
        Entry::complete(None, (None, whose.as_deref()), &shared, path, done);
        renamed
    }
}

/// Makes a file and its folder; gives it with where it is while it is written, and then.
pub(crate) fn create_file(
    (config, places): (&RecorderConfig, &Places),
    path: &Path,
    name: &str,
) -> Result<(File, PathBuf, PathBuf), RecordError> {
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
        // What a link leads to is not ours to empty.
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
    Ok((file, temporary, path))
}

/// Locks a file that is being written, so that `portunus recordings repair` leaves it alone. Where that is not possible it is as well
/// without.
pub(crate) fn hold(file: &File) {
    let _ = file.try_lock();
}

/// Whether the disk has so many MiB to spare; one that does not say is taken to have them.
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
