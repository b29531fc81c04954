//! The messages of a room as JSON.

mod event;
mod line;
mod notice;
mod person;
pub(crate) mod stream;

use portunus_core::Object;
use portunus_resources::Ids;
use portunus_room::{PersonId, State};
use serde_json::Value;

pub(crate) use notice::moderation;
pub(crate) use person::labelled;

/// Writes what is in a room as JSON.
#[derive(Clone, Copy)]
pub(crate) struct Show<'a> {
    ids: Ids,
    room: &'a State,
}

impl<'a> Show<'a> {
    pub(crate) fn new(ids: Ids, room: &'a State) -> Self {
        Show { ids, room }
    }

    /// Writes the id of a participant.
    pub(crate) fn id(self, id: &PersonId) -> Value {
        self.ids.of_path(id.as_str())
    }

    /// Writes the room's id.
    pub(crate) fn room(self) -> Value {
        self.ids.of_path(self.room.name())
    }

    /// Returns the head of a message: `what`, and the room.
    pub(crate) fn head(self, what: &str) -> Object {
        Object::new()
            .with("videoroom", what)
            .with("room", self.room())
    }

    /// Returns the head of a message of type `event`.
    pub(crate) fn event(self) -> Object {
        self.head("event")
    }
}
