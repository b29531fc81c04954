//! Messages to the participants of a room, and events for subscribers.

use portunus_core::{Handle, Object};
use portunus_resources::{Id, RoomContent};
use serde_json::{Value, json};

use super::{Audience, Participant, RoomState};

impl RoomState {
    /// A message of the room called `event`, without its content.
    pub(super) fn event(&self) -> Object {
        self.profile.event()
    }

    /// Sends a message to an audience.
    pub(super) fn send(&self, audience: Audience<'_>, event: impl Into<Value>) {
        self.roster.send(audience, event.into());
    }

    /// Describes the participants except `id` to somebody who has just joined.
    pub(crate) fn others(&self, id: Option<&Id>) -> Vec<Value> {
        let options = self.profile.options();
        let others = self.roster.iter().filter(|person| Some(&person.id) != id);
        others
            .map(|person| person.to_json(options, true).into())
            .collect()
    }

    /// Tells the others how a participant is now.
    pub(crate) fn send_state(&self, id: &Id) {
        if let Some(person) = self.roster.get(id) {
            let event = self.event().with("participants", self.list_of_one(person));
            self.send(Audience::Others(id), event);
        }
    }

    /// Returns a list of participants with only this one.
    pub(super) fn list_of_one(&self, person: &Participant) -> Value {
        let options = self.profile.options();
        json!([Value::from(person.to_json(options, false))])
    }

    /// Publishes an event of the room as a whole.
    pub(super) fn notify_room(&self, client: Option<&Handle>, event: &str) {
        self.notify(client, || self.notice(event).into());
    }

    /// Publishes an action of `client` on a participant.
    pub(super) fn notify_about(&self, client: Option<&Handle>, event: &str, id: &Id) {
        self.notify(client, || {
            self.notice(event).with("id", id.to_json()).into()
        });
    }

    /// Publishes that a participant has joined, or has changed its settings.
    pub(super) fn notify_settings(&self, person: &Participant, event: &str) {
        self.notify(person.who.handle(), || {
            let settings = &person.settings;
            let is_spatial = self.profile.options().spatial;
            self.notice(event)
                .with("id", person.id.to_json())
                .with_some("display", settings.display.as_deref())
                .with("setup", person.setup)
                .with("muted", settings.muted)
                .with("volume", settings.volume)
                .with("quality", settings.quality)
                .with("expected_loss", settings.expected_loss)
                .with("denoise", settings.denoise)
                .with_some("spatial_position", is_spatial.then_some(settings.position))
                .into()
        });
    }

    /// Publishes that a participant has left.
    pub(super) fn notify_left(&self, person: &Participant) {
        self.notify(person.who.handle(), || {
            self.notice("left")
                .with("id", person.id.to_json())
                .with_some("display", person.settings.display.as_deref())
                .into()
        });
    }
}
