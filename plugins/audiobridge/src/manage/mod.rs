//! The requests that are answered at once: those that manage rooms, of clients and of administrators.

mod access;
mod dial;
mod files;
mod forward;
mod people;
mod recording;
mod rooms;
mod suspension;

use std::sync::Arc;

use portunus_core::record::Recorder;
use portunus_core::{Fields, Handle, Later, Object, Reply, Rights, TokenScope, recording_fault};
use portunus_resources::{Maker, Writing};
use serde_json::Value;

use crate::members::{Members, Type, check};
use crate::plugin::Shared;
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};

/// Who makes a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The client; none: an administrator.
    pub(crate) client: Option<(&'a Handle, &'a TokenScope)>,
    pub(crate) rights: Rights,
    /// Who makes what it makes.
    pub(crate) maker: Maker,
}

impl<'a> Asker<'a> {
    /// The client's handle.
    fn handle(self) -> Option<&'a Handle> {
        self.client.map(|(handle, _)| handle)
    }
}

/// The types of a request that says nothing but its room.
const ROOM: Members = &[("secret", Type::Text)];

impl Shared {
    /// Answers a request.
    pub(crate) fn manage(
        &self,
        name: &str,
        fields: Fields<'_>,
        asker: Asker<'_>,
    ) -> Result<Reply, Refusal> {
        match name {
            "create" => self.create(fields, asker),
            "edit" => self.edit(fields, asker),
            "destroy" => self.destroy(fields, asker),
            "exists" => self.exists(fields).map(Reply::Success),
            "list" => self.list(fields, asker).map(Reply::Success),
            "allowed" => self.allowed(fields).map(Reply::Success),
            "listparticipants" => self.list_participants(fields).map(Reply::Success),
            "mute" => self.mute(fields, true, asker).map(Reply::Success),
            "unmute" => self.mute(fields, false, asker).map(Reply::Success),
            "mute_room" => self.mute_room(fields, true, asker).map(Reply::Success),
            "unmute_room" => self.mute_room(fields, false, asker).map(Reply::Success),
            "kick" => self.kick(fields, asker).map(Reply::Success),
            "kick_all" => self.kick_all(fields, asker).map(Reply::Success),
            "denoise_enable" => self.denoise(fields, true).map(Reply::Success),
            "denoise_disable" => self.denoise(fields, false).map(Reply::Success),
            "suspend" => self.suspend(fields, asker).map(Reply::Success),
            "resume" => self.resume(fields, asker).map(Reply::Success),
            "rtp_forward" => self.rtp_forward(fields),
            "stop_rtp_forward" => self.stop_rtp_forward(fields).map(Reply::Success),
            "listforwarders" => self.list_forwarders(fields).map(Reply::Success),
            "play_file" => self.play_file(fields),
            "is_playing" => self.is_playing(fields).map(Reply::Success),
            "stop_file" => self.stop_file(fields).map(Reply::Success),
            "stop_all_files" => self.stop_all_files(fields).map(Reply::Success),
            "listannouncements" => self.list_announcements(fields).map(Reply::Success),
            "dial_out" => self.dial_out(fields, asker).map(Reply::Success),
            "stop_dial_out" => self.stop_dial_out(fields).map(Reply::Success),
            "enable_recording" => self.enable_recording(fields),
            "enable_mjrs" => self.enable_mjrs(fields),
            _ => Err(Refusal::UnknownRequest(name.to_owned())),
        }
    }

    /// Does something with the room that a request names and may manage, once its members have the right types.
    fn managed<T>(
        &self,
        fields: Fields<'_>,
        members: Members,
        act: impl FnOnce(&mut RoomState) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        check(fields, members)?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        alive(&state)?;
        state.check_secret(fields)?;
        act(&mut state)
    }

    /// The room that a request names and may manage, once its members have the right types.
    fn managed_room(&self, fields: Fields<'_>) -> Result<Arc<Room>, Refusal> {
        let room = self.rooms.named(fields)?;
        let state = room.lock();
        alive(&state)?;
        state.check_secret(fields)?;
        drop(state);
        Ok(room)
    }
}

/// Checks that a room was not destroyed meanwhile.
fn alive(room: &RoomState) -> Result<(), Refusal> {
    match room.destroyed {
        true => Err(Refusal::NoSuchRoom(room.id.clone())),
        false => Ok(()),
    }
}

/// The reply, once the change is written if it is for good; `permanent` says whether that went well. If the room is to be
/// recorded and cannot be, `recording_failed` says why.
fn saving(writing: Option<Writing>, recorded: Option<RecordedRoom>, reply: Object) -> Reply {
    if writing.is_none() && recorded.is_none() {
        return Reply::Success(reply.with("permanent", false).into());
    }
    Reply::Later(Later::new(async move {
        let is_written = match writing {
            Some(writing) => writing.done().await.is_ok(),
            None => false,
        };
        let fault = match recorded {
            Some(recorded) => recorded.fault().await,
            None => None,
        };
        let reply = reply.with("permanent", is_written);
        Value::from(reply.with_some("recording_failed", fault))
    }))
}

/// A room that is to be recorded.
struct RecordedRoom {
    recorder: Recorder,
    room: String,
    dirs: Vec<Option<String>>,
}

impl RecordedRoom {
    /// Returns why it cannot be recorded, or `None` if it can.
    async fn fault(&self) -> Option<String> {
        recording_fault(&self.recorder, &self.room, &self.dirs).await
    }
}

/// The reply to requests that have nothing to tell.
fn success() -> Object {
    Object::new().with("audiobridge", "success")
}

/// The same with the room.
fn success_in(room: &RoomState) -> Object {
    success().with("room", room.id.to_json())
}
