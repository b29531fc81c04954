//! Files of the server's state, which its next start reads.

use std::fs::{OpenOptions, remove_file, rename};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces the content of a file atomically, so that readers see the old or the new content. Only
/// its owner may read it, since it may contain secrets.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&aside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| rename(&aside, path));
    if replaced.is_err() {
        // Otherwise a full disk would leave an empty file.
        let _ = remove_file(&aside);
    }
    replaced
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::fs::{create_dir_all, metadata, read_dir, read_to_string};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_the_new_one_alone_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved.toml");
        for text in ["a longer text", "a text"] {
            replace_file(&path, text).unwrap();
            assert_eq!(read_to_string(&path).unwrap(), text);
        }
        assert_eq!(metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace_file(&folder.path().join("none/saved.toml"), "").is_err());
        // Removes the temporary file if it cannot replace the other one.
        let taken = folder.path().join("taken");
        create_dir_all(taken.join("by a folder")).unwrap();
        assert!(replace_file(&taken, "a text").is_err());
        assert_eq!(read_dir(folder.path()).unwrap().count(), 2);
    }
}
