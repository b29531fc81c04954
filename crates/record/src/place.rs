//! The names and folders of recordings.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use portunus_files::mjr::UnixMicros;

use crate::RecordError;

/// The longest name in bytes that a client may give a file. File systems allow 255 for each part,
/// including suffixes.
const MAX_NAME: usize = 1_024;
const MAX_PART: usize = 200;

/// Returns a unique name: with the time in µs since 1970 at its end.
pub fn stamped(name: &str) -> String {
    format!("{name}-{}", UnixMicros::from(SystemTime::now()).0)
}

/// Returns an id or name for use in a file's name: its first 40 characters, with `_` for all but
/// letters, digits and hyphens.
pub fn file_safe(name: &str) -> String {
    let safe = |c: char| match c.is_ascii_alphanumeric() || c == '-' {
        true => c,
        false => '_',
    };
    name.chars().take(40).map(safe).collect()
}

/// The numbers that are tried if a name is taken.
pub(crate) const NAMES: u32 = 1_000;

/// Appends a number to a name, except to the first one.
pub(crate) fn numbered(name: &str, number: u32) -> String {
    match number {
        0 | 1 => name.to_owned(),
        number => format!("{name}-{number}"),
    }
}

/// The folders of recordings.
#[derive(Debug)]
pub(crate) struct Places {
    dir: PathBuf,
    folders: Vec<PathBuf>,
}

impl Places {
    /// Returns only this folder. A relative path is relative to the recorder's folder.
    pub(crate) fn only(&self, folder: &Path) -> Self {
        Self {
            dir: plain(&self.dir.join(folder)),
            folders: Vec::new(),
        }
    }

    /// Returns the configured folders. Relative paths are relative to the working directory.
    pub(crate) fn new(dir: Option<&Path>, folders: &[PathBuf]) -> Self {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            plain(&path)
        };
        Self {
            dir: absolute(dir.unwrap_or(Path::new("."))),
            folders: folders.iter().map(|folder| absolute(folder)).collect(),
        }
    }

    /// Returns the folder that names are relative to.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the file `name` with this extension. It is relative to `dir`, which is
    /// relative to the recorder's folder.
    pub(crate) fn file(
        &self,
        dir: Option<&str>,
        name: &str,
        extension: &str,
    ) -> Result<PathBuf, RecordError> {
        let dir = dir.filter(|dir| !dir.is_empty());
        for text in dir.into_iter().chain([name]) {
            check(text)?;
        }
        let ends_in_a_name = !name.ends_with('/') && Path::new(name).file_name().is_some();
        let is_lost = dir.is_some() && Path::new(name).is_absolute();
        if !ends_in_a_name || is_lost {
            return Err(RecordError::Name(name.to_owned()));
        }
        let folder = match dir {
            Some(dir) => self.dir.join(dir),
            None => self.dir.clone(),
        };
        let path = plain(&folder.join(format!("{name}.{extension}")));
        let below = |folder: &PathBuf| path.starts_with(folder);
        if below(&self.dir) || self.folders.iter().any(below) {
            Ok(path)
        } else {
            Err(RecordError::Outside(dir.unwrap_or(name).to_owned()))
        }
    }

    /// Makes the folder of a path from [`Places::file`], and returns the path without links. Fails
    /// if a link leads out of the allowed folders. It blocks.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<PathBuf> {
        let lost = || io::Error::from(ErrorKind::NotFound);
        let folder = path.parent().ok_or_else(lost)?;
        let known = [&self.dir].into_iter().chain(&self.folders);
        let within = known.clone().find(|known| folder.starts_with(known));
        let within = within.ok_or_else(lost)?;
        fs::create_dir_all(within)?;
        let roots: Vec<PathBuf> = known.filter_map(|it| it.canonicalize().ok()).collect();
        let mut real = within.canonicalize()?;
        for part in folder.strip_prefix(within).unwrap_or(folder) {
            let next = real.join(part);
            match fs::create_dir(&next) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => real = next.canonicalize()?,
            }
            if !roots.iter().any(|root| real.starts_with(root)) {
                let reason = "a link leads out of the folders for recordings";
                return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
            }
        }
        Ok(real.join(path.file_name().ok_or_else(lost)?))
    }
}

/// Refuses names that mean another path than they show, or that no file can have.
fn check(name: &str) -> Result<(), RecordError> {
    let is_wrong =
        |part: Component<'_>| part == Component::ParentDir || part.as_os_str().len() > MAX_PART;
    if name.is_empty()
        || name.len() > MAX_NAME
        || name.chars().any(char::is_control)
        || Path::new(name).components().any(is_wrong)
    {
        return Err(RecordError::Name(name.to_owned()));
    }
    Ok(())
}

/// Returns the path without `.` in it.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn places() -> Places {
        let folders = [PathBuf::from("/mnt/a")];
        Places::new(Some(Path::new("/srv/./rec")), &folders)
    }

    #[test]
    fn names_are_relative_to_their_folder_and_that_to_the_configured_one() {
        for (dir, name, path) in [
            (None, "a", "/srv/rec/a.mjr"),
            (None, "./b/a", "/srv/rec/b/a.mjr"),
            (None, "a.b", "/srv/rec/a.b.mjr"),
            (Some(""), "a", "/srv/rec/a.mjr"),
            (Some("room 1"), "x/a", "/srv/rec/room 1/x/a.mjr"),
            (Some("/mnt/a/b"), "a", "/mnt/a/b/a.mjr"),
            (None, "/mnt/a/b", "/mnt/a/b.mjr"),
            (None, "/srv/rec//c/b", "/srv/rec/c/b.mjr"),
        ] {
            let file = places().file(dir, name, "mjr");
            assert_eq!(file.unwrap(), Path::new(path), "{dir:?} {name:?}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for (dir, name) in [
            (None, ""),
            (None, ".."),
            (None, "../a"),
            (None, "a/../../b"),
            (None, "a/"),
            (None, "a\0b"),
            (None, "a\nb"),
            (None, "/"),
            (None, "/etc/a"),
            (None, "/srv/recordings/a"),
            (None, "/mnt/a"),
            (Some("/mnt/b"), "a"),
            (Some("/mnt/a/.."), "a"),
            (Some("b"), "/mnt/a/b"),
            (Some("b"), "../a"),
        ] {
            assert!(places().file(dir, name, "mjr").is_err(), "{dir:?} {name:?}");
        }
        assert!(places().file(None, &"a".repeat(201), "mjr").is_err());
        assert!(places().file(None, &"a/".repeat(600), "mjr").is_err());
    }

    #[test]
    fn the_root_lets_clients_name_any_file() {
        let places = Places::new(None, &[PathBuf::from("/")]);
        let file = places.file(None, "/var/tmp/a", "mjr").unwrap();
        assert_eq!(file, Path::new("/var/tmp/a.mjr"));
        assert!(places.file(None, "a", "opus").unwrap().is_absolute());
    }

    #[test]
    fn links_do_not_lead_out() {
        let disk = tempfile::tempdir().unwrap();
        let at = |name: &str| disk.path().join(name);
        for folder in ["other", "more"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let places = Places::new(Some(&at("rec")), &[at("more")]);
        let made = |name: &str| places.make_folder(&places.file(None, name, "mjr").unwrap());
        let real = at("").canonicalize().unwrap();
        assert_eq!(made("a/b/c").unwrap(), real.join("rec/a/b/c.mjr"));
        for (link, to) in [("out", "other"), ("more", "more"), ("a/up", "rec")] {
            symlink(at(to), at("rec").join(link)).unwrap();
        }
        assert_eq!(made("more/d").unwrap(), real.join("more/d.mjr"));
        assert_eq!(made("a/up/d").unwrap(), real.join("rec/d.mjr"));
        for name in ["out/d", "out/new/d", "a/up/out/d"] {
            let kind = made(name).map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::PermissionDenied), "{name}");
        }
        assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn no_name_leads_out(
            dir in proptest::option::of("[a./]{0,8}"),
            name in "[a./\u{0}-\u{20}]{0,12}",
        ) {
            if let Ok(path) = places().file(dir.as_deref(), &name, "mjr") {
                let inside = path.starts_with("/srv/rec") || path.starts_with("/mnt/a");
                prop_assert!(inside, "{path:?}");
                prop_assert!(!path.components().any(|part| part == Component::ParentDir));
            }
        }
    }
}
