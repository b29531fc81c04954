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
use crate::requests::Request;
use crate::room::Locked;

pub(crate) use forward::forwarder;

impl Shared {
    /// Answers a request of a client, or of an administrator, that may be made with these rights. `maker` is who makes
    /// what it makes.
    pub(crate) fn manage(
        &self,
        request: Request,
        fields: Fields<'_>,
        client: Option<(&Arc<Client>, &TokenScope)>,
        (rights, maker): (Rights, Maker),
    ) -> Result<Reply, Refusal> {
        let scoped = client;
        let asker = scoped.map(|(client, _)| client);
        let client = asker.map(|client| &**client);
        let reply = match request {
            Request::Create => return self.create(fields, client, (rights, maker)),
            Request::Edit => {
                let scoped = scoped.map(|(client, scope)| (&**client, scope));
                return self.edit(fields, scoped);
            }
            Request::Destroy => return self.destroy(fields, client),
            Request::Exists => self.exists(fields),
            Request::List => self.list(fields, rights, client.is_none()),
            Request::Allowed => self.allowed(fields),
            Request::Kick => self.kick(fields, client),
            Request::Moderate => self.moderate(fields, client),
            Request::EnableRecording => return self.enable_recording(fields),
            Request::ListParticipants => self.list_participants(fields),
            Request::RtpForward => return self.rtp_forward(fields, asker),
            Request::StopRtpForward => self.stop_rtp_forward(fields, client),
            Request::ListForwarders => self.list_forwarders(fields),
            Request::PublishRemotely => return self.publish_remotely(fields),
            Request::UnpublishRemotely => self.unpublish_remotely(fields),
            Request::ListRemotes => self.list_remotes(fields),
            Request::AddRemotePublisher => self.add_remote_publisher(fields),
            Request::UpdateRemotePublisher => self.update_remote_publisher(fields),
            Request::RemoveRemotePublisher => self.remove_remote_publisher(fields),
            _ => Err(Refusal::Invalid("Not a request about rooms")),
        };
        reply.map(Reply::Success)
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
