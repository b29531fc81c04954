//! Members, as moderators see and treat them.

use portunus_core::{Fields, Object};
use portunus_resources::{AllowedRequest, Asker, RoomContent, read_with_secret};
use serde::Deserialize;

use super::success;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// The members of `kick`.
#[derive(Deserialize)]
struct Kick<'a> {
    username: &'a str,
}

/// The members of `announcement`.
#[derive(Deserialize)]
struct Announcement<'a> {
    text: &'a str,
}

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let room = self.rooms.named(fields)?;
        let room = room.lock();
        let participants = room.participants();
        Ok(room.message("success").with("participants", participants))
    }

    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        read_with_secret::<AllowedRequest<'_>>(fields)?;
        self.rooms
            .managed(fields, |_, room| Ok(room.allow(fields)?))
    }

    pub(super) fn kick(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        let Kick { username } = read_with_secret(fields)?;
        self.rooms.managed(fields, |_, room| {
            room.kick(username, asker.handle.as_ref())?;
            tracing::info!(room = %room.id, username, "member kicked");
            Ok(success())
        })
    }

    pub(super) fn announcement(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let Announcement { text } = read_with_secret(fields)?;
        self.rooms.managed(fields, |_, room| {
            room.announce(text)?;
            Ok(success())
        })
    }
}
