//! Members, as moderators see and treat them.

use portunus_core::{Fields, Object};
use portunus_resources::{Asker, RoomContent};
use serde::de::IgnoredAny;

use super::{check_types, success};
use crate::plugin::Shared;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let participants = room.participants();
        Ok(room.message("success").with("participants", participants))
    }

    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        check_types(fields, &["secret"])?;
        fields.required_string("action")?;
        fields.member::<Vec<IgnoredAny>>("allowed")?;
        self.rooms
            .managed(fields, |_, room| Ok(room.allow(fields)?))
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        check_types(fields, &["secret"])?;
        let username = fields.required_string("username")?;
        self.rooms.managed(fields, |_, room| {
            room.kick(username, asker.handle.as_ref())?;
            tracing::info!(room = %room.id, username, "member kicked");
            Ok(success())
        })
    }

    pub(super) fn announcement(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        check_types(fields, &["secret"])?;
        let text = fields.required_string("text")?;
        self.rooms.managed(fields, |_, room| {
            room.announce(text)?;
            Ok(success())
        })
    }
}
