//! Making, changing, ending and listing rooms.

use std::sync::Arc;

use portunus_core::{Fields, Object};
use portunus_resources::{AllowedTokens, Id, Maker, Writing};
use serde_json::{Map, Value};

use super::{Managed, check_types, success};
use crate::config::ConfiguredRoom;
use crate::options::RoomOptions;
use crate::plugin::Shared;
use crate::post::Reachable;
use crate::refusal::Refusal;
use crate::requests::Asker;
use crate::room::Room;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Managed, Refusal> {
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let options = RoomOptions::read(fields)?;
        let allowed = AllowedTokens::read(fields)?;
        fields.boolean("permanent")?;
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let room = self.make(wanted, options, allowed, (maker, Reachable::Outgoing))?;
        tracing::info!(room = %room.id, "room created");
        let state = room.lock();
        state.notify(asker.handle.as_ref(), || state.notice("created").into());
        // Whoever has destroyed it since then has the last word.
        let saved = saved.filter(|_| !state.destroyed);
        let writing = saved.map(|saved| saved.keep_soon(written(&room, state.options.clone())));
        Ok(told("created", &room.id, writing))
    }

    /// Makes a room with the id `wanted`, or with a free one if none is wanted; with who makes it, and how far its back-end may be.
    pub(crate) fn make(
        &self,
        wanted: Option<Id>,
        mut options: RoomOptions,
        allowed: AllowedTokens,
        (maker, reachable): (Maker, Reachable),
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        let id = reservation.id().clone();
        if options.description.is_empty() {
            options.description = format!("Room {id}");
        }
        let post = options.post.clone();
        let outlet = post.map(|to| self.back_ends.open(&id, to, reachable));
        let outlet = outlet.transpose()?;
        let surroundings = self.surroundings.clone();
        let room = Arc::new(Room::new(id, options, allowed, outlet, surroundings));
        reservation.keep(room.clone());
        Ok(room)
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Managed, Refusal> {
        check_types(fields, &["secret"])?;
        // Whatever the room is, its types are wrong.
        RoomOptions::default().edited(fields)?;
        fields.boolean("permanent")?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        state.check_managed(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let options = state.options.edited(fields)?;
        if options.post != state.options.post {
            let post = options.post.clone();
            let outlet = post.map(|to| self.back_ends.open(&room.id, to, Reachable::Outgoing));
            let former = std::mem::replace(&mut state.outlet, outlet.transpose()?);
            if let Some(former) = former {
                former.close();
            }
        }
        state.options = options.clone();
        state.notify(asker.handle.as_ref(), || state.notice("edited").into());
        let writing = saved.map(|saved| saved.keep_soon(written(&room, options)));
        if writing.is_some() {
            self.rooms.adopt(&room);
        }
        Ok(told("edited", &room.id, writing))
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Managed, Refusal> {
        check_types(fields, &["secret"])?;
        fields.boolean("permanent")?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        state.check_managed(fields)?;
        let saved = self.rooms.permanent(fields)?;
        // Before somebody may make another of its id.
        let id = || room.id.clone();
        let writing = saved.map(|saved| saved.remove_soon(id(), id()));
        self.rooms.remove(&room)?;
        state.destroy(asker.handle.as_ref());
        tracing::info!(room = %room.id, "room destroyed");
        Ok(told("destroyed", &room.id, writing))
    }

    pub(super) fn exists(&self, fields: Fields<'_>, _: &Asker) -> Result<Managed, Refusal> {
        let id = self.rooms.ids().required(fields, "room")?;
        let answer = success()
            .with("room", id.to_json())
            .with("exists", self.rooms.exists(&id));
        Ok(answer.into())
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Managed, Refusal> {
        // An empty key is none.
        let none = Map::new();
        let key = match fields.text("admin_key")? {
            Some(_) => fields,
            None => Fields(&none),
        };
        let rooms = self.rooms.listed(key, asker.handle.is_none())?;
        let list = rooms.iter().map(|room| Value::from(room.lock().listed()));
        let list: Vec<Value> = list.collect();
        Ok(success().with("list", list).into())
    }
}

/// A room as it is saved.
fn written(room: &Room, options: RoomOptions) -> ConfiguredRoom {
    ConfiguredRoom {
        id: room.id.clone(),
        options,
    }
}

/// The answer to a change; whether it is for good is known once it is written.
fn told(what: &str, room: &Id, writing: Option<Writing>) -> Managed {
    let answer = Object::new()
        .with("textroom", what)
        .with("room", room.to_json());
    let answer = match writing {
        Some(_) => answer,
        None => answer.with("permanent", false),
    };
    Managed { answer, writing }
}
