//! The requests that suspend and resume participants.

use std::sync::Arc;

use portunus_core::Fields;
use portunus_resources::{Asker, Id, RoomContent, read_with_secret};
use serde::Deserialize;
use serde_json::Value;

use super::success;
use crate::refusal::Refusal;
use crate::room::{RecordWish, Room, Suspension};
use crate::shared::Shared;

/// The members of `suspend`.
#[derive(Deserialize)]
struct Suspend {
    #[serde(default)]
    pause_events: bool,
    #[serde(default)]
    stop_record: bool,
}

/// The members of `resume`.
#[derive(Deserialize)]
struct Resume<'a> {
    record: Option<bool>,
    filename: Option<&'a str>,
    record_format: Option<&'a str>,
}

impl Shared {
    pub(super) fn suspend(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        let Suspend {
            pause_events,
            stop_record,
        } = read_with_secret(fields)?;
        let (room, id) = self.suspended(fields, asker)?;
        let suspension = Suspension {
            pauses_events: pause_events,
            stops_recording: stop_record,
        };
        room.lock().suspend(&id, suspension, asker.handle.as_ref());
        Ok(success().into())
    }

    pub(super) fn resume(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        let Resume {
            record,
            filename,
            record_format,
        } = read_with_secret(fields)?;
        let (room, id) = self.suspended(fields, asker)?;
        let wish = RecordWish::new(record, filename, record_format, asker.rights)?;
        let mut room = room.lock();
        room.resume(&id, wish, asker.handle.as_ref())?;
        Ok(success().into())
    }

    /// Returns the participant that a request names, if it may suspend or resume it.
    fn suspended(&self, fields: Fields<'_>, asker: &Asker) -> Result<(Arc<Room>, Id), Refusal> {
        let ids = self.rooms.ids();
        ids.required(fields, "room")?;
        let id = ids.required(fields, "id")?;
        let room = self.rooms.named(fields)?;
        let state = room.lock();
        state.check_there()?;
        let client = asker.handle.as_ref().map(|handle| handle.id());
        if !asker.elsewhere.is_some_and(|client| client.is_own) {
            state.check_suspension(&id, fields, client)?;
        }
        drop(state);
        Ok((room, id))
    }
}
