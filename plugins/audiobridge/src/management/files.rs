//! The requests about announcements: files that a room hears.

use std::sync::Arc;

use portunus_audio::{Announcement, AnnouncementId};
use portunus_core::{Fields, Later, Reply};
use portunus_files::Folders;
use portunus_resources::{RoomContent, read_with_secret};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::refusal::Refusal;
use crate::room::{Room, RoomState};
use crate::shared::Shared;

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
        let group = state.profile.options().wanted_group(group)?;
        let file_id = file_id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let number = state.announcements.add(&file_id, &filename, looping)?;
        drop(state);
        let folders = Arc::clone(&self.folders);
        let request = PlayRequest {
            filename,
            group,
            looping,
        };
        Ok(Reply::Later(Later::new(async move {
            let played = play(&room, &folders, request, number).await;
            let mut state = room.lock();
            match played {
                Ok(()) => state.message("success").with("file_id", file_id).into(),
                Err(refusal) => {
                    state.announcements.forget(number);
                    refusal.to_json()
                }
            }
        })))
    }

    pub(super) fn is_playing(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.about_file(fields, |room, file_id| {
            let playing = room.announcements.is_playing(file_id);
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
            Ok(reply
                .with("announcements", room.announcements.list())
                .into())
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

/// A file to play, and the group that hears it.
struct PlayRequest {
    filename: String,
    group: Option<usize>,
    looping: bool,
}

/// Plays a file of one of the configured folders.
async fn play(
    room: &Arc<Room>,
    folders: &Arc<Folders>,
    request: PlayRequest,
    number: AnnouncementId,
) -> Result<(), Refusal> {
    let PlayRequest {
        filename,
        group,
        looping,
    } = request;
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
    let sound = room.lock().mix.room();
    let what = Announcement {
        file,
        group,
        looping,
    };
    let announced = sound.announce(number, what).await;
    announced.map_err(|error| failed(&error))?;
    // Another request may have stopped it before it started.
    let mut state = room.lock();
    if state.has_ended() || !state.announcements.has(number) {
        sound.stop_announcement(number);
    }
    Ok(())
}
