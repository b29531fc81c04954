//! The requests that manage rooms, of clients and of administrators. They are answered at once.

mod access;
mod forwarders;
mod people;
mod remote_publication;
mod remote_publisher;
mod rooms;
mod target;

use std::sync::Arc;

use portunus_core::{Asked, Fields, Object, Reply};
use portunus_resources::Asker;
use portunus_room::{Room as Conference, State};

pub(crate) use forwarders::forwarder;

use crate::messages::Show;
use crate::prepared::{Permit, Prepared};
use crate::refusal::Refusal;
use crate::requests::Management;
use crate::room::Door;
use crate::shared::Shared;

impl Shared {
    /// Answers the request `name` of a client, or of an administrator, after its preparation.
    pub(crate) fn manage_named(
        &self,
        name: &str,
        fields: Fields<'_>,
        asker: Asker,
        prepared: Prepared,
    ) -> Result<Reply, Refusal> {
        let unknown = || Refusal::UnknownRequest(name.to_ascii_lowercase());
        let asked = Asked::<Management>::named(name).ok_or_else(unknown)?;
        let makes = asked == Asked::unnamed(Management::Create);
        asker.check_scope(fields, "room", makes)?;
        self.rooms.guarded(fields, asker.maker, || {
            let rights = self.rooms.rights(fields, asker.rights);
            let request = asked.permit(fields, rights)?;
            self.answer(request, fields, &Asker { rights, ..asker }, prepared)
        })
    }

    fn answer(
        &self,
        request: Management,
        fields: Fields<'_>,
        asker: &Asker,
        prepared: Prepared,
    ) -> Result<Reply, Refusal> {
        let permit = match &prepared {
            Prepared::Permitted(permit) => Some(permit),
            _ => None,
        };
        let answer = match request {
            Management::Create => return self.create(fields, asker, prepared.reservation()),
            Management::Edit => return self.edit(fields, asker),
            Management::Destroy => return self.destroy(fields, asker),
            Management::EnableRecording => return self.enable_recording(fields),
            Management::RtpForward => return self.rtp_forward(fields, asker, permit),
            Management::PublishRemotely => return self.publish_remotely(fields, permit),
            Management::Exists => self.exists(fields)?,
            Management::List => self.list(fields, asker)?,
            Management::Allowed => self.allowed(fields)?,
            Management::Kick => self.kick(fields, asker)?,
            Management::Moderate => self.moderate(fields, asker)?,
            Management::ListParticipants => self.list_participants(fields)?,
            Management::StopRtpForward => self.stop_rtp_forward(fields, asker, permit)?,
            Management::ListForwarders => self.list_forwarders(fields, permit)?,
            Management::UnpublishRemotely => self.unpublish_remotely(fields, permit)?,
            Management::ListRemotes => self.list_remotes(fields, permit)?,
            Management::AddRemotePublisher => self.add_remote_publisher(fields, permit)?,
            Management::UpdateRemotePublisher => self.update_remote_publisher(fields, permit)?,
            Management::RemoveRemotePublisher => self.remove_remote_publisher(fields, permit)?,
        };
        Ok(Reply::Success(answer.into()))
    }

    /// Does something in the room that a request names and may manage.
    fn managed<T>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&Door, &mut State) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let act = |door: &Door| act(door, &mut door.conference.lock());
        self.rooms.managed(fields, |_, door| act(door))
    }

    /// Does something in the room that a request names and may manage. With a permit its home has
    /// checked that.
    fn permitted<T>(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
        act: impl FnOnce(&Door, &mut State) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if permit.is_none() {
            return self.managed(fields, act);
        }
        let room = self.rooms.named(fields)?;
        let door = room.lock();
        let mut state = door.conference.lock();
        act(&door, &mut state)
    }

    /// Returns the conference of the room that a request names and may manage. With a permit its
    /// home has checked that.
    fn permitted_room(
        &self,
        fields: Fields<'_>,
        permit: Option<&Permit>,
    ) -> Result<Arc<Conference>, Refusal> {
        if permit.is_some() {
            let room = self.rooms.named(fields)?;
            let door = room.lock();
            return Ok(door.conference.clone());
        }
        self.rooms
            .managed(fields, |_, door| Ok(door.conference.clone()))
    }

    /// Writes what is in a room as JSON.
    pub(crate) fn show<'a>(&self, room: &'a State) -> Show<'a> {
        Show::new(self.rooms.ids(), room)
    }
}

/// Returns the reply without further members.
fn success() -> Object {
    Object::new().with("videoroom", "success")
}
