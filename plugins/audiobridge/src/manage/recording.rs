//! Recording: the mix, and all participants.

use std::sync::Arc;

use portunus_core::{Fields, Later, Reply};
use portunus_resources::{Id, Ids};
use serde_json::Value;

use super::{alive, success};
use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Room, record_mix, record_people};

/// The types of `enable_recording`.
const MIX: Members = &[
    ("secret", Type::Text),
    ("record", Type::NeededFlag),
    ("record_file", Type::Text),
    ("record_dir", Type::Text),
];

/// The types of `enable_mjrs`.
const PEOPLE: Members = &[
    ("secret", Type::Text),
    ("mjrs", Type::NeededFlag),
    ("mjrs_dir", Type::Text),
    ("record_format", Type::Text),
];

impl Shared {
    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        check(fields, MIX)?;
        let record = fields.required_boolean("record")?;
        let text = |name| fields.text(name).map(|text| text.map(str::to_owned));
        let (file, dir) = (text("record_file")?, text("record_dir")?);
        let room = self.recorded_room(fields)?;
        let reply = Value::from(success().with("record", record));
        let mut state = room.lock();
        if !record {
            state.stop_mix_file();
            return Ok(Reply::Success(reply));
        }
        let Some(what) = state.begin_mix_file(file, dir) else {
            return Ok(Reply::Success(reply));
        };
        drop(state);
        Ok(Reply::Later(Later::new(async move {
            let recorded = record_mix(room, what).await;
            recorded.map_or_else(|refusal| refusal.to_json(), |()| reply)
        })))
    }

    pub(super) fn enable_mjrs(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        check(fields, PEOPLE)?;
        let record = fields.required_boolean("mjrs")?;
        let dir = fields.text("mjrs_dir")?.map(str::to_owned);
        let format = fields.record_format()?;
        let room = self.recorded_room(fields)?;
        let reply = Value::from(success().with("mjrs", record));
        let mut state = room.lock();
        if !record {
            state.stop_recording_people();
        }
        if state.records_people() == record {
            return Ok(Reply::Success(reply));
        }
        drop(state);
        Ok(Reply::Later(Later::new(async move {
            let recorded = record_people(room, dir, format).await;
            recorded.map_or_else(|refusal| refusal.to_json(), |()| reply)
        })))
    }

    /// The room that a request names and may manage; without a name it is one that there cannot be.
    fn recorded_room(&self, fields: Fields<'_>) -> Result<Arc<Room>, Refusal> {
        let ids = self.rooms.ids();
        let nobody = || match ids {
            Ids::Numbers => Id::Number(0),
            Ids::Texts => Id::Text(String::new()),
        };
        let id = ids.read(fields, "room")?.unwrap_or_else(nobody);
        let room = self.rooms.get(&id)?;
        let state = room.lock();
        alive(&state)?;
        state.check_secret(fields)?;
        drop(state);
        Ok(room)
    }
}
