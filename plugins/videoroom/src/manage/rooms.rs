//! Making, changing, ending and listing rooms.

use std::sync::Arc;

use portunus_core::{Fields, Object, Reply, Right, Rights, TokenScope};
use portunus_resources::{AllowedTokens, Id, Maker};
use portunus_room::RoomSettings;
use serde_json::Value;

use super::{RecordedRoom, saving, success};
use crate::Shared;
use crate::client::Client;
use crate::config::ConfiguredRoom;
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::room::Room;

impl Shared {
    pub(super) fn create(
        &self,
        fields: Fields<'_>,
        client: Option<&Client>,
        (rights, maker): (Rights, Maker),
    ) -> Result<Reply, Refusal> {
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let mut options = RoomOptions::read(fields)?;
        if !rights.may(Right::Record) {
            // Somebody else may have the room recorded later.
            let settings = &mut options.settings;
            (settings.rec_dir, settings.record_format) = (None, None);
        }
        let allowed = AllowedTokens::read(fields)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let maker = self.rooms.maker(maker, saved.is_some());
        let room = self.make(wanted, options, allowed, maker)?;
        tracing::info!(room = %room.id, "room created");
        let state = room.lock();
        state.notify(client, |show| show.event_of("created").into());
        // Whoever has destroyed it since then has the last word.
        let saved = saved.filter(|_| !state.is_destroyed());
        let writing = saved.map(|saved| saved.keep_soon(written(&room, state.options())));
        let recorded = self.recorded(&room.id, state.settings());
        Ok(saving(writing, recorded, told("created", &room.id)))
    }

    /// Makes a room with the id `wanted`, or with a free one if none is wanted.
    pub(crate) fn make(
        &self,
        wanted: Option<Id>,
        mut options: RoomOptions,
        allowed: AllowedTokens,
        maker: Maker,
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        let id = reservation.id().clone();
        let description = &mut options.settings.description;
        if description.is_empty() {
            *description = format!("Room {id}");
        }
        let room = Arc::new(Room::new(id, options, allowed, self));
        reservation.keep(room.clone());
        Ok(room)
    }

    pub(super) fn edit(
        &self,
        fields: Fields<'_>,
        client: Option<(&Client, &TokenScope)>,
    ) -> Result<Reply, Refusal> {
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        state.check_secret(fields)?;
        let saved = self.rooms.permanent(fields)?;
        state.check_there()?;
        let options = state.options().edited(fields)?;
        let (before, after) = (
            &state.door.options.access.secret,
            &options.door.access.secret,
        );
        // A secret opens what signed tokens do: a client that gives the room its first one has to be let in by them.
        if let (None, Some(_), Some(client)) = (before, after, client) {
            let client = (&client.0.handle, client.1);
            options.door.check_signed_token(&room.id, client, fields)?;
        }
        state.set_options(options.clone());
        let client = client.map(|(client, _)| client);
        state.notify(client, |show| show.event_of("edited").into());
        let recorded = self.recorded(&room.id, &options.settings);
        let recorded = recorded.filter(|_| fields.has("new_rec_dir"));
        let writing = saved.map(|saved| saved.keep_soon(written(&room, options)));
        if writing.is_some() {
            self.rooms.adopt(&room);
        }
        Ok(saving(writing, recorded, told("edited", &room.id)))
    }

    /// The room, if it is to be recorded.
    pub(super) fn recorded(&self, room: &Id, settings: &RoomSettings) -> Option<RecordedRoom> {
        settings.record.then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.to_string(),
            dirs: vec![settings.rec_dir.clone()],
        })
    }

    pub(super) fn destroy(
        &self,
        fields: Fields<'_>,
        client: Option<&Client>,
    ) -> Result<Reply, Refusal> {
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        state.check_secret(fields)?;
        let saved = self.rooms.permanent(fields)?;
        state.check_there()?;
        // Before somebody may make another of its id.
        let id = || room.id.clone();
        let writing = saved.map(|saved| saved.remove_soon(id(), id()));
        self.rooms.remove(&room)?;
        state.destroy();
        state.notify(client, |show| show.event_of("destroyed").into());
        tracing::info!(room = %room.id, "room destroyed");
        Ok(saving(writing, None, told("destroyed", &room.id)))
    }

    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let id = self.rooms.ids().required(fields, "room")?;
        let reply = success()
            .with("room", id.to_json())
            .with("exists", self.rooms.exists(&id));
        Ok(reply.into())
    }

    pub(super) fn list(
        &self,
        fields: Fields<'_>,
        rights: Rights,
        by_administrator: bool,
    ) -> Result<Value, Refusal> {
        // Where the disk is written to is not for everybody.
        let rec_dir = |settings: &RoomSettings| {
            let rec_dir = settings.rec_dir.clone();
            rec_dir.filter(|_| rights.may(Right::Record))
        };
        let rooms = self.rooms.listed(fields, by_administrator)?;
        let list = rooms.into_iter().map(|room| {
            let state = room.lock();
            let entry = Object::new()
                .with("room", room.id.to_json())
                .with_all(state.options().listed(state.people().count()))
                .with_some("rec_dir", rec_dir(state.settings()));
            Value::from(entry)
        });
        Ok(success().with("list", list.collect::<Vec<_>>()).into())
    }
}

/// A room as it is saved.
fn written(room: &Room, options: RoomOptions) -> ConfiguredRoom {
    ConfiguredRoom {
        id: room.id.clone(),
        options,
    }
}

fn told(what: &str, room: &Id) -> Object {
    Object::new()
        .with("videoroom", what)
        .with("room", room.to_json())
}
