//! What whoever watches the server is told of a room. Those who are in it are told by [`super::telling`].

use portunus_core::Handle;
use portunus_resources::{Id, RoomContent};

use super::{Participant, RoomState};

impl RoomState {
    /// Something that has happened with the room as a whole.
    pub(super) fn notify_room(&self, client: Option<&Handle>, event: &str) {
        self.notify(client, || self.notice(event).into());
    }

    /// Something that `client` did to somebody.
    pub(super) fn notify_about(&self, client: Option<&Handle>, event: &str, id: &Id) {
        self.notify(client, || {
            self.notice(event).with("id", id.to_json()).into()
        });
    }

    /// Somebody has joined, or has set how it is heard.
    pub(super) fn notify_settings(&self, person: &Participant, event: &str) {
        self.notify(person.who.handle(), || {
            let settings = &person.settings;
            let spatial = self.options.spatial.then_some(settings.position);
            self.notice(event)
                .with("id", person.id.to_json())
                .with_some("display", settings.display.as_deref())
                .with("setup", person.setup)
                .with("muted", settings.muted)
                .with("volume", settings.volume)
                .with("quality", settings.quality)
                .with("expected_loss", settings.expected_loss)
                .with("denoise", settings.denoise)
                .with_some("spatial_position", spatial)
                .into()
        });
    }

    /// Somebody is gone.
    pub(super) fn notify_left(&self, person: &Participant) {
        self.notify(person.who.handle(), || {
            self.notice("left")
                .with("id", person.id.to_json())
                .with_some("display", person.settings.display.as_deref())
                .into()
        });
    }
}
