//! A file with a set of keys, which is read again when it changes.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::keys::{self, Key, KeyError};

/// Bytes of the largest file with keys.
const MAX_FILE: u64 = 256 * 1024;

/// Why a file gives no keys.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct KeyFileError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is larger than 256 KiB")]
    TooLarge,
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Reads a file with a key, or several, as `read` does it.
pub(super) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, KeyError>,
) -> Result<T, KeyFileError> {
    let outcome = || {
        let mut content = Vec::new();
        File::open(path)?
            .take(MAX_FILE + 1)
            .read_to_end(&mut content)?;
        match content.len() as u64 > MAX_FILE {
            true => Err(Why::TooLarge),
            false => Ok(read(&content)?),
        }
    };
    outcome().map_err(|why| KeyFileError {
        path: path.to_owned(),
        why,
    })
}

/// The file, and what it was when it was read.
#[derive(Debug)]
pub(super) struct JwksFile {
    path: PathBuf,
    seen: Mutex<Option<Stamp>>,
}

/// What tells one version of a file from the next; a file that is replaced is another one.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    modified: (i64, i64),
    size: u64,
}

impl From<Metadata> for Stamp {
    fn from(file: Metadata) -> Self {
        Stamp {
            file: (file.dev(), file.ino()),
            modified: (file.mtime(), file.mtime_nsec()),
            size: file.size(),
        }
    }
}

impl JwksFile {
    /// The file, with the keys in it now.
    pub(super) fn open(path: PathBuf) -> Result<(Self, Vec<Key>), KeyFileError> {
        let file = JwksFile {
            seen: Mutex::new(stamp(&path)),
            path,
        };
        let keys = read_file(&file.path, keys::of_set)?;
        Ok((file, keys))
    }

    /// The keys in it, if it has changed since the last look; so an error is told once.
    pub(super) fn changed(&self) -> Option<Result<Vec<Key>, KeyFileError>> {
        // Before it is read: what is written meanwhile is another change.
        let now = stamp(&self.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return None;
        }
        *seen = now;
        drop(seen);
        Some(read_file(&self.path, keys::of_set))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// None: there is no such file now.
fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(Stamp::from)
}
