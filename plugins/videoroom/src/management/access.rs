//! The requests `allowed` and `enable_recording`.

use portunus_core::record::Format;
use portunus_core::{Fields, Object, Reply};
use portunus_resources::{Answer, RoomContent};
use serde::Deserialize;

use super::success;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// The members of `enable_recording`.
#[derive(Deserialize)]
struct Recording {
    record: bool,
    #[serde(
        rename = "record_format",
        deserialize_with = "portunus_core::with::record_format"
    )]
    format: Option<Format>,
}

impl Shared {
    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        self.rooms.managed(fields, |_, door| {
            let allowed = door.allow(fields)?;
            door.is_changed();
            Ok(allowed)
        })
    }

    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        self.rooms.managed(fields, |_, door| {
            let Recording { record, format } = fields.read()?;
            door.conference.lock().record_all(record, format)?;
            door.is_changed();
            let reply = Answer::from(success().with("record", record));
            Ok(reply
                .recording(self.recorded(&door.conference.lock()))
                .reply())
        })
    }
}
