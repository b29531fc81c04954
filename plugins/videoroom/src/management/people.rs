//! Participants, as moderators see and treat them.

use portunus_core::{Fields, Object};
use portunus_resources::{Asker, RoomContent};
use portunus_room::{self as room, PersonId};
use serde::Deserialize;

use super::rooms::taps;
use super::success;
use crate::client::Client;
use crate::messages::moderation;
use crate::refusal::Refusal;
use crate::requests::fields::person_in;
use crate::shared::Shared;

/// The members of `moderate`.
#[derive(Deserialize)]
struct Moderation<'a> {
    id: PersonId,
    mid: &'a str,
    mute: bool,
}

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let room = self.rooms.named(fields)?;
        let door = room.lock();
        let state = door.conference.lock();
        let show = self.show(&state);
        let recorded = state.settings().recording.on.then_some(true);
        Ok(show
            .head("participants")
            .with("participants", show.participants())
            .with_some("record", recorded)
            .with_some("listening_in", taps(&state).listed()))
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        self.managed(fields, |_, conference| {
            let ids = self.rooms.ids();
            let id = person_in(fields, ids, "id")?;
            let client = asker.handle.clone().map(|handle| Client { handle, ids });
            conference.kick(
                &id,
                client.as_ref().map(|client| client as &dyn room::Client),
            )?;
            tracing::info!(room = conference.name(), %id, "participant kicked");
            Ok(success())
        })
    }

    pub(super) fn moderate(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        self.managed(fields, |door, room| {
            let Moderation { id, mid, mute } = self.rooms.ids().members(fields).read()?;
            room.moderate(&id, mid, mute)?;
            door.notify(asker.handle.as_ref(), || {
                let show = self.show(room);
                let moderated = show.head("moderated").with("id", show.id(&id));
                let moderated = moderated.with("mid", mid);
                moderated.with("moderation", moderation(mute)).into()
            });
            Ok(success())
        })
    }
}
