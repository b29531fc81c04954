//! The folder of a Janus: its files, read and sorted by what they configure.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::syntax::{read, text_of, unreadable};
use crate::{Group, Location, Problem, Sources, SyntaxError, parse_cfg, parse_jcfg};

/// Files that a folder may have.
const MAX_FILES: usize = 1_000;

/// The files of a Janus.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// By what they configure: `janus`, `janus.plugin.videoroom`.
    files: BTreeMap<String, ConfigFile>,
    /// Files that another file of the same name takes the place of.
    shadowed: Vec<PathBuf>,
    /// Why files cannot be read. Janus goes on without them, too.
    broken: Vec<SyntaxError>,
}

/// The file without which Janus does not start.
const MAIN: &str = "janus";

/// One file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) root: Group,
}

/// Why a folder cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The folder cannot be listed.
    #[error("cannot read the folder {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder has no configuration of Janus.
    #[error("there is no janus.jcfg and no janus.….jcfg (or .cfg) in {}", .0.display())]
    Empty(PathBuf),
    /// `janus.jcfg` is broken, and maybe other files: all of them are named.
    #[error("{}", lines(.0))]
    Syntax(Vec<SyntaxError>),
}

fn lines(errors: &[SyntaxError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl Folder {
    /// Reads all configuration files of a folder. As with Janus, `NAME.jcfg` goes before `NAME.cfg`, and a broken file is
    /// left out unless it is `janus.jcfg`.
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

    /// Reads a folder with these files, of which `load` has the bytes, and those of included files.
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
            // .jcfg sorts after .cfg.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that configures something.
    pub(crate) fn file(&self, subject: &str) -> Option<&ConfigFile> {
        self.files.get(subject)
    }

    /// All files by what they configure.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &ConfigFile)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file))
    }

    /// Why files could not be read.
    pub(crate) fn broken(&self) -> &[SyntaxError] {
        &self.broken
    }

    /// Files that were not read since another one takes their place.
    pub(crate) fn shadowed(&self) -> &[PathBuf] {
        &self.shadowed
    }
}

/// What a file configures, if it is one of Janus.
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

    /// A group of the file; an absent one has no settings.
    pub(crate) fn group(&self, name: &str) -> Group {
        let group = self.root.get(name).and_then(|setting| setting.group());
        group.cloned().unwrap_or_default()
    }

    /// The start of the file.
    pub(crate) fn start(&self) -> Location {
        Location::start(&self.path)
    }
}
