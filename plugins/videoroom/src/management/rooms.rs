//! Making, changing and listing rooms.

use portunus_core::{Fields, Object, Reply, Right};
use portunus_resources::{AllowedTokens, Asker, RecordedRoom, RoomContent, Taps};
use portunus_room::State;

use crate::options::{OPTIONS, RoomOptions};
use crate::refusal::Refusal;
use crate::room::Door;
use crate::shared::Shared;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Reply, Refusal> {
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
        let room = self.make(wanted, options, allowed, maker)?;
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
        });
        Ok(edited?.reply())
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
        Ok(self.rooms.list(key, asker, |door| {
            let options = door.options();
            let (participants, taps) = {
                let room = door.conference.lock();
                (room.people().count(), taps(&room))
            };
            OPTIONS
                .listed(&options)
                .with("pin_required", options.door.access.pin.is_some())
                .with("num_participants", participants)
                .with_some("listening_in", taps.listed())
                .with_some(
                    "rec_dir",
                    options.settings.recording.dir.filter(|_| tells_folder),
                )
        })?)
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
