//! A file with a set of keys, which is read again when it changes.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::keys::{self, Key, KeyError};

/// The largest file with keys, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// An error in a file with keys.
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

/// Reads a file with one or more keys by `read`.
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

/// The file, and its known versions.
#[derive(Debug)]
pub(super) struct JwksFile {
    path: PathBuf,
    seen: Mutex<Seen>,
}

/// Versions of the file. `None` means that there was no file.
#[derive(Debug)]
struct Seen {
    /// The version that was read last.
    read: Option<Stamp>,
    /// The version that could not be read at the last check.
    unreadable: Option<Option<Stamp>>,
}

/// Distinguishes versions of a file. A file that is replaced is another version.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    modified: (i64, i64),
    /// Changes with the content, even if a program resets the time above.
    changed: (i64, i64),
    size: u64,
}

impl From<Metadata> for Stamp {
    fn from(file: Metadata) -> Self {
        Stamp {
            file: (file.dev(), file.ino()),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
            size: file.size(),
        }
    }
}

impl JwksFile {
    /// Opens the file, and returns its present keys.
    pub(super) fn open(path: PathBuf) -> Result<(Self, Vec<Key>), KeyFileError> {
        let seen = Seen {
            read: stamp(&path),
            unreadable: None,
        };
        let keys = read_file(&path, keys::of_set)?;
        let seen = Mutex::new(seen);
        Ok((JwksFile { path, seen }, keys))
    }

    /// Returns the keys if the file has changed since it was read. Each version reports an error
    /// once.
    pub(super) fn changed(&self) -> Option<Result<Vec<Key>, KeyFileError>> {
        self.changed_as(|path| read_file(path, keys::of_set))
    }

    fn changed_as(
        &self,
        read: impl FnOnce(&Path) -> Result<Vec<Key>, KeyFileError>,
    ) -> Option<Result<Vec<Key>, KeyFileError>> {
        // Before reading, so that a write during the read counts as another change.
        let now = stamp(&self.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.read == now {
            seen.unreadable = None;
            return None;
        }
        let outcome = read(&self.path);
        // The next check may succeed without a change of the file.
        if matches!(&outcome, Err(error) if matches!(error.why, Why::Io(_))) {
            let now = Some(now);
            let is_new = seen.unreadable != now;
            seen.unreadable = now;
            return is_new.then_some(outcome);
        }
        *seen = Seen {
            read: now,
            unreadable: None,
        };
        Some(outcome)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns `None` if there is no such file now.
fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(Stamp::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const KEYS: &str = r#"{ "keys": [{ "kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0" }] }"#;

    fn written() -> (tempfile::TempDir, JwksFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        std::fs::write(&path, KEYS).unwrap();
        let (file, _) = JwksFile::open(path).unwrap();
        (folder, file)
    }

    fn refused(path: &Path) -> Result<Vec<Key>, KeyFileError> {
        Err(KeyFileError {
            path: path.to_owned(),
            why: Why::Io(io::ErrorKind::PermissionDenied.into()),
        })
    }

    #[test]
    fn a_version_that_could_not_be_read_is_tried_again_and_told_once() {
        let (_folder, file) = written();
        assert!(file.changed().is_none());
        std::fs::write(file.path(), format!("{KEYS} ")).unwrap();
        assert!(file.changed_as(refused).unwrap().is_err());
        assert!(file.changed_as(refused).is_none());
        assert!(file.changed().unwrap().is_ok());
        assert!(file.changed().is_none());
    }

    #[test]
    fn a_version_without_keys_is_read_once() {
        let (_folder, file) = written();
        std::fs::write(file.path(), "no keys").unwrap();
        assert!(file.changed().unwrap().is_err());
        let read_again = |_: &Path| -> Result<Vec<Key>, KeyFileError> { unreachable!() };
        assert!(file.changed_as(read_again).is_none());
    }

    #[test]
    fn content_of_the_same_size_and_time_is_seen() {
        let (_folder, file) = written();
        let before = std::fs::metadata(file.path()).unwrap();
        std::fs::write(file.path(), KEYS.replace(' ', "\n")).unwrap();
        let open = File::options().write(true).open(file.path()).unwrap();
        open.set_modified(before.modified().unwrap()).unwrap();
        assert!(file.changed().unwrap().is_ok());
    }
}
