//! What is told of a room, as JSON.

mod line;
mod notice;
mod person;
pub(crate) mod stream;
mod watchers;

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

    /// The id of somebody.
    pub(crate) fn id(self, id: &PersonId) -> Value {
        self.ids.of_path(id.as_str())
    }

    /// The room's id.
    pub(crate) fn room(self) -> Value {
        self.ids.of_path(self.room.name())
    }

    /// What a client is told, without what else it says: `what`, and the room.
    pub(crate) fn told(self, what: &str) -> Object {
        Object::new()
            .with("videoroom", what)
            .with("room", self.room())
    }

    /// A message of the room, without what it says.
    pub(crate) fn event(self) -> Object {
        self.told("event")
    }
}
