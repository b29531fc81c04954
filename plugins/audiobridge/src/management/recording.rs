//! The requests about recordings of the mix and of all participants.

use std::sync::Arc;

use portunus_core::{Fields, Later, Reply};
use portunus_resources::{Id, Ids, RoomContent, read_with_secret};
use serde::Deserialize;
use serde_json::Value;

use super::success;
use crate::refusal::Refusal;
use crate::room::{Room, format_named, record_mix, record_people};
use crate::shared::Shared;

/// The members of `enable_recording`.
#[derive(Deserialize)]
struct EnableRecording {
    record: bool,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    record_file: Option<String>,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    record_dir: Option<String>,
}

/// The members of `enable_mjrs`.
#[derive(Deserialize)]
struct EnableMjrs<'a> {
    mjrs: bool,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    mjrs_dir: Option<String>,
    record_format: Option<&'a str>,
}

impl Shared {
    pub(super) fn enable_recording(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let EnableRecording {
            record,
            record_file,
            record_dir,
        } = read_with_secret(fields)?;
        let room = self.recorded_room(fields)?;
        let reply = Value::from(success().with("record", record));
        let mut state = room.lock();
        if !record {
            state.stop_recording_mix();
            return Ok(Reply::Success(reply));
        }
        let Some(pending) = state.turn_on_recording(record_file, record_dir) else {
            return Ok(Reply::Success(reply));
        };
        drop(state);
        Ok(Reply::Later(Later::new(async move {
            let recorded = record_mix(room, pending).await;
            recorded.map_or_else(|refusal| refusal.to_json(), |()| reply)
        })))
    }

    pub(super) fn enable_mjrs(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let EnableMjrs {
            mjrs: record,
            mjrs_dir,
            record_format,
        } = read_with_secret(fields)?;
        let format = format_named(record_format)?;
        let room = self.recorded_room(fields)?;
        let reply = Value::from(success().with("mjrs", record));
        let mut state = room.lock();
        if !record {
            state.stop_recording_people();
        }
        if state.profile.options().mjrs == record {
            return Ok(Reply::Success(reply));
        }
        drop(state);
        Ok(Reply::Later(Later::new(async move {
            let recorded = record_people(room, mjrs_dir, format).await;
            recorded.map_or_else(|refusal| refusal.to_json(), |()| reply)
        })))
    }

    /// Returns the room that a request names and may manage. A missing name counts as a room that
    /// does not exist.
    fn recorded_room(&self, fields: Fields<'_>) -> Result<Arc<Room>, Refusal> {
        let ids = self.rooms.ids();
        let nobody = || match ids {
            Ids::Numbers => Id::Number(0),
            Ids::Texts => Id::Text(String::new()),
        };
        let id = ids.read(fields, "room")?.unwrap_or_else(nobody);
        let room = self.rooms.get(&id)?;
        room.lock().check_managed(fields)?;
        Ok(room)
    }
}
