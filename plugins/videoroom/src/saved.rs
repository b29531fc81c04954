//! The file of rooms that were made, changed or removed for good.
//!
//! The server's configuration is never written to. What is different from it stands in this file, which is read
//! after it: a room here takes the place of the configured one with its id, and a configured one whose id is in
//! `removed` is left out.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::config::ConfiguredRoom;
use crate::id::Id;
use crate::options::RoomOptions;

const HEAD: &str =
    "# Rooms that were made by requests with `permanent`. The server writes this file.\n\n";

/// The file, with what it says.
#[derive(Debug)]
pub(crate) struct Saved {
    path: PathBuf,
    /// The ids of the configured rooms.
    configured: Vec<Id>,
    content: Mutex<Content>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    removed: Vec<Id>,
    rooms: Vec<ConfiguredRoom>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read the saved rooms {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what the server writes.
    #[error("cannot understand the saved rooms {}: {error}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// It cannot be written.
    #[error("cannot write the saved rooms {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Saved {
    /// Reads the file; none is an empty one.
    pub(crate) fn open(
        path: PathBuf,
        string_ids: bool,
        configured: &[ConfiguredRoom],
    ) -> Result<Self, SavedError> {
        let content = match std::fs::read_to_string(&path) {
            Ok(text) => match Content::read(&text, string_ids) {
                Ok(content) => content,
                Err(error) => return Err(SavedError::Content { path, error }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::default(),
            Err(error) => return Err(SavedError::Read { path, error }),
        };
        Ok(Saved {
            path,
            configured: configured.iter().map(|room| room.id.clone()).collect(),
            content: Mutex::new(content),
        })
    }

    /// The rooms that there are at the start: those of the configuration as far as they are not replaced or removed,
    /// and the saved ones.
    pub(crate) fn with(&self, configured: Vec<ConfiguredRoom>) -> Vec<ConfiguredRoom> {
        let content = self.content();
        let stays = |room: &ConfiguredRoom| {
            !content.removed.contains(&room.id) && !content.rooms.iter().any(|r| r.id == room.id)
        };
        let mut all: Vec<_> = configured.into_iter().filter(stays).collect();
        all.extend(content.rooms.iter().cloned());
        all
    }

    /// Writes a room in the place of what was saved of it before.
    pub(crate) fn keep(&self, id: &Id, options: &RoomOptions) -> Result<(), SavedError> {
        self.change(|content| {
            content.rooms.retain(|room| room.id != *id);
            content.removed.retain(|removed| removed != id);
            content.rooms.push(ConfiguredRoom {
                id: id.clone(),
                options: options.clone(),
            });
        })
    }

    /// Removes a room, also if the configuration has it.
    pub(crate) fn remove(&self, id: &Id) -> Result<(), SavedError> {
        self.change(|content| {
            content.rooms.retain(|room| room.id != *id);
            if self.configured.contains(id) && !content.removed.contains(id) {
                content.removed.push(id.clone());
            }
        })
    }

    /// Changes the content, if that can be written.
    fn change(&self, change: impl FnOnce(&mut Content)) -> Result<(), SavedError> {
        let mut content = self.content();
        let mut changed = content.clone();
        change(&mut changed);
        let text = changed.to_toml().map_err(std::io::Error::other);
        let written = text.and_then(|text| write(&self.path, &text));
        written.map_err(|error| SavedError::Write {
            path: self.path.clone(),
            error,
        })?;
        *content = changed;
        Ok(())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the text of a file of saved rooms and writes it again.
pub fn rewrite_saved(text: &str, string_ids: bool) -> Result<String, String> {
    let content = Content::read(text, string_ids)?;
    content.to_toml().map_err(|error| error.to_string())
}

impl Content {
    fn read(text: &str, string_ids: bool) -> Result<Self, String> {
        let members: Map<String, Value> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |name: &str| members.get(name).and_then(Value::as_array);
        let removed = list("removed").into_iter().flatten();
        let removed = removed.filter_map(|id| match id {
            Value::Number(number) => number.as_u64().map(Id::Number),
            Value::String(text) => Some(Id::Text(text.clone())),
            _ => None,
        });
        let rooms = list("room").into_iter().flatten().map(|room| {
            let members = room.as_object().ok_or("a room is not a section")?;
            let room = ConfiguredRoom::read(members, string_ids);
            room.map_err(|problem| format!("{}: {problem}", problem.key))
        });
        Ok(Content {
            removed: removed.collect(),
            rooms: rooms.collect::<Result<_, String>>()?,
        })
    }

    fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let removed: Vec<_> = self.removed.iter().map(Id::to_json).collect();
        let rooms: Vec<_> = self.rooms.iter().map(|room| room.to_members()).collect();
        let content = json!({ "removed": removed, "room": rooms });
        Ok(format!("{HEAD}{}", toml::to_string(&content)?))
    }
}

/// Replaces the file at once: a reader sees the old or the new one, whatever happens.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    // There are secrets in it.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, path)
}
