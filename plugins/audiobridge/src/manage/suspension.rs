//! Participants who take no part for a time, though they stay.

use std::sync::Arc;

use portunus_core::Fields;
use portunus_resources::Id;
use serde_json::Value;

use super::{Asker, alive, success};
use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::Room;

/// The types of `suspend`.
const SUSPENDED: Members = &[
    ("secret", Type::Text),
    ("pause_events", Type::Flag),
    ("stop_record", Type::Flag),
];

/// The types of `resume`.
const RESUMED: Members = &[
    ("secret", Type::Text),
    ("record", Type::Flag),
    ("filename", Type::Text),
    ("record_format", Type::Text),
];

impl Shared {
    pub(super) fn suspend(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        let (room, id) = self.suspended(fields, SUSPENDED, asker)?;
        room.lock().suspend(&id, fields, asker.handle())?;
        Ok(success().into())
    }

    pub(super) fn resume(&self, fields: Fields<'_>, asker: Asker<'_>) -> Result<Value, Refusal> {
        let (room, id) = self.suspended(fields, RESUMED, asker)?;
        let asked = (fields, asker.rights);
        room.lock().resume(&id, asked, asker.handle())?;
        Ok(success().into())
    }

    /// The participant that a request names and may suspend or resume.
    fn suspended(
        &self,
        fields: Fields<'_>,
        members: Members,
        asker: Asker<'_>,
    ) -> Result<(Arc<Room>, Id), Refusal> {
        check(fields, members)?;
        let ids = self.rooms.ids();
        ids.required(fields, "room")?;
        let id = ids.required(fields, "id")?;
        let room = self.rooms.named(fields)?;
        let state = room.lock();
        alive(&state)?;
        let client = asker.handle().map(|handle| handle.id());
        state.check_suspension(&id, fields, client)?;
        drop(state);
        Ok((room, id))
    }
}
