//! The file that a recording writes. All of it is blocking.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use portunus_files::container::Edits;

use crate::disk::{Disk, Round};
use crate::file::create_file;
use crate::place::Places;
use crate::shared::{Claim, Shared};
use crate::{RecordError, RecorderConfig, Whose};

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Target {
    file: File,
    claim: Claim,
    disk: Disk,
    /// As it was asked for.
    name: String,
    /// Where it is while it is written, and then.
    paths: (PathBuf, PathBuf),
    /// Bytes that are in it.
    len: u64,
    /// What of it is counted.
    counted: u64,
}

impl Target {
    /// Makes the file, and its folder.
    pub(crate) fn create(claim: Claim, places: &Places, name: &str) -> Result<Self, RecordError> {
        let shared = claim.shared();
        let set_up = (&shared.config, places);
        let (file, temporary, path) = create_file(set_up, claim.path(), name)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let disk = shared.disks.of(folder).map_err(|error| {
            let _ = fs::remove_file(&temporary);
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
            paths: (temporary, path),
            len: 0,
            counted: 0,
        })
    }

    /// What all recordings share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.claim.shared()
    }

    /// Whose it is, if nothing else says it.
    pub(crate) fn whose(&self) -> Option<Arc<Whose>> {
        self.claim.whose().cloned()
    }

    fn config(&self) -> &RecorderConfig {
        &self.claim.shared().config
    }

    /// The disk that it is on.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Where it is once it is complete.
    pub(crate) fn path(&self) -> &Path {
        &self.paths.1
    }

    /// The same as it was asked for: with links in it, if there are any.
    pub(crate) fn claimed(&self) -> &Path {
        self.claim.path()
    }

    /// Bytes that are in it.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that it may have.
    pub(crate) fn limit(&self) -> u64 {
        match self.config().max_file_bytes {
            0 => u64::MAX,
            limit => limit,
        }
    }

    /// Whether so many bytes more are too many.
    pub(crate) fn is_full_with(&self, more: u64) -> bool {
        self.len.saturating_add(more) > self.limit()
    }

    /// The error of a file that has reached its limit.
    pub(crate) fn full(&self) -> RecordError {
        RecordError::Full {
            name: self.name.clone(),
            limit: self.config().max_file_bytes,
        }
    }

    /// Whether the disk has room for more: some of it is left for others.
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

    /// Writes these bytes at the end, all or none of them.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.disk.wait();
        if let Err(error) = self.file.write_all(bytes) {
            // What was begun and has no end is of no use.
            let _ = self.file.set_len(self.len);
            return Err(self.failed(error));
        }
        self.len += bytes.len() as u64;
        self.count();
        Ok(())
    }

    /// Does these edits, and forgets them.
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

    /// Gives the file, complete or as far as it came, the name that it is to have. The name is free for others then.
    pub(crate) fn leave(self) -> Result<(), RecordError> {
        let (temporary, path) = &self.paths;
        if temporary != path {
            self.disk.wait();
            fs::rename(temporary, path).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Deletes the file.
    pub(crate) fn discard(self) {
        if let Err(error) = fs::remove_file(&self.paths.0) {
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
