//! The configuration folder of Janus: its files, sorted by what they configure.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::syntax::{read, text_of, unreadable};
use crate::{Group, Location, Problem, Sources, SyntaxError, parse_cfg, parse_jcfg};

/// The most files in a folder.
const MAX_FILES: usize = 1_000;

/// The files of a Janus configuration.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The files by subject: `janus`, `janus.plugin.videoroom`.
    files: BTreeMap<String, ConfigFile>,
    /// Files that are replaced by another one with the same name.
    shadowed: Vec<PathBuf>,
    /// The errors of unreadable files. Janus continues without them too.
    broken: Vec<SyntaxError>,
}

/// The file that Janus requires to start.
const MAIN: &str = "janus";

/// A file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) root: Group,
}

/// The reason why a folder cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder cannot be listed.
    #[error("cannot read the folder {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The folder has no configuration of Janus.
    #[error("there is no janus.jcfg and no janus.….jcfg (or .cfg) in {}", .0.display())]
    Empty(PathBuf),
    /// `janus.jcfg` is malformed, and perhaps other files. All of them are listed.
    #[error("{}", lines(.0))]
    Syntax(Vec<SyntaxError>),
}

fn lines(errors: &[SyntaxError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl Folder {
    /// Reads all configuration files of a folder. As with Janus, `NAME.jcfg` takes precedence over
    /// `NAME.cfg`, and a malformed file is skipped unless it is `janus.jcfg`.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let failed = |error| FolderError::Folder {
            path: path.to_owned(),
            error,
        };
        let entries = std::fs::read_dir(path).map_err(failed)?;
        let names = entries.map(|entry| entry.map(|entry| entry.path()));
        let names = names.take(MAX_FILES.saturating_add(1));
        let names = names.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        if names.len() > MAX_FILES {
            let reason = format!("more than {MAX_FILES} files");
            return Err(failed(io::Error::other(reason)));
        }
        Folder::of(path, names, read)
    }

    /// Reads a folder with these files. `load` returns their bytes, and those of included files.
    pub fn of(
        path: &Path,
        names: impl IntoIterator<Item = PathBuf>,
        load: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, FolderError> {
        let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for file in names {
            if let Some(name) = subject(&file) {
                found.entry(name).or_default().push(file);
            }
        }
        if found.is_empty() {
            return Err(FolderError::Empty(path.to_owned()));
        }
        let (mut files, mut shadowed, mut broken) = (BTreeMap::new(), Vec::new(), Vec::new());
        let has_main = found.contains_key(MAIN);
        for (name, mut paths) in found {
            // `.jcfg` sorts after `.cfg`.
            paths.sort();
            let Some(path) = paths.pop() else { continue };
            shadowed.append(&mut paths);
            match ConfigFile::read(&path, &load) {
                Ok(file) => drop(files.insert(name, file)),
                Err(error) => broken.push(error),
            }
        }
        if has_main && !files.contains_key(MAIN) {
            return Err(FolderError::Syntax(broken));
        }
        Ok(Folder {
            path: path.to_owned(),
            files,
            shadowed,
            broken,
        })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file for a subject.
    pub(crate) fn file(&self, subject: &str) -> Option<&ConfigFile> {
        self.files.get(subject)
    }

    /// Returns all files by subject.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &ConfigFile)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file))
    }

    /// Returns the errors of unreadable files.
    pub(crate) fn broken(&self) -> &[SyntaxError] {
        &self.broken
    }

    /// Returns the files that were replaced by another one.
    pub(crate) fn shadowed(&self) -> &[PathBuf] {
        &self.shadowed
    }
}

/// Returns the subject of a file, if it is one of Janus.
fn subject(file: &Path) -> Option<String> {
    let extension = file.extension().and_then(OsStr::to_str);
    let name = file.file_stem()?.to_str()?;
    let is_ours = matches!(extension, Some("jcfg" | "cfg"))
        && (name == "janus" || name.starts_with("janus."));
    is_ours.then(|| name.to_owned())
}

impl ConfigFile {
    fn read(
        path: &Path,
        load: &impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, SyntaxError> {
        let failed = |(line, problem): (usize, Problem)| SyntaxError {
            at: Location {
                line,
                ..Location::start(path)
            },
            problem,
        };
        let bytes = load(path).map_err(|error| failed((1, unreadable(path, &error))))?;
        let text = text_of(bytes).map_err(failed)?;
        let root = match path.extension().and_then(OsStr::to_str) {
            Some("jcfg") => parse_jcfg(path, &text, &mut Sources::of(load))?,
            _ => parse_cfg(path, &text)?,
        };
        Ok(ConfigFile {
            path: path.to_owned(),
            root,
        })
    }

    /// Returns a group of the file. An absent one has no settings.
    pub(crate) fn group(&self, name: &str) -> Group {
        let group = self.root.get(name).and_then(|setting| setting.group());
        group.cloned().unwrap_or_default()
    }

    /// Returns the start of the file.
    pub(crate) fn start(&self) -> Location {
        Location::start(&self.path)
    }
}
