//! Making, changing and listing rooms.

use std::collections::BTreeMap;

use portunus_core::{Fields, Object, Reply, Right};
use portunus_resources::{AllowedTokens, Asker, RecordedRoom, Reservation, RoomContent, Taps};
use portunus_room::{FarRoom, State};

use crate::definition::Definition;
use crate::directory;
use crate::options::{OPTIONS, RoomOptions};
use crate::refusal::Refusal;
use crate::room::{Door, Room};
use crate::shared::Shared;

impl Shared {
    pub(super) fn create(
        &self,
        fields: Fields<'_>,
        asker: &Asker,
        reserved: Option<Reservation<Room>>,
    ) -> Result<Reply, Refusal> {
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let mut options = RoomOptions::read(fields)?;
        if !asker.may(Right::Record) {
            // Another client may turn recording on later.
            let settings = &mut options.settings;
            (settings.recording.dir, settings.recording.format) = (None, None);
        }
        let allowed = AllowedTokens::read(fields)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let room = match reserved {
            Some(reserved) => self.make_reserved(reserved, options, allowed, 0),
            None => self.make(wanted, options, allowed, maker)?,
        };
        let recorded = |door: &Door| self.recorded(&door.conference.lock());
        Ok(self.rooms.created(&room, saved, asker, recorded).reply())
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        let edited = self.rooms.edit(fields, asker, |door| {
            let options = OPTIONS.edited(&door.options(), fields)?;
            // A secret replaces signed tokens. So a client that sets the first secret has to show a
            // signed token.
            if let (None, Some(_)) = (&door.access().secret, &options.door.access.secret) {
                door.check_signed_token(&options.door, asker, fields)?;
            }
            door.apply(options);
            let recorded = self.recorded(&door.conference.lock());
            Ok::<_, Refusal>(recorded.filter(|_| fields.has("new_rec_dir")))
        })?;
        if let Some(others) = self.places.others()
            && self.rooms.permanent(fields)?.is_some()
        {
            let id = self.rooms.ids().required(fields, "room")?;
            others.changed_permanently(&id.to_string());
        }
        Ok(edited.reply())
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        let destroyed = self.rooms.destroy(fields, asker)?;
        if let Some(others) = self.places.others() {
            let id = self.rooms.ids().required(fields, "room")?;
            others.destroyed(&id.to_string(), self.rooms.permanent(fields)?.is_some());
        }
        Ok(destroyed.reply())
    }

    /// Returns the room for the check of its recordings, if it is recorded.
    pub(super) fn recorded(&self, room: &State) -> Option<RecordedRoom> {
        room.settings().recording.on.then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.name().to_owned(),
            dirs: vec![room.settings().recording.dir.clone()],
        })
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        let key = match self.rooms.has_admin_key() {
            true => fields.string("admin_key")?,
            false => None,
        };
        // The folder is not for everybody.
        let tells_folder = asker.may(Right::Record);
        let others = self.places.others();
        let elsewhere = others.map(|others| others.rooms()).unwrap_or_default();
        let elsewhere: BTreeMap<&str, &FarRoom> = elsewhere
            .iter()
            .map(|room| (room.name.as_str(), room))
            .collect();
        let entry = |options: RoomOptions, participants: usize| {
            OPTIONS
                .listed(&options)
                .with("pin_required", options.door.access.pin.is_some())
                .with("num_participants", participants)
                .with_some(
                    "rec_dir",
                    options.settings.recording.dir.filter(|_| tells_folder),
                )
        };
        let own = |door: &Door| {
            let (participants, taps) = {
                let room = door.conference.lock();
                (room.people().count(), taps(&room))
            };
            // This node may not use the room.
            let there = elsewhere.get(door.id.to_string().as_str());
            let there = there.map_or(0, |room| room.people);
            entry(door.options(), participants.max(there)).with_some("listening_in", taps.listed())
        };
        let further = |are_private_listed: bool| {
            let rooms = elsewhere.values();
            let rooms = rooms.filter_map(|room| {
                let id = directory::id(self.rooms.ids(), &room.name)?;
                if self.rooms.exists(&id) {
                    return None;
                }
                let Definition { id, options, .. } =
                    Definition::read(&id, &room.definition).ok()?;
                if options.door.access.is_private && !are_private_listed {
                    return None;
                }
                let options = options.described(&id);
                let listed = Object::new().with("room", id.to_json());
                Some(listed.with_all(entry(options, room.people)).into())
            });
            rooms.collect()
        };
        Ok(self.rooms.list_with(key, asker, own, further)?)
    }

    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let found = self.rooms.find(fields)?;
        let id = self.rooms.ids().required(fields, "room")?;
        let others = self.places.others();
        match others.is_some_and(|others| others.has(&id.to_string())) {
            true => Ok(found.with("exists", true)),
            false => Ok(found),
        }
    }
}

/// Counts the recipients of a room's media that are no participants.
pub(super) fn taps(room: &State) -> Taps {
    let taps = room.taps();
    Taps {
        recordings: taps.recordings,
        forwarders: taps.forwarders,
        captures: taps.captures,
        viewers: taps.viewers,
    }
}
