//! Who may join, and recording.

use portunus_core::{FieldError, Fields};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::members;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let action = fields.required_string("action")?.to_ascii_lowercase();
            let tokens = members::texts(fields, "allowed")?;
            match action.as_str() {
                "enable" => room.access.checked = true,
                "disable" => room.access.checked = false,
                "add" => room.access.tokens.extend(tokens.into_iter().flatten()),
                "remove" => {
                    for token in tokens.into_iter().flatten() {
                        room.access.tokens.remove(&token);
                    }
                }
                _ => return Err(Refusal::value("action", "enable, disable, add or remove")),
            }
            let mut known: Vec<_> = room.access.tokens.iter().cloned().collect();
            known.sort_unstable();
            let known = (action != "disable").then_some(known);
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
            room.record_all(record)?;
            Ok(success().with("record", record).into())
        })
    }
}
