//! Moving to another room, leaving, and hanging up.

use std::sync::Arc;

use portunus_core::{Fields, Message};
use portunus_resources::Asker;
use serde_json::{Value, json};

use super::connection::Connection;
use super::{Attached, Place};
use crate::refusal::Refusal;
use crate::room::{Join, Link, Who};
use crate::settings::Joining;

impl Attached {
    /// Moves to another room with the same PeerConnection. If that is refused, the client stays
    /// where it is.
    pub(super) fn change_room(
        &mut self,
        message: &Message,
        asker: &Asker,
    ) -> Result<Value, Refusal> {
        let fields = Fields(&message.body);
        if self.is_elsewhere() {
            return self.change_from_elsewhere(message, asker);
        }
        let (former, former_id) = self
            .participation()
            .ok_or(Refusal::NotInRoom("change room"))?;
        let wish: Joining<'_> = fields.read()?;
        let ids = self.shared.rooms.ids();
        let wanted_room = ids.required(fields, "room")?;
        let wanted = ids.wanted(fields, "id")?;
        if wanted_room == former.id {
            return Err(Refusal::SameRoom);
        }
        let room = self.shared.rooms.named(fields)?;
        let (before, by_rtp) = {
            let former = former.lock();
            let before = former.settings_of(&former_id);
            (before, former.is_by_rtp(&former_id))
        };
        let before = before.ok_or(Refusal::NotInRoom("change room"))?;

        // The rooms are locked one after the other, because another client may move the other way.
        // At first the client is in both, without media in the new one.
        let mut state = room.lock();
        state.profile.check_rtp(by_rtp)?;
        let admin = state.profile.admit(fields, wish.token, asker)?;
        let settings = before.changing(&wish, state.profile.options())?;
        let id = state.free_id(wanted, ids)?;
        let join = Join {
            id: id.clone(),
            admin,
            settings,
            link: Link::None,
            setup: false,
            record: None,
        };
        state.join(Who::Client(self.handle.clone()), join);
        drop(state);

        let (link, setup) = {
            let mut former = former.lock();
            let link = former.take_link(&former_id, self.handle.id());
            former.leave(&former_id, self.handle.id());
            link
        };
        let mut state = room.lock();
        if !state.has(&id, self.handle.id()) {
            drop(state);
            self.place = Place::Idle;
            return Err(Refusal::NoSuchRoom(room.id.clone()));
        }
        state.link(&id, link, setup);
        state.notify_joined(&id, setup);
        let changed = state.welcome(&id, "roomchanged");
        drop(state);
        self.place = Place::In(Arc::downgrade(&room), id);
        Ok(changed.into())
    }

    /// Leaves the room. The PeerConnection stays and is silent.
    pub(super) fn leave(&mut self) -> Result<Value, Refusal> {
        if self.is_elsewhere() {
            return self.leave_elsewhere();
        }
        if let Some(room) = self.listened_room() {
            room.lock().listeners.remove(self.handle.id());
            self.place = Place::Idle;
            return Ok(json!({ "audiobridge": "left", "room": room.id.to_json() }));
        }
        let (room, id) = self.participation().ok_or(Refusal::NotInRoom("leave"))?;
        room.lock().leave(&id, self.handle.id());
        self.place = Place::Idle;
        Ok(json!({ "audiobridge": "left", "room": room.id.to_json(), "id": id.to_json() }))
    }

    /// Closes the PeerConnection and leaves. A participant without one stays, unless it uses plain
    /// RTP.
    pub(super) fn hang_up(&mut self) {
        let by_rtp = match self.participation() {
            Some((room, id)) => room.lock().is_by_rtp(&id),
            None => false,
        };
        if by_rtp || Connection::exists(&self.handle) {
            self.handle.close_pc();
            self.connection = Connection::default();
            self.end_participation();
        }
    }
}
