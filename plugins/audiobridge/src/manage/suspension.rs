//! Participants who take no part for a time, though they stay.

use std::sync::Arc;

use portunus_core::Fields;
use portunus_resources::{Asker, Id, RoomContent};
use serde_json::Value;

use super::success;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::Room;

impl Shared {
    pub(super) fn suspend(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        fields.string("secret")?;
        let paused = fields.boolean("pause_events")?.unwrap_or(false);
        let stops = fields.boolean("stop_record")?.unwrap_or(false);
        let (room, id) = self.suspended(fields, asker)?;
        let how = (paused, stops);
        room.lock().suspend(&id, how, asker.handle.as_ref());
        Ok(success().into())
    }

    pub(super) fn resume(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        fields.string("secret")?;
        fields.boolean("record")?;
        fields.string("filename")?;
        fields.string("record_format")?;
        let (room, id) = self.suspended(fields, asker)?;
        let asked = (fields, asker.rights);
        let mut room = room.lock();
        room.resume(&id, asked, asker.handle.as_ref())?;
        Ok(success().into())
    }

    /// The participant that a request names and may suspend or resume.
    fn suspended(&self, fields: Fields<'_>, asker: &Asker) -> Result<(Arc<Room>, Id), Refusal> {
        let ids = self.rooms.ids();
        ids.required(fields, "room")?;
        let id = ids.required(fields, "id")?;
        let room = self.rooms.named(fields)?;
        let state = room.lock();
        state.check_there()?;
        let client = asker.handle.as_ref().map(|handle| handle.id());
        state.check_suspension(&id, fields, client)?;
        drop(state);
        Ok((room, id))
    }
}
