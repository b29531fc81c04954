//! A recording's file. All of it is blocking.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use portunus_media::Tapped;

use crate::content::{Content, Put};
use crate::file::{check_room, create_file};
use crate::place::Places;
use crate::{RecordError, RecorderConfig, RecordingSpec};

/// A file that is being written, and what comes into it.
#[derive(Debug)]
pub(crate) struct Output {
    target: Target,
    content: Content,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    /// Frames that the format has no room for, or that came too late for it.
    pub(crate) left_out: u64,
}

impl Output {
    /// Makes the file, and its folder.
    pub(crate) fn create(
        (config, places): (&RecorderConfig, &Places),
        path: &Path,
        spec: &RecordingSpec,
    ) -> Result<Self, RecordError> {
        let mut buffer = Vec::new();
        let content = Content::begin(spec, &mut buffer)?;
        let mut target = Target::create((config, places), path, &spec.name)?;
        target.buffer = buffer;
        target.flush()?;
        Ok(Self { target, content })
    }

    /// Writes what there is, and has room. What came at `until` or later is not written any more, and the answer is true.
    pub(crate) fn write(
        &mut self,
        batch: &[Tapped],
        until: Option<Instant>,
    ) -> Result<bool, RecordError> {
        self.target.check_room()?;
        for tapped in batch {
            if until.is_some_and(|until| tapped.arrival() >= until) {
                self.target.flush()?;
                return Ok(true);
            }
            self.target.put(|buffer| self.content.put(tapped, buffer))?;
        }
        self.target.flush()?;
        Ok(false)
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> Written {
        self.target.written
    }

    /// Completes the file, and gives it the name that it is to have.
    pub(crate) fn finish(self) -> Result<Written, RecordError> {
        let Self {
            mut target,
            mut content,
        } = self;
        let put = target.put(|buffer| content.end(buffer));
        let ended = put.and_then(|()| {
            content.finish(&mut target.buffer);
            target.flush()
        });
        let left = target.leave();
        ended.and(left)
    }

    /// Gives the file, as far as it came, the name that it is to have.
    pub(crate) fn leave(self) -> Result<Written, RecordError> {
        self.target.leave()
    }

    /// Deletes the file.
    pub(crate) fn discard(self) {
        let (temporary, _) = &self.target.paths;
        if let Err(error) = fs::remove_file(temporary) {
            tracing::warn!(file = self.target.name, "cannot be deleted: {error}");
        }
    }
}

/// Where bytes go.
#[derive(Debug)]
struct Target {
    file: File,
    /// As it was asked for.
    name: String,
    /// Where it is while it is written, and then.
    paths: (PathBuf, PathBuf),
    buffer: Vec<u8>,
    written: Written,
    /// Bytes that the file may have.
    limit: u64,
    /// MiB that stay free.
    keep_free: u64,
}

impl Target {
    fn create(
        (config, places): (&RecorderConfig, &Places),
        path: &Path,
        name: &str,
    ) -> Result<Self, RecordError> {
        let (file, temporary, path) = create_file((config, places), path, name)?;
        Ok(Self {
            file,
            name: name.to_owned(),
            paths: (temporary, path),
            buffer: Vec::new(),
            written: Written::default(),
            limit: match config.max_file_bytes {
                0 => u64::MAX,
                limit => limit,
            },
            keep_free: config.keep_free_mb,
        })
    }

    fn check_room(&self) -> Result<(), RecordError> {
        let room = rustix::fs::fstatvfs(&self.file);
        check_room(room, self.keep_free, || self.name.clone())
    }

    /// Lets `put` append to the buffer. If the file would be too long by that, it is taken back, and the recording ends:
    /// whole frames only.
    fn put(&mut self, put: impl FnOnce(&mut Vec<u8>) -> Put) -> Result<(), RecordError> {
        let before = self.buffer.len();
        let put = put(&mut self.buffer);
        self.written.left_out += put.left_out;
        if self.written.bytes.saturating_add(self.buffer.len() as u64) > self.limit {
            self.buffer.truncate(before);
            self.flush()?;
            return Err(RecordError::Full {
                name: self.name.clone(),
                limit: self.limit,
            });
        }
        self.written.frames += put.written;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.file.write_all(&self.buffer);
        let bytes = self.buffer.len() as u64;
        self.buffer.clear();
        if let Err(error) = written {
            // What was begun and has no end is of no use.
            let _ = self.file.set_len(self.written.bytes);
            return Err(RecordError::Write {
                name: self.name.clone(),
                error,
            });
        }
        self.written.bytes += bytes;
        Ok(())
    }

    fn leave(self) -> Result<Written, RecordError> {
        let (temporary, path) = &self.paths;
        if temporary != path {
            fs::rename(temporary, path).map_err(|error| RecordError::Write {
                name: self.name.clone(),
                error,
            })?;
        }
        Ok(self.written)
    }
}
