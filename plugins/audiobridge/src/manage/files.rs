//! The requests about announcements: files that a room hears.

use std::sync::Arc;

use portunus_audio::Announcement;
use portunus_core::{Fields, Later, Reply};
use portunus_files::Folders;
use portunus_resources::{RoomContent, read_with_secret};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};

/// The members of `play_file`.
#[derive(Deserialize)]
struct PlayFile<'a> {
    filename: String,
    #[serde(default, deserialize_with = "portunus_core::with::text")]
    file_id: Option<String>,
    group: Option<&'a str>,
    #[serde(default, rename = "loop")]
    looping: bool,
}

/// The members of `is_playing` and `stop_file`.
#[derive(Deserialize)]
struct OneFile<'a> {
    file_id: &'a str,
}

impl Shared {
    pub(super) fn play_file(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let PlayFile {
            filename,
            file_id,
            group,
            looping,
        } = read_with_secret(fields)?;
        self.check_lock(fields, self.lock_play_file)?;
        let room = self.managed_room(fields)?;
        let mut state = room.lock();
        let group = state.options.wanted_group(group)?;
        let file_id = file_id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let number = state.announce(&file_id, &filename, looping)?;
        drop(state);
        let folders = Arc::clone(&self.folders);
        Ok(Reply::Later(Later::new(async move {
            let played = play(&room, &folders, filename, (group, looping), number).await;
            let mut state = room.lock();
            match played {
                Ok(()) => state.message("success").with("file_id", file_id).into(),
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
            let reply = room.message("success").with("file_id", file_id);
            reply.with("playing", playing).into()
        })
    }

    pub(super) fn stop_file(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.about_file(fields, |room, file_id| {
            room.stop_file(file_id);
            room.message("success").with("file_id", file_id).into()
        })
    }

    pub(super) fn stop_all_files(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        read_with_secret::<()>(fields)?;
        self.check_lock(fields, self.lock_play_file)?;
        self.managed(fields, |room, ()| {
            let files = room.stop_all_files();
            Ok(room.message("success").with("file_id_list", files).into())
        })
    }

    pub(super) fn list_announcements(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room, ()| {
            let reply = room.message("announcements");
            Ok(reply.with("announcements", room.announcements()).into())
        })
    }

    fn about_file(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState, &str) -> Value,
    ) -> Result<Value, Refusal> {
        let OneFile { file_id } = read_with_secret(fields)?;
        self.check_lock(fields, self.lock_play_file)?;
        self.managed(fields, |room, ()| Ok(act(room, file_id)))
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
