//! Making, changing and listing rooms.

use std::sync::Arc;

use portunus_core::{Fields, Object, Reply, Right};
use portunus_resources::{AllowedTokens, Asker, Id, Maker, RecordedRoom, RoomContent};
use portunus_room::State;

use crate::Shared;
use crate::options::{OPTIONS, RoomOptions};
use crate::refusal::Refusal;
use crate::room::{Door, Room};

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let mut options = RoomOptions::read(fields)?;
        if !asker.may(Right::Record) {
            // Somebody else may have the room recorded later.
            let settings = &mut options.settings;
            (settings.rec_dir, settings.record_format) = (None, None);
        }
        let allowed = AllowedTokens::read(fields)?;
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let room = self.make(wanted, options, allowed, maker)?;
        let recorded = |door: &Door| self.recorded(&door.conference.lock());
        Ok(self.rooms.created(&room, saved, asker, recorded).reply())
    }

    /// Makes a room with the id `wanted`, or with a free one if none is wanted.
    pub(crate) fn make(
        &self,
        wanted: Option<Id>,
        options: RoomOptions,
        allowed: AllowedTokens,
        maker: Maker,
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        let id = reservation.id().clone();
        let room = Arc::new(Room::new(Door::new(id, options, allowed, self)));
        reservation.keep(room.clone());
        Ok(room)
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
        let edited = self.rooms.edit(fields, asker, |door| {
            let options = OPTIONS.edited(&door.options(), fields)?;
            // A secret opens what signed tokens do: a client that gives the room its first one has to be let in by them.
            if let (None, Some(_)) = (&door.access().secret, &options.door.access.secret) {
                door.check_signed_token(&options.door, asker, fields)?;
            }
            door.apply(options);
            let recorded = self.recorded(&door.conference.lock());
            Ok::<_, Refusal>(recorded.filter(|_| fields.has("new_rec_dir")))
        });
        Ok(edited?.reply())
    }

    /// The room, if it is to be recorded.
    pub(super) fn recorded(&self, room: &State) -> Option<RecordedRoom> {
        room.settings().record.then(|| RecordedRoom {
            recorder: self.recorder.clone(),
            room: room.name().to_owned(),
            dirs: vec![room.settings().rec_dir.clone()],
        })
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        let key = match self.rooms.has_admin_key() {
            true => fields.string("admin_key")?,
            false => None,
        };
        // Where the disk is written to is not for everybody.
        let tells_folder = asker.may(Right::Record);
        Ok(self.rooms.list(key, asker, |door| {
            let options = door.options();
            let participants = door.conference.lock().people().count();
            OPTIONS
                .listed(&options)
                .with("pin_required", options.door.access.pin.is_some())
                .with("num_participants", participants)
                .with_some("rec_dir", options.settings.rec_dir.filter(|_| tells_folder))
        })?)
    }
}
