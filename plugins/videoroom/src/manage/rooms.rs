//! Making, changing, ending and listing rooms.

use portunus_core::{Fields, Handle, Object, Reply, equal_in_constant_time};
use serde_json::Value;

use super::success;
use crate::Shared;
use crate::id::Id;
use crate::members;
use crate::options::RoomOptions;
use crate::refusal::Refusal;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        self.check_admin_key(fields)?;
        let permanent = self.permanent(fields)?;
        let options = RoomOptions::read(fields)?;
        let tokens = members::texts(fields, "allowed")?;
        let wanted = self.ids.wanted(fields, "room")?;
        let room = self.rooms.create(wanted, self.ids, options, tokens)?;
        tracing::info!(room = %room.id, "room created");
        let state = room.lock();
        let options = state.options.clone();
        // Whoever has destroyed it since then has the last word.
        let turn = self.turn(permanent && !state.destroyed);
        drop(state);
        let reply = told("created", &room.id);
        let id = room.id.clone();
        Ok(self.saving(turn, reply, move |turn| turn.keep(&id, &options)))
    }

    pub(super) fn edit(
        &self,
        fields: Fields<'_>,
        client: Option<&Handle>,
    ) -> Result<Reply, Refusal> {
        let room = self.rooms.get(&self.ids.required(fields, "room")?)?;
        let mut state = room.lock();
        state.check_secret(fields)?;
        let permanent = self.permanent(fields)?;
        if state.destroyed {
            return Err(Refusal::NoSuchRoom(room.id.clone()));
        }
        let options = state.options.edited(fields)?;
        // A secret opens what signed tokens do: a client that gives the room its first one has to be let in by them.
        if let (None, Some(_), Some(client)) = (&state.options.secret, &options.secret, client) {
            options.check_signed_token(&room.id, client, fields)?;
        }
        let asks = options.fir_freq != state.options.fir_freq;
        state.options = options.clone();
        if asks {
            state.keyframes_changed();
        }
        let turn = self.turn(permanent);
        drop(state);
        let reply = told("edited", &room.id);
        let id = room.id.clone();
        Ok(self.saving(turn, reply, move |turn| turn.keep(&id, &options)))
    }

    pub(super) fn destroy(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let room = self.rooms.get(&self.ids.required(fields, "room")?)?;
        let mut state = room.lock();
        state.check_secret(fields)?;
        let permanent = self.permanent(fields)?;
        if state.destroyed {
            return Err(Refusal::NoSuchRoom(room.id.clone()));
        }
        // Before somebody may make another of its id.
        let turn = self.turn(permanent);
        self.rooms.remove(&room.id);
        state.destroy();
        tracing::info!(room = %room.id, "room destroyed");
        let reply = told("destroyed", &room.id);
        let id = room.id.clone();
        Ok(self.saving(turn, reply, move |turn| turn.remove(&id)))
    }

    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let id = self.ids.required(fields, "room")?;
        let reply = success()
            .with("room", id.to_json())
            .with("exists", self.rooms.has(&id));
        Ok(reply.into())
    }

    pub(super) fn list(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let known = self.admin_key.as_deref();
        let shown = known.map(|known| Ok::<_, Refusal>((known, fields.string("admin_key")?)));
        let see_all = match shown.transpose()? {
            Some((known, Some(shown))) => {
                if !equal_in_constant_time(known, shown) {
                    return Err(Refusal::Unauthorized("wrong admin_key"));
                }
                true
            }
            Some((_, None)) | None => false,
        };
        let mut list = Vec::new();
        for room in self.rooms.all() {
            let state = room.lock();
            if state.options.is_private && !see_all {
                continue;
            }
            let entry = Object::new()
                .with("room", room.id.to_json())
                .with_all(state.options.listed(state.count()));
            list.push(Value::from(entry));
        }
        Ok(success().with("list", list).into())
    }
}

fn told(what: &str, room: &Id) -> Object {
    Object::new()
        .with("videoroom", what)
        .with("room", room.to_json())
}
