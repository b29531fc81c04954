//! Who may join, and recording.

use portunus_core::{Fields, Object, Reply};
use portunus_resources::{Answer, RoomContent};

use super::success;
use crate::Shared;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        self.rooms
            .managed(fields, |_, door| Ok(door.allow(fields)?))
    }

    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        self.managed(fields, |_, room| {
            let record = fields.required_boolean("record")?;
            room.record_all(record, fields.record_format()?)?;
            let reply = Answer::from(success().with("record", record));
            Ok(reply.recording(self.recorded(room)).reply())
        })
    }
}
