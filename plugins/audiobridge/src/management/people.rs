//! The requests of moderators about participants.

use portunus_core::Fields;
use portunus_resources::{Asker, Id, RoomContent, read_with_secret};
use serde_json::Value;

use super::success;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::shared::Shared;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let recorded = room.profile.options().record.then_some(true);
        let reply = room
            .message("participants")
            .with("participants", room.others(None))
            .with_some("record", recorded)
            .with_some("listening_in", room.taps().listed());
        Ok(reply.into())
    }

    pub(super) fn mute(
        &self,
        fields: Fields<'_>,
        muted: bool,
        asker: &Asker,
    ) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            let changed = room.mute(id, muted, asker.handle.as_ref())?;
            Ok(changed_or_not(room, changed))
        })
    }

    pub(super) fn mute_room(
        &self,
        fields: Fields<'_>,
        muted: bool,
        asker: &Asker,
    ) -> Result<Value, Refusal> {
        self.managed(fields, |room, ()| {
            let changed = room.mute_room(muted, asker.handle.as_ref());
            Ok(changed_or_not(room, changed))
        })
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            room.kick(id, asker.handle.as_ref())?;
            tracing::info!(room = %room.id(), %id, "participant kicked");
            Ok(success().into())
        })
    }

    pub(super) fn kick_all(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        self.managed(fields, |room, ()| {
            room.kick_all(asker.handle.as_ref());
            tracing::info!(room = %room.id(), "all participants kicked");
            Ok(success().into())
        })
    }

    pub(super) fn denoise(&self, fields: Fields<'_>, denoise: bool) -> Result<Value, Refusal> {
        self.about(fields, |room, id| {
            room.denoise(id, denoise)?;
            Ok(room.message("success").into())
        })
    }

    /// Runs `act` with the participant that a request names, in a room that it may manage.
    fn about<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState, &Id) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        read_with_secret::<()>(fields)?;
        let ids = self.rooms.ids();
        ids.required(fields, "room")?;
        let id = ids.required(fields, "id")?;
        self.managed(fields, |room, ()| act(room, &id))
    }
}

/// Returns the reply. It names the room only if something has changed.
fn changed_or_not(room: &RoomState, changed: bool) -> Value {
    match changed {
        true => room.message("success").into(),
        false => success().into(),
    }
}
