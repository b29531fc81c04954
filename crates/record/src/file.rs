//! The files of recordings that the caller writes. All functions block.

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_files::manifest::FileEnd;

use crate::RecordError;
use crate::new_file::{NewFile, Paths, check_room, create_file};
use crate::pending::Unfinished;
use crate::place::Places;
use crate::session::{FileDone, Owner, complete};
use crate::shared::Claim;

/// A file of a recording that the caller writes. While it is open, its name may have a suffix
/// ([`RecordedFile::finish`]). No other recording may use its name meanwhile.
#[derive(Debug)]
pub struct RecordedFile {
    claim: Claim,
    /// The requested name.
    name: String,
    file: File,
    paths: Paths,
    made: Instant,
    bytes: AtomicU64,
    /// The duration of the content in ms. The greatest number means unknown.
    lasted: AtomicU64,
}

impl RecordedFile {
    pub(crate) fn create(claim: Claim, places: &Places, name: &str) -> Result<Self, RecordError> {
        let shared = Arc::clone(claim.shared());
        let created = create_file(&shared.config, places, claim.path(), name);
        if created.is_err() {
            shared.counters.failed.fetch_add(1, Relaxed);
        }
        let NewFile { file, paths } = created?;
        Ok(Self {
            claim,
            name: name.to_owned(),
            file,
            paths,
            made: Instant::now(),
            bytes: AtomicU64::new(0),
            lasted: AtomicU64::new(u64::MAX),
        })
    }

    /// Returns the name without folders.
    pub fn file_name(&self) -> String {
        let name = self.paths.complete.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the greatest length in bytes, or `None` if there is none.
    pub fn limit(&self) -> Option<u64> {
        Some(self.claim.shared().config.max_file_bytes).filter(|limit| *limit > 0)
    }

    /// Returns the error of a file that has reached its greatest length.
    pub fn full(&self, limit: u64) -> RecordError {
        RecordError::Full {
            name: self.name.clone(),
            limit,
        }
    }

    /// Returns the error of a failed write.
    pub fn failed(&self, error: io::Error) -> RecordError {
        RecordError::Write {
            name: self.name.clone(),
            error,
        }
    }

    /// Counts written bytes and frames, and frames dropped because of a slow disk.
    pub fn count(&self, bytes: u64, frames: u64, dropped: u64) {
        let counters = &self.claim.shared().counters;
        self.bytes.fetch_add(bytes, Relaxed);
        counters.bytes.fetch_add(bytes, Relaxed);
        counters.frames.fetch_add(frames, Relaxed);
        counters.dropped.fetch_add(dropped, Relaxed);
    }

    /// Sets the duration of the content. The default is the time for which it was open.
    pub fn lasts(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.lasted.store(millis, Relaxed);
    }

    /// Checks the free space of the disk.
    pub fn check_room(&self) -> Result<(), RecordError> {
        let disk = rustix::fs::fstatvfs(&self.file);
        let keep = self.claim.shared().config.keep_free_mb;
        check_room(disk, keep, || self.name.clone())
    }

    /// Gives the file its final name. `wrong` is the error that ended it, if any.
    pub fn finish(self, wrong: Option<&RecordError>) -> Result<(), RecordError> {
        let Paths {
            temporary,
            complete: path,
        } = &self.paths;
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
        // The length on the disk includes headers.
        let bytes = self.file.metadata().map(|it| it.len());
        let bytes = bytes.unwrap_or_else(|_| self.bytes.load(Relaxed));
        let whose = self.claim.whose().cloned();
        let _unfinished = Unfinished::new(&shared.pending);
        // The name is free before the end is reported.
        drop(self.claim);
        let done = FileDone {
            path: self.paths.complete,
            end,
            error: None,
            duration: lasted,
            bytes,
        };
        let owner = Owner {
            participant: None,
            whose: whose.as_deref(),
        };
        complete(None, owner, &shared, done);
        renamed
    }
}
