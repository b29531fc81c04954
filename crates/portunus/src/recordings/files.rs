//! Files by their names: manifests with their files, and new files that get their names once they
//! are complete.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use portunus_files::container::Edits;
use portunus_files::convert::Sink;
use portunus_files::manifest::{MAX_MANIFEST, Manifest};
use portunus_files::mjr::UnixMicros;
use tempfile::NamedTempFile;

use super::failure::Failure;

/// The endings of recordings.
pub(super) const ENDINGS: [&str; 6] = ["mjr", "webm", "mkv", "mp4", "opus", "ogg"];

/// A failure with the name of the file.
pub(super) fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("{}: {why}", path.display()))
}

/// Returns the ending of the file's name in lower case, without the dot.
pub(super) fn extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_lowercase()
}

/// Reads a manifest.
pub(super) fn manifest(path: &Path) -> Result<Manifest, Failure> {
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let mut bytes = Vec::new();
    let most = MAX_MANIFEST as u64 + 1;
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| failed(path, error))?;
    Manifest::read(&bytes).map_err(|error| failed(path, error))
}

/// The longest ending of `recording.temporary`, after the dot.
const MAX_TEMPORARY: usize = 16;

/// Returns the path of a file: as given, or with the additional ending that a killed server has
/// left (`recording.temporary`).
pub(super) fn found(path: &Path) -> PathBuf {
    if path.symlink_metadata().is_ok() {
        return path.to_owned();
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    let entries = entries.into_iter().flatten().filter_map(Result::ok);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_own = |other: &std::ffi::OsString| {
        let other = other.to_string_lossy();
        let ending = other
            .strip_prefix(&*name)
            .and_then(|it| it.strip_prefix('.'));
        ending.is_some_and(|it| {
            !it.is_empty()
                && it.len() <= MAX_TEMPORARY
                && it.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let mut own = entries.map(|entry| entry.file_name()).filter(is_own);
    match (own.next(), own.next()) {
        (Some(one), None) => path.with_file_name(one),
        _ => path.to_owned(),
    }
}

/// Returns the name of a complete file, without its temporary ending.
pub(super) fn complete_name(path: &Path) -> PathBuf {
    let complete = path.with_extension("");
    let is_recording = |path: &Path| ENDINGS.contains(&extension(path).as_str());
    match !is_recording(path) && is_recording(&complete) && extension(path).len() <= MAX_TEMPORARY {
        true => complete,
        false => path.to_owned(),
    }
}

/// Returns the path of a file in a manifest. Refuses names outside of the manifest's folder, also
/// by links.
pub(super) fn named(manifest: &Path, name: &str) -> Result<PathBuf, Failure> {
    let folder = manifest.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let refused = || {
        let why = format!("it names {name:?}, which is not in its folder");
        failed(manifest, why)
    };
    let inside = Path::new(name).components();
    let is_plain = |part| matches!(part, std::path::Component::Normal(_));
    if name.is_empty() || !inside.into_iter().all(is_plain) {
        return Err(refused());
    }
    let path = found(&folder.join(name));
    let real = path.canonicalize().map_err(|error| failed(&path, error))?;
    let folder = folder.canonicalize();
    let folder = folder.map_err(|error| failed(manifest, error))?;
    match real.starts_with(folder) {
        true => Ok(path),
        false => Err(refused()),
    }
}

/// Refuses an existing name, unless it may be replaced.
pub(super) fn check_free(path: &Path, force: bool) -> Result<(), Failure> {
    match path.exists() && !force {
        true => Err(failed(path, "it is there already (--force writes over it)")),
        false => Ok(()),
    }
}

/// Makes a file without a name in the folder of `path`, which is its later name.
pub(super) fn temporary(path: &Path) -> Result<NamedTempFile, Failure> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let made = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    made.map_err(|error| failed(path, error))
}

/// Names a file, with the permissions of new files, or those of the replaced file.
pub(super) fn keep(file: NamedTempFile, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    /// Its owner may write it, everybody may read it.
    const USUAL: u32 = 0o644;
    let rights = match path.metadata() {
        Ok(before) => before.permissions(),
        Err(_) => std::fs::Permissions::from_mode(USUAL),
    };
    let set = file.as_file().set_permissions(rights);
    set.map_err(|error| failed(path, error))?;
    let kept = file.persist(path);
    kept.map_err(|error| failed(path, error.error)).map(drop)
}

/// New files. The first has the given name, the others a number.
pub(super) struct NewFiles {
    name: PathBuf,
    force: bool,
    parts: Vec<(NamedTempFile, PathBuf)>,
    /// An existing name or a lack of space, which replaces the error of writing.
    pub failure: Option<Failure>,
}

impl NewFiles {
    pub fn new(name: &Path, force: bool) -> Self {
        Self {
            name: name.to_owned(),
            force,
            parts: Vec::new(),
            failure: None,
        }
    }

    /// Names all files.
    pub fn keep(self) -> Result<Vec<PathBuf>, Failure> {
        let mut names = Vec::new();
        for (file, name) in self.parts {
            keep(file, &name)?;
            names.push(name);
        }
        Ok(names)
    }

    fn name_of(&self, part: u32) -> PathBuf {
        if part <= 1 {
            return self.name.clone();
        }
        let stem = self.name.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{stem}-{part}.{}", extension(&self.name));
        self.name.with_file_name(name)
    }
}

impl Sink for NewFiles {
    fn begin(&mut self, part: u32, _: UnixMicros) -> io::Result<()> {
        let name = self.name_of(part);
        let made = check_free(&name, self.force).and_then(|()| temporary(&name));
        match made {
            Ok(file) => {
                self.parts.push((file, name));
                Ok(())
            }
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::ErrorKind::AlreadyExists.into())
            }
        }
    }

    fn apply(&mut self, edits: &mut Edits) -> io::Result<()> {
        let Some((file, _)) = self.parts.last_mut() else {
            return Ok(());
        };
        let file = file.as_file_mut();
        file.seek(SeekFrom::End(0))?;
        file.write_all(&edits.append)?;
        for (at, bytes) in &edits.patches {
            file.seek(SeekFrom::Start(*at))?;
            file.write_all(bytes)?;
        }
        edits.clear();
        Ok(())
    }
}
