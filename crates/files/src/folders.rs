//! The folders in which files may be requested.

use std::path::{Path, PathBuf, absolute};

use crate::{FileError, checked_path};

/// The folders in which files may be requested, with all folders below them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Returns these folders. Relative ones are relative to the working directory.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Folders(folders)
    }

    /// Returns the path of `name`, if it is in one of the folders. Links are followed. It blocks.
    ///
    /// For paths elsewhere, the error does not reveal whether they exist.
    pub fn find(&self, name: &str) -> Result<PathBuf, FileError> {
        let path = absolute(checked_path(name)?)?;
        let outside = || FileError::Outside(name.to_owned());
        // A missing folder is skipped.
        let folders = self.0.iter().filter_map(|folder| {
            let named = absolute(folder).ok()?;
            Some((named, folder.canonicalize().ok()?))
        });
        let folders: Vec<_> = folders.collect();
        let is_named =
            |(named, real): &(PathBuf, PathBuf)| path.starts_with(named) || path.starts_with(real);
        if !folders.iter().any(is_named) {
            return Err(outside());
        }
        let is_in = |real: &Path| folders.iter().any(|(_, folder)| real.starts_with(folder));
        match path.canonicalize() {
            Ok(real) if is_in(&real) => Ok(real),
            Ok(_) => Err(outside()),
            // A missing file is reported for the folders only, not for the target of a link.
            Err(error) => {
                let there = path.ancestors().find_map(|it| it.canonicalize().ok());
                match there.is_some_and(|it| is_in(&it)) {
                    true => Err(error.into()),
                    false => Err(outside()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_in_the_folders_are_found_and_no_others() {
        let disk = tempfile::tempdir().unwrap();
        let at = |name: &str| disk.path().join(name);
        let named = |name: &str| at(name).display().to_string();
        for folder in ["media", "media/sub", "media2", "secret"] {
            create_dir(at(folder)).unwrap();
        }
        for file in ["media/a", "media/sub/b", "media2/c", "secret/d", "e"] {
            write(at(file), "").unwrap();
        }
        symlink(at("media/a"), at("media/within")).unwrap();
        symlink(at("secret/d"), at("media/out")).unwrap();
        symlink(at("secret"), at("media/way")).unwrap();
        symlink(at("media"), at("alias")).unwrap();
        symlink(at("nothing"), at("media/dangling")).unwrap();
        let folders = Folders::new(vec![at("media"), at("gone")]);
        for (name, real) in [
            ("media/a", "media/a"),
            ("media/./a", "media/a"),
            ("media//sub/b", "media/sub/b"),
            ("media/within", "media/a"),
        ] {
            let real = at(real).canonicalize().unwrap();
            assert_eq!(folders.find(&named(name)).unwrap(), real, "{name}");
        }
        for name in [
            "media2/c",
            "secret/d",
            "secret/none",
            "e",
            "media/out",
            "media/way/d",
            "media/way/none",
            "media/out/none",
            "gone/a",
            "alias/a",
        ] {
            let found = folders.find(&named(name));
            assert!(
                matches!(found, Err(FileError::Outside(_))),
                "{name}: {found:?}"
            );
        }
        for name in ["media/none", "media/dangling"] {
            let found = folders.find(&named(name));
            assert!(matches!(found, Err(FileError::Io(_))), "{name}: {found:?}");
        }
        let climbs = folders.find(&named("media/../secret/d"));
        assert!(matches!(climbs, Err(FileError::Path(_))));
        let relative = folders.find("Cargo.toml");
        assert!(matches!(relative, Err(FileError::Outside(_))));
        // A folder may be a link.
        let folders = Folders::new(vec![at("alias")]);
        for name in ["alias/a", "media/a"] {
            assert!(folders.find(&named(name)).is_ok(), "{name}");
        }
        let nothing = Folders::default().find(&named("media/a"));
        assert!(matches!(nothing, Err(FileError::Outside(_))));
    }
}
