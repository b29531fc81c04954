//! The requests that create, edit, destroy and list rooms.

use portunus_core::{Fields, Reply, Right};
use portunus_resources::{
    AllowedRequest, AllowedTokens, Asker, Id, RecordedRoom, RoomContent, read_with_secret,
};
use serde_json::Value;

use crate::config::{ConfiguredRoom, RoomSetup};
use crate::options::{OPTIONS, RoomOptions, is_type, sampling_rate, texts};
use crate::refusal::Refusal;
use crate::room::RoomState;
use crate::shared::Shared;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        OPTIONS.check(fields, is_type)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        self.rooms.check_admin_key(fields)?;
        texts(fields, "allowed")?;
        let allowed = AllowedTokens::read(fields)?;
        let mut options = RoomOptions::read(fields)?;
        if !asker.may(Right::Record) {
            // Somebody with the right may have the room recorded later.
            (options.record_file, options.record_dir, options.mjrs_dir) = (None, None, None);
        }
        let saved = self.rooms.permanent(fields)?;
        let exists = |id: &&Id| self.rooms.exists(id) || self.is_elsewhere(id);
        if let Some(id) = wanted.as_ref().filter(exists) {
            return Err(Refusal::RoomExists(id.clone()));
        }
        let options = RoomOptions {
            rate: sampling_rate(fields)?.unwrap_or(options.rate),
            ..options
        };
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let taken = |id: &Id| self.rooms.exists(id) || self.is_elsewhere(id);
        let wanted = wanted.unwrap_or_else(|| self.rooms.ids().random(taken));
        let new = ConfiguredRoom {
            id: wanted,
            options: RoomSetup {
                options,
                forwarder: None,
            },
        };
        let room = self.make(new, allowed, maker)?;
        let recorded = |room: &RoomState| self.recorded(room);
        Ok(self.rooms.created(&room, saved, asker, recorded).reply())
    }

    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let answer = self.rooms.find(fields)?;
        let id = self.rooms.ids().required(fields, "room")?;
        let exists = self.rooms.exists(&id) || self.is_elsewhere(&id);
        Ok(answer.with("exists", exists).into())
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        read_with_secret::<()>(fields)?;
        OPTIONS.check_edited(fields, is_type)?;
        fields.member::<bool>("permanent")?;
        let edited = self.rooms.edit(fields, asker, |room| {
            let options = OPTIONS.edited(room.profile.options(), fields)?;
            // A secret opens a room without a signed token. So a client that sets the first secret
            // must show a signed token itself.
            let present = &room.profile.options().access;
            if let (None, Some(_)) = (&present.secret, &options.access.secret) {
                room.profile
                    .check_signed_token(&options, asker, fields.member("token")?)?;
            }
            room.profile.set_options(options);
            let moved = ["new_record_dir", "new_mjrs_dir"];
            let is_moved = moved.iter().any(|name| fields.has(name));
            Ok::<_, Refusal>(self.recorded(room).filter(|_| is_moved))
        })?;
        if self.rooms.permanent(fields)?.is_some() {
            let id = self.rooms.ids().required(fields, "room")?;
            self.cluster.edited_permanently(&id, fields.0);
        }
        Ok(edited.reply())
    }

    /// Returns the room if its mix or its participants are to be recorded.
    fn recorded(&self, room: &RoomState) -> Option<RecordedRoom> {
        let options = room.profile.options();
        let mix = options.record.then(|| options.record_dir.clone());
        let people = options.mjrs.then(|| options.mjrs_dir.clone());
        let dirs: Vec<_> = mix.into_iter().chain(people).collect();
        (!dirs.is_empty()).then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.id().to_string(),
            dirs,
        })
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        read_with_secret::<()>(fields)?;
        fields.member::<bool>("permanent")?;
        let destroyed = self.rooms.destroy(fields, asker)?;
        let id = self.rooms.ids().required(fields, "room")?;
        let permanently = self.rooms.permanent(fields)?.is_some();
        self.cluster.destroyed(&id, permanently);
        Ok(destroyed.reply())
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Value, Refusal> {
        // A key of another type is ignored.
        let key = fields.text("admin_key").ok().flatten();
        let list = self.rooms.list(key, asker, RoomState::listed)?;
        let all = asker.is_administrator() || (key.is_some() && self.rooms.has_admin_key());
        let elsewhere = self.listed_elsewhere(all);
        let mut list = Value::from(list);
        if let Some(list) = list.get_mut("list").and_then(Value::as_array_mut) {
            // An unused room of this node gives way to that of the other one.
            let is_there = |room: &Value| elsewhere.iter().any(|(id, _)| *room == id.to_json());
            list.retain(|entry| !entry.get("room").is_some_and(is_there));
            list.extend(elsewhere.iter().map(|(_, entry)| entry.clone()));
        }
        Ok(list)
    }

    pub(super) fn allowed(&self, fields: Fields<'_>) -> Result<Value, Refusal> {
        let AllowedRequest { action, .. } = read_with_secret(fields)?;
        self.rooms.ids().required(fields, "room")?;
        let known = ["enable", "disable", "add", "remove"];
        if !known.iter().any(|it| it.eq_ignore_ascii_case(action)) {
            return Err(Refusal::Action(action.to_owned()));
        }
        self.managed(fields, |room, ()| {
            texts(fields, "allowed")?;
            Ok(room.allow(fields)?.into())
        })
    }
}
