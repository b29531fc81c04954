//! Participants, as moderators see and treat them.

use portunus_core::{FieldError, Fields, Object};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::id::Id;
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::roster::Participant;

impl Shared {
    pub(super) fn list_participants(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let room = self.rooms.get(&self.ids.required(fields, "room")?)?;
        let room = room.lock();
        let people: Vec<_> = room.people.values().map(Participant::listed).collect();
        let reply = Object::new()
            .with("videoroom", "participants")
            .with("room", room.id.to_json())
            .with("participants", people);
        Ok(reply.into())
    }

    pub(super) fn kick(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = self.ids.required(fields, "id")?;
            room.kick(&id)?;
            tracing::info!(room = %room.id, %id, "participant kicked");
            Ok(success().into())
        })
    }

    pub(super) fn moderate(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        self.managed(fields, |room| {
            let id = self.ids.required(fields, "id")?;
            let mid = fields.required_string("mid")?;
            let mute = fields.boolean("mute")?;
            let mute = mute.ok_or_else(|| FieldError::Missing("mute".to_owned()))?;
            room.moderate(&id, mid, mute)?;
            Ok(success().into())
        })
    }
}

impl RoomState {
    /// Closes or opens a stream against its publisher's will.
    fn moderate(&mut self, id: &Id, mid: &str, mute: bool) -> Result<(), Refusal> {
        if self.named(id)?.origin.is_dummy() {
            return Err(Refusal::NoSuchFeed(id.to_string()));
        }
        let media = self.people.get_mut(id).and_then(|p| p.media.as_mut());
        let streams = media.into_iter().flat_map(|media| &mut media.streams);
        let mut named = streams.filter(|stream| stream.mid.as_str() == mid);
        let Some(stream) = named.next() else {
            return Err(Refusal::NoSuchFeed(format!("{id} mid {mid}")));
        };
        let before = std::mem::replace(&mut stream.moderated, mute);
        let index = stream.index;
        if before != mute {
            self.relay_stream(id, index);
            self.listen(id);
            self.tend_keyframes(id);
            self.record(id, false);
        }
        let moderation = if mute { "muted" } else { "unmuted" };
        let event = self
            .event()
            .with("id", id.to_json())
            .with("mid", mid)
            .with("moderation", moderation);
        self.tell_all(event);
        Ok(())
    }
}
