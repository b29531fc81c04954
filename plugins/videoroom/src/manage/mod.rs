//! The requests that manage rooms; they are answered at once, to clients and to administrators.

mod access;
mod forward;
mod people;
mod remote;
mod remotize;
mod rooms;

use portunus_core::{Fields, Handle, Later, Object, Reply};
use serde_json::Value;

use crate::Shared;
use crate::members::check_secret;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::saved::{SavedError, Turn};

impl Shared {
    /// Answers a request of a client, or of an administrator; none if it is no such request.
    pub(crate) fn manage(
        &self,
        name: &str,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Option<Reply> {
        let result = match name {
            "create" => self.create(fields),
            "edit" => self.edit(fields, client),
            "destroy" => self.destroy(fields),
            "exists" => self.exists(fields).map(Reply::Success),
            "list" => self.list(fields).map(Reply::Success),
            "allowed" => self.allowed(fields).map(Reply::Success),
            "kick" => self.kick(fields).map(Reply::Success),
            "moderate" => self.moderate(fields).map(Reply::Success),
            "enable_recording" => self.enable_recording(fields).map(Reply::Success),
            "listparticipants" => self.list_participants(fields).map(Reply::Success),
            "rtp_forward" => self.rtp_forward(fields),
            "stop_rtp_forward" => self.stop_rtp_forward(fields).map(Reply::Success),
            "listforwarders" => self.list_forwarders(fields).map(Reply::Success),
            "publish_remotely" => self.publish_remotely(fields),
            "unpublish_remotely" => self.unpublish_remotely(fields).map(Reply::Success),
            "listremotes" | "list_remotes" => self.list_remotes(fields).map(Reply::Success),
            "add_remote_publisher" => self.add_remote_publisher(fields).map(Reply::Success),
            "update_remote_publisher" => self.update_remote_publisher(fields).map(Reply::Success),
            "remove_remote_publisher" => self.remove_remote_publisher(fields).map(Reply::Success),
            _ => return None,
        };
        Some(result.unwrap_or_else(|refusal| Reply::Success(refusal.to_json())))
    }

    fn check_admin_key(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        check_secret(fields, "admin_key", self.admin_key.as_deref())
    }

    /// Does something with the room that a request names and may manage.
    fn managed<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&mut RoomState) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let room = self.rooms.get(&self.ids.required(fields, "room")?)?;
        let mut room = room.lock();
        room.check_secret(fields)?;
        act(&mut room)
    }

    /// Whether a request asks for a change for good; an error if there is no file to write it to.
    fn permanent(&self, fields: Fields<'_>) -> Result<bool, Refusal> {
        let permanent = fields.boolean("permanent")?.unwrap_or(false);
        if permanent && self.saved.is_none() {
            let reason = "No file is configured for permanent rooms";
            return Err(Refusal::Unknown(reason));
        }
        Ok(permanent)
    }

    /// The place of a change of a room that is locked, if it is for good.
    fn turn(&self, permanent: bool) -> Option<Turn> {
        let saved = self.saved.as_ref().filter(|_| permanent)?;
        Some(saved.turn())
    }

    /// The reply, once the change is written if it is for good; `permanent` says whether that went well.
    fn saving(
        &self,
        turn: Option<Turn>,
        reply: Object,
        save: impl FnOnce(&Turn) -> Result<(), SavedError> + Send + 'static,
    ) -> Reply {
        let Some(turn) = turn else {
            return Reply::Success(reply.with("permanent", false).into());
        };
        Reply::Later(Later::new(async move {
            let written = tokio::task::spawn_blocking(move || save(&turn)).await;
            let problem = match written {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = &problem {
                tracing::error!("{problem}");
            }
            Value::from(reply.with("permanent", problem.is_none()))
        }))
    }
}

/// The reply to requests that have nothing to tell.
fn success() -> Object {
    Object::new().with("videoroom", "success")
}
