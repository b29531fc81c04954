//! The requests that manage rooms; they are answered at once, to clients and to administrators.

mod access;
mod forward;
mod people;
mod remote;
mod remotize;
mod rooms;
mod target;

use std::sync::Arc;

use portunus_core::record::Recorder;
use portunus_core::{Fields, Later, Object, Reply, Rights, TokenScope, recording_fault};
use portunus_resources::{Maker, Writing};
use serde_json::Value;

use crate::Shared;
use crate::client::Client;
use crate::refusal::Refusal;
use crate::room::Locked;

pub(crate) use forward::forwarder;

impl Shared {
    /// Answers a request of a client, or of an administrator, that may be made with these rights. `maker` is who makes
    /// what it makes.
    pub(crate) fn manage(
        &self,
        name: &str,
        fields: Fields<'_>,
        client: Option<(&Arc<Client>, &TokenScope)>,
        (rights, maker): (Rights, Maker),
    ) -> Result<Reply, Refusal> {
        let scoped = client;
        let asker = scoped.map(|(client, _)| client);
        let client = asker.map(|client| &**client);
        match name {
            "create" => self.create(fields, client, (rights, maker)),
            "edit" => {
                let scoped = scoped.map(|(client, scope)| (&**client, scope));
                self.edit(fields, scoped)
            }
            "destroy" => self.destroy(fields, client),
            "exists" => self.exists(fields).map(Reply::Success),
            "list" => {
                let by_administrator = client.is_none();
                self.list(fields, rights, by_administrator)
                    .map(Reply::Success)
            }
            "allowed" => self.allowed(fields).map(Reply::Success),
            "kick" => self.kick(fields, client).map(Reply::Success),
            "moderate" => self.moderate(fields, client).map(Reply::Success),
            "enable_recording" => self.enable_recording(fields),
            "listparticipants" => self.list_participants(fields).map(Reply::Success),
            "rtp_forward" => self.rtp_forward(fields, asker),
            "stop_rtp_forward" => self.stop_rtp_forward(fields, client).map(Reply::Success),
            "listforwarders" => self.list_forwarders(fields).map(Reply::Success),
            "publish_remotely" => self.publish_remotely(fields),
            "unpublish_remotely" => self.unpublish_remotely(fields).map(Reply::Success),
            "listremotes" | "list_remotes" => self.list_remotes(fields).map(Reply::Success),
            "add_remote_publisher" => self.add_remote_publisher(fields).map(Reply::Success),
            "update_remote_publisher" => self.update_remote_publisher(fields).map(Reply::Success),
            "remove_remote_publisher" => self.remove_remote_publisher(fields).map(Reply::Success),
            _ => Err(Refusal::UnknownRequest(name.to_owned())),
        }
    }

    /// Does something with the room that a request names and may manage.
    fn managed<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut Locked<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let room = self.rooms.named(fields)?;
        let mut room = room.lock();
        room.check_secret(fields)?;
        act(&mut room)
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
    Object::new().with("videoroom", "success")
}
