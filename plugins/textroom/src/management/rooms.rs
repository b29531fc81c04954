//! Making, changing, ending and listing rooms.

use std::sync::Arc;

use portunus_core::{Fields, Object};
use portunus_resources::{AllowedTokens, Answer, Asker, Id, Maker, read_with_secret};

use crate::options::{OPTIONS, RoomOptions};
use crate::post::Reachable;
use crate::refusal::Refusal;
use crate::room::{Room, RoomState};
use crate::shared::Shared;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let options = OPTIONS.read(fields)?;
        let allowed = AllowedTokens::read(fields)?;
        fields.member::<bool>("permanent")?;
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let room = self.make(wanted, options, allowed, maker, Reachable::Outgoing)?;
        Ok(self.rooms.created(&room, saved, asker, |_| None))
    }

    /// Makes a room with the id `wanted`, or with a free one. `reachable` limits the address of its
    /// back-end.
    pub(crate) fn make(
        &self,
        wanted: Option<Id>,
        options: RoomOptions,
        allowed: AllowedTokens,
        maker: Maker,
        reachable: Reachable,
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        let id = reservation.id().clone();
        let post = options.post.clone();
        let outlet = post.map(|to| self.back_ends.open(&id, to, reachable));
        let outlet = outlet.transpose()?;
        let surroundings = self.surroundings.clone();
        let state = RoomState::new(id, options, allowed, outlet, surroundings);
        let room = Arc::new(Room::new(state));
        reservation.keep(room.clone());
        Ok(room)
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        read_with_secret::<()>(fields)?;
        OPTIONS.check_edited(fields, |_| true)?;
        fields.member::<bool>("permanent")?;
        self.rooms.edit(fields, asker, |room| {
            let options = OPTIONS.edited(&room.options, fields)?;
            if options.post != room.options.post {
                let post = options.post.clone();
                let outlet = post.map(|to| self.back_ends.open(&room.id, to, Reachable::Outgoing));
                let former = std::mem::replace(&mut room.outlet, outlet.transpose()?);
                if let Some(former) = former {
                    former.close();
                }
            }
            room.options = options;
            Ok(None)
        })
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        read_with_secret::<()>(fields)?;
        fields.member::<bool>("permanent")?;
        Ok(self.rooms.destroy(fields, asker)?)
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        // An empty key counts as absent.
        let key = fields.text("admin_key")?;
        Ok(self.rooms.list(key, asker, RoomState::listed)?)
    }
}
