//! The file that a recording writes. All functions block.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use portunus_files::container::Edits;

use crate::disk::{Disk, Round};
use crate::new_file::{NewFile, Paths, create_file};
use crate::place::Places;
use crate::shared::{Claim, Shared};
use crate::{RecordError, RecorderConfig, Whose};

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Target {
    file: File,
    claim: Claim,
    disk: Disk,
    /// The requested name.
    name: String,
    paths: Paths,
    /// The length in bytes.
    len: u64,
    /// The bytes that are counted already.
    counted: u64,
}

impl Target {
    /// Makes the file and its folder.
    pub(crate) fn create(claim: Claim, places: &Places, name: &str) -> Result<Self, RecordError> {
        let shared = claim.shared();
        let NewFile { file, paths } = create_file(&shared.config, places, claim.path(), name)?;
        let folder = paths.complete.parent().unwrap_or(Path::new("."));
        let disk = shared.disks.of(folder).map_err(|error| {
            let _ = fs::remove_file(&paths.temporary);
            RecordError::Create {
                name: name.to_owned(),
                error,
            }
        })?;
        Ok(Self {
            file,
            claim,
            disk,
            name: name.to_owned(),
            paths,
            len: 0,
            counted: 0,
        })
    }

    /// The state that all recordings share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.claim.shared()
    }

    /// The owner, if the file has no session.
    pub(crate) fn whose(&self) -> Option<Arc<Whose>> {
        self.claim.whose().cloned()
    }

    fn config(&self) -> &RecorderConfig {
        &self.claim.shared().config
    }

    /// The disk of the file.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The path of the complete file.
    pub(crate) fn path(&self) -> &Path {
        &self.paths.complete
    }

    /// The requested path, which may have links in it.
    pub(crate) fn claimed(&self) -> &Path {
        self.claim.path()
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The greatest length in bytes.
    pub(crate) fn limit(&self) -> u64 {
        match self.config().max_file_bytes {
            0 => u64::MAX,
            limit => limit,
        }
    }

    /// Whether so many more bytes would be too many.
    pub(crate) fn is_full_with(&self, more: u64) -> bool {
        self.len.saturating_add(more) > self.limit()
    }

    /// Returns the error of a file that has reached its greatest length.
    pub(crate) fn full(&self) -> RecordError {
        RecordError::Full {
            name: self.name.clone(),
            limit: self.config().max_file_bytes,
        }
    }

    /// Checks the free space of the disk.
    pub(crate) fn check_room(&self, round: &mut Round) -> Result<(), RecordError> {
        let keep = self.config().keep_free_mb;
        match round.free(&self.file).is_some_and(|free| free < keep) {
            true => Err(RecordError::NoRoom {
                name: self.name.clone(),
                keep,
            }),
            false => Ok(()),
        }
    }

    /// Appends all of these bytes, or none.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.disk.wait();
        if let Err(error) = self.file.write_all(bytes) {
            // Incomplete data is removed.
            let _ = self.file.set_len(self.len);
            return Err(self.failed(error));
        }
        self.len += bytes.len() as u64;
        self.count();
        Ok(())
    }

    /// Applies these edits, and clears them.
    pub(crate) fn edit(&mut self, edits: &mut Edits) -> Result<(), RecordError> {
        let appended = self.append(&edits.append);
        let patched = appended.and_then(|()| {
            let patch = |(at, bytes): &(u64, Vec<u8>)| self.file.write_all_at(bytes, *at);
            let patched = edits.patches.iter().try_for_each(patch);
            patched.map_err(|error| self.failed(error))
        });
        edits.clear();
        patched
    }

    fn count(&mut self) {
        let new = self.len.saturating_sub(self.counted);
        self.claim.shared().counters.bytes.fetch_add(new, Relaxed);
        self.counted = self.len;
    }

    /// Gives the file its final name. Afterwards the name is free for others.
    pub(crate) fn leave(self) -> Result<(), RecordError> {
        let Paths {
            temporary,
            complete: path,
        } = &self.paths;
        if temporary != path {
            self.disk.wait();
            fs::rename(temporary, path).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Deletes the file.
    pub(crate) fn discard(self) {
        if let Err(error) = fs::remove_file(&self.paths.temporary) {
            tracing::warn!(file = self.name, "cannot be deleted: {error}");
        }
    }

    fn failed(&self, error: io::Error) -> RecordError {
        RecordError::Write {
            name: self.name.clone(),
            error,
        }
    }
}
