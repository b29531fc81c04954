//! Who may join, and recording.

use portunus_core::{FieldError, Fields};
use serde_json::{Value, json};

use super::success;
use crate::Shared;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let known = room.allowed.change(fields)?;
            let known = known.map(|known| json!(known));
            let reply = success()
                .with("room", room.id.to_json())
                .with_some("allowed", known);
            Ok(reply.into())
        })
    }

    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let record = fields.boolean("record")?;
            let record = record.ok_or_else(|| FieldError::Missing("record".to_owned()))?;
            room.record_all(record, fields.record_format()?)?;
            Ok(success().with("record", record).into())
        })
    }
}
