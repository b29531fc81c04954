//! Participants, as moderators see and treat them.

use portunus_core::{Fields, Object};
use portunus_resources::Id;
use serde_json::Value;

use super::{Asker, ROOM, success, success_in};
use crate::members::check;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::RoomState;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let reply = Object::new()
            .with("audiobridge", "participants")
            .with("room", room.id.to_json())
            .with("participants", room.others(None));
        Ok(reply.into())
    }

    pub(super) fn mute(
        &self,
        fields: Fields<'_>,
        muted: bool,
        asker: Asker<'_>,
    ) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            let changed = room.mute(id, muted, asker.handle())?;
            Ok(changed_or_not(room, changed))
        })
    }

    pub(super) fn mute_room(
        &self,
        fields: Fields<'_>,
        muted: bool,
        asker: Asker<'_>,
    ) -> Result<Value, Refusal> {
        self.managed(fields, ROOM, |room| {
            let changed = room.mute_room(muted, asker.handle());
            Ok(changed_or_not(room, changed))
        })
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            room.kick(id, asker.handle())?;
            tracing::info!(room = %room.id, %id, "participant kicked");
            Ok(success().into())
        })
    }

    pub(super) fn kick_all(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        self.managed(fields, ROOM, |room| {
            room.kick_all(asker.handle());
            tracing::info!(room = %room.id, "all participants kicked");
            Ok(success().into())
        })
    }

    pub(super) fn denoise(&self, fields: Fields<'_>, denoise: bool) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            room.denoise(id, denoise)?;
            Ok(success_in(room).into())
        })
    }

    /// Does something with the participant that a request names, in a room that it may manage.
    fn about<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState, &Id) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        check(fields, ROOM)?;
        let ids = self.rooms.ids();
        ids.required(fields, "room")?;
        let id = ids.required(fields, "id")?;
        self.managed(fields, ROOM, |room| act(room, &id))
    }
}

/// The reply names the room only if something has changed in it.
fn changed_or_not(room: &RoomState, changed: bool) -> Value {
    match changed {
        true => success_in(room).into(),
        false => success().into(),
    }
}
