//! Who may join, and recording.

use portunus_core::{FieldError, Fields, Later, Reply};
use serde_json::{Value, json};

use super::success;
use crate::Shared;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let known = room.door.allowed.change(fields)?;
            let known = known.map(|known| json!(known));
            let reply = success()
                .with("room", room.room.id.to_json())
                .with_some("allowed", known);
            Ok(reply.into())
        })
    }

    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        self.managed(fields, |room| {
            let record = fields.boolean("record")?;
            let record = record.ok_or_else(|| FieldError::Missing("record".to_owned()))?;
            room.record_all(record, fields.record_format()?)?;
            let reply = success().with("record", record);
            let Some(recorded) = self.recorded(&room.room.id, room.settings()) else {
                return Ok(Reply::Success(reply.into()));
            };
            Ok(Reply::Later(Later::new(async move {
                Value::from(reply.with_some("recording_failed", recorded.fault().await))
            })))
        })
    }
}
