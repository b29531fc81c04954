//! The file of mountpoints that were made, changed or removed for good.
//!
//! The server's configuration is never written to. What is different from it stands in this file, which is read
//! after it: a mountpoint here takes the place of the configured one with its name, and a configured one whose name
//! is in `removed` is left out. Names of mountpoints that are not permanent may be anything, so those here are told
//! apart by their ids.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use portunus_core::replace_file;
use serde_json::{Map, Value, json};

use crate::config::ConfiguredMountpoint;
use crate::id::MountpointId;
use crate::spec::{MountpointSpec, Origin};

const HEAD: &str =
    "# Mountpoints that were made by requests with `permanent`. The server writes this file.\n\n";

/// The file, with what it says.
#[derive(Debug)]
pub(crate) struct Saved {
    path: PathBuf,
    content: Mutex<Content>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    /// The names of the configured mountpoints, with their ids. They are not written.
    configured: Vec<(String, Option<MountpointId>)>,
    removed: Vec<String>,
    mountpoints: Vec<MountpointSpec>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read the saved mountpoints {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what the server writes.
    #[error("cannot understand the saved mountpoints {}: {error}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// It cannot be written.
    #[error("cannot write the saved mountpoints {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It has a mountpoint of this name.
    #[error("another permanent mountpoint has the name {0}")]
    Name(String),
}

impl Saved {
    /// Reads the file; none is an empty one.
    pub(crate) fn open(
        path: PathBuf,
        string_ids: bool,
        configured: &[ConfiguredMountpoint],
    ) -> Result<Self, SavedError> {
        let mut content = match std::fs::read_to_string(&path) {
            Ok(text) => {
                let content = Content::read(&text, string_ids);
                content.map_err(|error| SavedError::Content {
                    path: path.clone(),
                    error,
                })?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::default(),
            Err(error) => return Err(SavedError::Read { path, error }),
        };
        let configured = configured.iter().map(|mountpoint| {
            let name = mountpoint.name().to_owned();
            // One without an id of its own keeps the one that it was saved with.
            let id = || content.named(&name)?.id.clone();
            let id = mountpoint.id().cloned().or_else(id);
            (name, id)
        });
        content.configured = configured.collect();
        Ok(Saved {
            path,
            content: Mutex::new(content),
        })
    }

    /// The mountpoints that there are at the start: those of the configuration as far as they are not replaced or
    /// removed, and the saved ones.
    pub(crate) fn with(&self, configured: Vec<ConfiguredMountpoint>) -> Vec<MountpointSpec> {
        let content = self.content();
        let specs = configured.into_iter().map(ConfiguredMountpoint::into_spec);
        let stay = specs.filter(|spec| {
            let name = spec.name.as_deref().unwrap_or_default();
            !content.is_removed(name) && content.named(name).is_none()
        });
        let mut all: Vec<_> = stay.collect();
        all.extend(content.mountpoints.iter().cloned());
        all
    }

    /// Takes note of the id that a configured mountpoint without one has got.
    pub(crate) fn learn(&self, name: &str, id: &MountpointId) {
        let mut content = self.content();
        let known = content.configured.iter_mut();
        for (_, known) in known.filter(|(known, _)| known == name) {
            known.get_or_insert_with(|| id.clone());
        }
    }

    /// Whether another mountpoint than `id` is saved or configured under `name`.
    pub(crate) fn is_taken(&self, name: &str, id: &MountpointId) -> bool {
        let content = self.content();
        match content.named(name) {
            Some(saved) => saved.id.as_ref() != Some(id),
            None => content.is_foreign(name, id),
        }
    }

    /// Writes what `spec` says of a mountpoint, which has a name and an id, in the place of what was saved before; nothing,
    /// if there is none any more. It is asked in the moment of writing: what is written later is not older. Once that is
    /// written, and before anything else is, `apply` makes it true.
    pub(crate) fn keep<T>(
        &self,
        spec: impl FnOnce() -> Option<MountpointSpec>,
        apply: impl FnOnce() -> T,
    ) -> Result<T, SavedError> {
        let change = |content: &mut Content| {
            let Some(spec) = spec() else {
                return Ok(());
            };
            let (Some(name), Some(id)) = (spec.name.clone(), spec.id.clone()) else {
                return Ok(());
            };
            let same = |known: &MountpointSpec| known.is_named(&name);
            if let Some(known) = content.mountpoints.iter_mut().find(|known| same(known)) {
                if known.id.as_ref() != Some(&id) {
                    return Err(SavedError::Name(name));
                }
                *known = spec;
            } else if content.is_foreign(&name, &id) {
                return Err(SavedError::Name(name));
            } else {
                content.mountpoints.push(spec);
            }
            if content.is_configured(&name, &id) {
                content.removed.retain(|removed| *removed != name);
            }
            Ok(())
        };
        self.change(change, apply)
    }

    /// Removes the mountpoint `id`, also if the configuration has it; not another one of its name. Once that is written
    /// it is forgotten by `forget`, before anybody can keep it again.
    pub(crate) fn remove<T>(
        &self,
        name: &str,
        id: &MountpointId,
        forget: impl FnOnce() -> T,
    ) -> Result<T, SavedError> {
        let change = |content: &mut Content| {
            let is_it =
                |known: &MountpointSpec| known.is_named(name) && known.id.as_ref() == Some(id);
            content.mountpoints.retain(|known| !is_it(known));
            if content.is_configured(name, id) && !content.is_removed(name) {
                content.removed.push(name.to_owned());
            }
            Ok(())
        };
        self.change(change, forget)
    }

    /// Changes the content, if that can be written, and then does `after`.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Content) -> Result<(), SavedError>,
        after: impl FnOnce() -> T,
    ) -> Result<T, SavedError> {
        let mut content = self.content();
        let mut changed = content.clone();
        change(&mut changed)?;
        let text = changed.to_toml().map_err(std::io::Error::other);
        let written = text.and_then(|text| replace_file(&self.path, &text));
        written.map_err(|error| SavedError::Write {
            path: self.path.clone(),
            error,
        })?;
        *content = changed;
        Ok(after())
    }

    fn content(&self) -> std::sync::MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MountpointSpec {
    fn is_named(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// Reads the text of a file of saved mountpoints and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    let content = Content::read(text, string_ids)?;
    content.to_toml().map_err(|error| error.to_string())
}

impl Content {
    /// The saved mountpoint of this name.
    fn named(&self, name: &str) -> Option<&MountpointSpec> {
        self.mountpoints.iter().find(|known| known.is_named(name))
    }

    fn is_removed(&self, name: &str) -> bool {
        self.removed.iter().any(|removed| removed == name)
    }

    /// Whether the configuration has the mountpoint `id` under `name`.
    fn is_configured(&self, name: &str, id: &MountpointId) -> bool {
        let mut known = self.configured.iter();
        known.any(|(known, of)| known == name && of.as_ref() == Some(id))
    }

    /// Whether the configuration has another mountpoint under `name`, which was not removed.
    fn is_foreign(&self, name: &str, id: &MountpointId) -> bool {
        let mut known = self.configured.iter();
        let is_other = known.any(|(known, of)| known == name && of.as_ref() != Some(id));
        is_other && !self.is_removed(name)
    }

    fn read(text: &str, string_ids: bool) -> Result<Self, String> {
        let members: Map<String, Value> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |name: &str| members.get(name).and_then(Value::as_array);
        let removed = list("removed").into_iter().flatten();
        let mut mountpoints = Vec::new();
        for entry in list("mountpoint").into_iter().flatten() {
            let entry = entry.as_object().ok_or("a mountpoint is not a section")?;
            let spec = MountpointSpec::read(entry, string_ids, Origin::Configuration);
            mountpoints.push(spec.map_err(|problem| {
                let name = entry.get("name").and_then(Value::as_str).unwrap_or("?");
                format!("mountpoint {name}: {}: {problem}", problem.key)
            })?);
        }
        Ok(Content {
            configured: Vec::new(),
            removed: removed
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            mountpoints,
        })
    }

    fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mountpoints: Vec<_> = self.mountpoints.iter().map(|m| m.to_members()).collect();
        let content = json!({ "removed": self.removed, "mountpoint": mountpoints });
        Ok(format!("{HEAD}{}", toml::to_string(&content)?))
    }
}
