//! Participants, as moderators see and treat them.

use portunus_core::{Fields, Object};
use portunus_room::Connection;
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::client::Client;
use crate::read::person_in;
use crate::refusal::Refusal;
use crate::show::moderation;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let show = room.show();
        let reply = show
            .told("participants")
            .with("participants", show.participants());
        Ok(reply.into())
    }

    pub(super) fn kick(
        &self,
        fields: Fields<'_>,
        client: Option<&Client>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = person_in(fields, self.rooms.ids(), "id")?;
            room.kick(&id, client.map(|client| client as &dyn Connection))?;
            tracing::info!(room = room.name(), %id, "participant kicked");
            Ok(success().into())
        })
    }

    pub(super) fn moderate(
        &self,
        fields: Fields<'_>,
        client: Option<&Client>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = person_in(fields, self.rooms.ids(), "id")?;
            let mid = fields.required_string("mid")?;
            let mute = fields.required_boolean("mute")?;
            room.moderate(&id, mid, mute)?;
            room.notify(client, |show| {
                let moderated: Object = show.told("moderated");
                let moderated = moderated.with("id", show.id(&id)).with("mid", mid);
                moderated.with("moderation", moderation(mute)).into()
            });
            Ok(success().into())
        })
    }
}
