//! The requests about announcements: files that a room hears.

use std::sync::Arc;

use portunus_audio::Announcement;
use portunus_core::{Fields, Later, Object, Reply};
use portunus_files::Folders;
use serde_json::Value;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{ROOM, success_in};
use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};

/// The types of `play_file`.
const PLAYED: Members = &[
    ("secret", Type::Text),
    ("filename", Type::NeededText),
    ("file_id", Type::Text),
    ("group", Type::Text),
    ("loop", Type::Flag),
];

/// The types of `is_playing` and `stop_file`.
const NAMED: Members = &[("secret", Type::Text), ("file_id", Type::NeededText)];

impl Shared {
    pub(super) fn play_file(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        check(fields, PLAYED)?;
        let filename = fields.required_string("filename")?.to_owned();
        let looping = fields.boolean("loop")?.unwrap_or(false);
        self.rooms.ids().required(fields, "room")?;
        self.check_playing(fields)?;
        let room = self.managed_room(fields)?;
        let mut state = room.lock();
        let group = match state.options.groups.is_empty() {
            true => None,
            false => Some(state.options.group(fields.required_string("group")?)?),
        };
        let file_id = match fields.text("file_id")? {
            Some(file_id) => file_id.to_owned(),
            None => Uuid::new_v4().to_string(),
        };
        let number = state.announce(&file_id, &filename, looping)?;
        drop(state);
        let folders = Arc::clone(&self.folders);
        Ok(Reply::Later(Later::new(async move {
            let played = play(&room, &folders, filename, (group, looping), number).await;
            let mut state = room.lock();
            match played {
                Ok(()) => success_in(&state).with("file_id", file_id).into(),
                Err(refusal) => {
                    state.forget_announcement(number);
                    refusal.to_json()
                }
            }
        })))
    }

    pub(super) fn is_playing(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.about_file(fields, |room, file_id| {
            let playing = room.is_playing(file_id);
            let reply = success_in(room).with("file_id", file_id);
            reply.with("playing", playing).into()
        })
    }

    pub(super) fn stop_file(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.about_file(fields, |room, file_id| {
            room.stop_file(file_id);
            success_in(room).with("file_id", file_id).into()
        })
    }

    pub(super) fn stop_all_files(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        check(fields, ROOM)?;
        self.rooms.ids().required(fields, "room")?;
        self.check_playing(fields)?;
        self.managed(fields, ROOM, |room| {
            let files = room.stop_all_files();
            Ok(success_in(room).with("file_id_list", files).into())
        })
    }

    pub(super) fn list_announcements(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, ROOM, |room| {
            let reply = Object::new()
                .with("audiobridge", "announcements")
                .with("room", room.id.to_json())
                .with("announcements", room.announcements());
            Ok(reply.into())
        })
    }

    fn about_file(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState, &str) -> Value,
    ) -> Result<Value, Refusal> {
        check(fields, NAMED)?;
        self.rooms.ids().required(fields, "room")?;
        self.check_playing(fields)?;
        let file_id = fields.required_string("file_id")?;
        self.managed(fields, NAMED, |room| Ok(act(room, file_id)))
    }

    /// Checks that a request may play files, where that is locked.
    fn check_playing(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        match self.lock_play_file {
            true => Ok(self.rooms.check_admin_key(fields)?),
            false => Ok(()),
        }
    }
}

/// Plays a file that is in one of the folders that requests may name files in.
async fn play(
    room: &Arc<Room>,
    folders: &Arc<Folders>,
    filename: String,
    (group, looping): (Option<usize>, bool),
    number: portunus_audio::AnnouncementId,
) -> Result<(), Refusal> {
    let (folders, name) = (Arc::clone(folders), filename.clone());
    let found = spawn_blocking(move || folders.find(&name)).await;
    let failed = |error: &dyn std::fmt::Display| {
        tracing::warn!(room = %room.id, filename, "cannot be announced: {error}");
        Refusal::File
    };
    let file = match found {
        Ok(Ok(file)) => file,
        Ok(Err(error)) => return Err(failed(&error)),
        Err(error) => return Err(failed(&error)),
    };
    let sound = room.lock().sound();
    let what = Announcement {
        file,
        group,
        looping,
    };
    let announced = sound.announce(number, what).await;
    announced.map_err(|error| failed(&error))?;
    // Whoever has stopped it meanwhile found nothing to stop.
    if !room.lock().has_announcement(number) {
        sound.stop_announcement(number);
    }
    Ok(())
}
