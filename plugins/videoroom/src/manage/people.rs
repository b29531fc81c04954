//! Participants, as moderators see and treat them.

use portunus_core::{FieldError, Fields, Handle, Object};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::refusal::Refusal;
use crate::room::moderation;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let reply = Object::new()
            .with("videoroom", "participants")
            .with("room", room.id.to_json())
            .with("participants", room.listed());
        Ok(reply.into())
    }

    pub(super) fn kick(
        &self,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = self.rooms.ids().required(fields, "id")?;
            room.kick(&id, client)?;
            tracing::info!(room = %room.id, %id, "participant kicked");
            Ok(success().into())
        })
    }

    pub(super) fn moderate(
        &self,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = self.rooms.ids().required(fields, "id")?;
            let mid = fields.required_string("mid")?;
            let mute = fields.boolean("mute")?;
            let mute = mute.ok_or_else(|| FieldError::Missing("mute".to_owned()))?;
            room.moderate(&id, mid, mute)?;
            room.notify(client, || {
                let moderated = Object::new()
                    .with("videoroom", "moderated")
                    .with("room", room.id.to_json())
                    .with("id", id.to_json())
                    .with("mid", mid);
                moderated.with("moderation", moderation(mute)).into()
            });
            Ok(success().into())
        })
    }
}
