//! The texts of a configuration: the file, and its included files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Problem;

/// The most bytes of a file with all its included files.
pub const MAX_BYTES: usize = 16 << 20;
/// The deepest nesting of included files, as in libconfig.
pub const MAX_INCLUDES: usize = 10;

type Load<'a> = dyn FnMut(&Path) -> io::Result<Vec<u8>> + 'a;

/// The source of included files.
pub struct Sources<'a> {
    load: Box<Load<'a>>,
    /// The bytes that may still be read.
    left: usize,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a> Sources<'a> {
    /// Makes a source in which any include is an error.
    pub fn none() -> Self {
        Sources::of(|_| Err(io::Error::other("files cannot be included here")))
    }

    /// Makes a source from a function that returns the bytes of each file.
    pub fn of(load: impl FnMut(&Path) -> io::Result<Vec<u8>> + 'a) -> Self {
        Sources {
            load: Box::new(load),
            left: MAX_BYTES,
        }
    }

    /// Counts the bytes of a text.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), Problem> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(Problem::TooLarge(MAX_BYTES))?;
        Ok(())
    }

    /// Reads an included file.
    pub(super) fn include(&mut self, path: &Path) -> Result<String, Problem> {
        let bytes = (self.load)(path).map_err(|error| unreadable(path, &error))?;
        self.count(bytes.len())?;
        String::from_utf8(bytes).map_err(|_| Problem::Unreadable {
            path: path.to_owned(),
            reason: Problem::NotText.to_string(),
        })
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// Returns the text of a file's bytes. An error has its line, counted from 1.
pub(crate) fn text_of(bytes: Vec<u8>) -> Result<String, (usize, Problem)> {
    if bytes.len() > MAX_BYTES {
        return Err((1, Problem::TooLarge(MAX_BYTES)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let lines = before.filter(|byte| **byte == b'\n').count();
        (lines.saturating_add(1), Problem::NotText)
    })
}

/// Reads a file of the file system, up to one byte more than permitted.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    // A device or a pipe may never end.
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the path of a file that `by` includes, relative to the folder of `by`.
pub(super) fn included(by: &Path, name: &str) -> PathBuf {
    by.parent().unwrap_or(Path::new("")).join(name)
}
