//! The file of rooms that were made, changed or removed for good.
//!
//! The server's configuration is never written to. What is different from it stands in this file, which is read
//! after it: a room here takes the place of the configured one with its id, and a configured one whose id is in
//! `removed` is left out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::replace_file;
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
    order: Mutex<Order>,
}

/// In which order rooms were changed: what is written later must not be older.
#[derive(Debug, Default)]
struct Order {
    next: u64,
    /// How many turns there are.
    waiting: usize,
    /// As long as there are some: of each room the latest turn that was written.
    written: HashMap<Id, u64>,
}

/// The place of a change among all. It is taken under the room's lock, and used without it.
#[derive(Debug)]
pub(crate) struct Turn {
    saved: Arc<Saved>,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut order = self.saved.order();
        order.waiting = order.waiting.saturating_sub(1);
        if order.waiting == 0 {
            order.written.clear();
        }
    }
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
            order: Mutex::default(),
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

    /// The place of a change that has just been made.
    pub(crate) fn turn(self: &Arc<Self>) -> Turn {
        let mut order = self.order();
        order.next += 1;
        order.waiting += 1;
        Turn {
            saved: self.clone(),
            number: order.next,
        }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Writes a room in the place of what was saved of it before.
    pub(crate) fn keep(&self, id: &Id, options: &RoomOptions) -> Result<(), SavedError> {
        self.change(id, |content| {
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
        self.change(id, |content| {
            content.rooms.retain(|room| room.id != *id);
            if self.saved.configured.contains(id) && !content.removed.contains(id) {
                content.removed.push(id.clone());
            }
        })
    }

    /// Changes what is saved of a room, if that can be written and no later change was.
    fn change(&self, id: &Id, change: impl FnOnce(&mut Content)) -> Result<(), SavedError> {
        let saved = &self.saved;
        let mut content = saved.content();
        let latest = saved.order().written.get(id).copied();
        if latest.is_some_and(|latest| latest > self.number) {
            return Ok(());
        }
        let mut changed = content.clone();
        change(&mut changed);
        let text = changed.to_toml().map_err(std::io::Error::other);
        let written = text.and_then(|text| replace_file(&saved.path, &text));
        written.map_err(|error| SavedError::Write {
            path: saved.path.clone(),
            error,
        })?;
        *content = changed;
        saved.order().written.insert(id.clone(), self.number);
        Ok(())
    }
}

impl Saved {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    fn open(folder: &Path) -> Arc<Saved> {
        Arc::new(Saved::open(folder.join("rooms.toml"), false, &[]).unwrap())
    }

    fn described(text: &str) -> RoomOptions {
        RoomOptions {
            description: text.to_owned(),
            ..RoomOptions::default()
        }
    }

    fn descriptions(saved: &Saved) -> Vec<String> {
        let rooms = saved.with(Vec::new()).into_iter();
        rooms.map(|room| room.options.description).collect()
    }

    #[test]
    fn what_is_written_late_is_not_older() {
        let folder = tempfile::tempdir().unwrap();
        let saved = open(folder.path());
        let (one, two) = (Id::Number(1), Id::Number(2));
        let (first, second, other) = (saved.turn(), saved.turn(), saved.turn());
        second.keep(&one, &described("new")).unwrap();
        first.keep(&one, &described("old")).unwrap();
        other.keep(&two, &described("other")).unwrap();
        assert_eq!(descriptions(&saved), ["new", "other"]);

        let (edit, destroy) = (saved.turn(), saved.turn());
        destroy.remove(&one).unwrap();
        edit.keep(&one, &described("edited")).unwrap();
        assert_eq!(descriptions(&saved), ["other"]);
        assert_eq!(descriptions(&open(folder.path())), ["other"]);
        // Nothing is remembered once all turns were taken.
        drop((first, second, other, edit, destroy));
        assert!(saved.order().written.is_empty());
    }
}
