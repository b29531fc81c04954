//! Participants who take no part for a time, though they stay.

use std::sync::Arc;

use portunus_core::Fields;
use portunus_resources::{Asker, Id, RoomContent};
use serde::Deserialize;
use serde_json::Value;

use super::success;
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::Room;

/// The members of `suspend`.
#[derive(Deserialize)]
struct Suspend<'a> {
    #[serde(rename = "secret")]
    _secret: Option<&'a str>,
    #[serde(default)]
    pause_events: bool,
    #[serde(default)]
    stop_record: bool,
}

/// The types of the members of `resume`.
#[derive(Deserialize)]
struct Resume<'a> {
    #[serde(rename = "secret")]
    _secret: Option<&'a str>,
    #[serde(rename = "record")]
    _record: Option<bool>,
    #[serde(rename = "filename")]
    _filename: Option<&'a str>,
    #[serde(rename = "record_format")]
    _record_format: Option<&'a str>,
}

impl Shared {
    pub(super) fn suspend(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        let Suspend {
            pause_events,
            stop_record,
            ..
        } = fields.read()?;
        let (room, id) = self.suspended(fields, asker)?;
        let how = (pause_events, stop_record);
        room.lock().suspend(&id, how, asker.handle.as_ref());
        Ok(success().into())
    }

    pub(super) fn resume(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        fields.read::<Resume<'_>>()?;
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
