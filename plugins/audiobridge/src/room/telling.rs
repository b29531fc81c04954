//! What those who are in a room are told.

use portunus_core::{Notice, Object};
use portunus_resources::{Id, RoomContent};
use serde_json::{Value, json};

use super::{Audience, Participant, RoomState};

impl RoomState {
    /// A message of the room that is called an event, without what it says.
    pub(super) fn event(&self) -> Object {
        self.message("event")
    }

    /// Tells an audience something.
    pub(super) fn tell(&self, audience: Audience<'_>, event: impl Into<Value>) {
        self.roster.tell(audience, &Notice::new(event));
    }

    /// The participants but `id`, as somebody is told of them who has just come.
    pub(crate) fn others(&self, id: Option<&Id>) -> Vec<Value> {
        let others = self.roster.iter().filter(|person| Some(&person.id) != id);
        others
            .map(|person| person.shown(&self.options, true).into())
            .collect()
    }

    /// Tells others how somebody is now.
    pub(crate) fn tell_shown(&self, id: &Id) {
        if let Some(person) = self.roster.get(id) {
            let event = self.event().with("participants", self.alone(person));
            self.tell(Audience::Others(id), event);
        }
    }

    /// The list of participants that has only this one.
    pub(super) fn alone(&self, person: &Participant) -> Value {
        json!([Value::from(person.shown(&self.options, false))])
    }
}
