//! The requests of clients and administrators that manage rooms.

mod elsewhere;
mod files;
mod forwarders;
mod opening;
mod people;
mod recording;
mod rooms;
mod suspension;
mod telephones;

use std::sync::Arc;

use portunus_core::{Asked, Fields, Object, Reply};
use portunus_resources::{Asker, read_with_secret};
use serde::Deserialize;

use crate::refusal::Refusal;
use crate::requests::Management;
use crate::room::{Room, RoomState};
use crate::shared::Shared;

impl Shared {
    /// Answers a request, here or at the home of its room.
    pub(crate) fn manage(
        &self,
        asked: Asked<Management>,
        fields: Fields<'_>,
        asker: Asker,
    ) -> Result<Reply, Refusal> {
        let makes = asked == Asked::unnamed(Management::Create);
        asker.check_scope(fields, "room", makes)?;
        match self.asked_elsewhere(asked, fields, &asker) {
            Some(reply) => Ok(reply),
            None => self.manage_here(asked, fields, asker),
        }
    }

    /// Answers a request about the rooms of this node.
    pub(crate) fn manage_here(
        &self,
        asked: Asked<Management>,
        fields: Fields<'_>,
        asker: Asker,
    ) -> Result<Reply, Refusal> {
        self.rooms.guarded(fields, asker.maker, || {
            let rights = self.rooms.rights(fields, asker.rights);
            let request = asked.permit(fields, rights)?;
            self.answer(request, fields, &Asker { rights, ..asker })
        })
    }

    fn answer(
        &self,
        request: Management,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Reply, Refusal> {
        let answer = match request {
            Management::Create => return self.create(fields, asker),
            Management::Edit => return self.edit(fields, asker),
            Management::Destroy => return self.destroy(fields, asker),
            Management::RtpForward => return self.rtp_forward(fields),
            Management::PlayFile => return self.play_file(fields),
            Management::EnableRecording => return self.enable_recording(fields),
            Management::EnableMjrs => return self.enable_mjrs(fields),
            Management::Exists => self.exists(fields)?,
            Management::List => self.list(fields, asker)?,
            Management::Allowed => self.allowed(fields)?,
            Management::ListParticipants => self.list_participants(fields)?,
            Management::Mute => self.mute(fields, true, asker)?,
            Management::Unmute => self.mute(fields, false, asker)?,
            Management::MuteRoom => self.mute_room(fields, true, asker)?,
            Management::UnmuteRoom => self.mute_room(fields, false, asker)?,
            Management::Kick => self.kick(fields, asker)?,
            Management::KickAll => self.kick_all(fields, asker)?,
            Management::DenoiseEnable => self.denoise(fields, true)?,
            Management::DenoiseDisable => self.denoise(fields, false)?,
            Management::Suspend => self.suspend(fields, asker)?,
            Management::Resume => self.resume(fields, asker)?,
            Management::StopRtpForward => self.stop_rtp_forward(fields)?,
            Management::ListForwarders => self.list_forwarders(fields)?,
            Management::IsPlaying => self.is_playing(fields)?,
            Management::StopFile => self.stop_file(fields)?,
            Management::StopAllFiles => self.stop_all_files(fields)?,
            Management::ListAnnouncements => self.list_announcements(fields)?,
            Management::DialOut => self.dial_out(fields, asker)?,
            Management::StopDialOut => self.stop_dial_out(fields)?,
        };
        Ok(Reply::Success(answer))
    }

    /// Reads the members of a request, and runs `act` with the room that it names and may manage.
    fn managed<'a, M: Deserialize<'a>, T>(
        &self,
        fields: Fields<'a>,
        act: impl FnOnce(&mut RoomState, M) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let members = read_with_secret(fields)?;
        self.rooms.managed(fields, |_, room| act(room, members))
    }

    /// Checks that a request names a room, and that it shows the admin key if `locked`.
    fn check_lock(&self, fields: Fields<'_>, locked: bool) -> Result<(), Refusal> {
        self.rooms.ids().required(fields, "room")?;
        match locked {
            true => Ok(self.rooms.check_admin_key(fields)?),
            false => Ok(()),
        }
    }

    /// Returns the room that a request names and may manage.
    fn managed_room(&self, fields: Fields<'_>) -> Result<Arc<Room>, Refusal> {
        self.rooms.managed(fields, |room, _| Ok(Arc::clone(room)))
    }
}

/// The reply to requests without a result.
fn success() -> Object {
    Object::new().with("audiobridge", "success")
}
