//! Making, changing, ending and listing rooms.

use std::sync::Arc;

use portunus_core::{Fields, Object};
use portunus_resources::{AllowedTokens, Answer, Asker, Id, Maker, read_with_secret};
use serde_json::Value;

use super::success;
use crate::options::{OPTIONS, RoomOptions};
use crate::post::Reachable;
use crate::refusal::Refusal;
use crate::room::{Origin, Room, RoomState};
use crate::shared::Shared;

impl Shared {
    pub(super) fn create(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        let wanted = self.rooms.ids().wanted(fields, "room")?;
        let options = OPTIONS.read(fields)?;
        let allowed = AllowedTokens::read(fields)?;
        fields.member::<bool>("permanent")?;
        self.rooms.check_admin_key(fields)?;
        let saved = self.rooms.permanent(fields)?;
        if let Some(id) = wanted.as_ref().filter(|id| self.cluster.home(id).is_some()) {
            return Err(Refusal::RoomExists(id.clone()));
        }
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let (reachable, origin) = (Reachable::Outgoing, Origin::made());
        let room = self.make(wanted, options, allowed, maker, reachable, origin)?;
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
        origin: Origin,
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        let id = reservation.id().clone();
        let post = options.post.clone();
        let outlet = post.map(|to| self.back_ends.open(&id, to, reachable));
        let outlet = outlet.transpose()?;
        let surroundings = self.surroundings.clone();
        let state = RoomState::new(id, options, allowed, outlet, surroundings, origin);
        let room = Arc::new(Room::new(state));
        reservation.keep(room.clone());
        Ok(room)
    }

    pub(super) fn edit(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        read_with_secret::<()>(fields)?;
        OPTIONS.check_edited(fields, |_| true)?;
        fields.member::<bool>("permanent")?;
        let edited = self.rooms.edit(fields, asker, |room| {
            self.change(room, fields)?;
            Ok::<_, Refusal>(None)
        })?;
        if self.rooms.permanent(fields)?.is_some() {
            let id = self.rooms.ids().required(fields, "room")?;
            self.cluster.edited_permanently(&id, fields.0);
        }
        Ok(edited)
    }

    /// Changes a room as a request to edit it asks for.
    pub(crate) fn change(&self, room: &mut RoomState, fields: Fields<'_>) -> Result<(), Refusal> {
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
        Ok(())
    }

    pub(super) fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        read_with_secret::<()>(fields)?;
        fields.member::<bool>("permanent")?;
        let answer = self.rooms.destroy(fields, asker)?;
        if let Ok(Some(id)) = self.rooms.ids().read(fields, "room") {
            let permanently = self.rooms.permanent(fields)?.is_some();
            self.cluster.destroyed(&id, permanently);
        }
        Ok(answer)
    }

    /// Answers whether there is a room, on any node.
    pub(super) fn exists(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let answer = self.rooms.find(fields)?;
        let id = self.rooms.ids().required(fields, "room")?;
        Ok(match self.cluster.home(&id) {
            Some(_) => answer.with("exists", true),
            None => answer,
        })
    }

    pub(super) fn list(&self, fields: Fields<'_>, asker: &Asker) -> Result<Object, Refusal> {
        // An empty key counts as absent.
        let key = fields.text("admin_key")?;
        let with_private =
            asker.is_administrator() || (self.rooms.has_admin_key() && key.is_some());
        let rooms = self.rooms.listed_with(key, asker.is_administrator())?;
        let here = rooms
            .iter()
            .filter(|room| self.cluster.home(&room.id).is_none());
        let entry = |room: &Arc<Room>| {
            let id = Object::new().with("room", room.id.to_json());
            Value::from(id.with_all(room.lock().listed()))
        };
        let mut list: Vec<Value> = here.map(entry).collect();
        list.extend(self.cluster.listed(with_private));
        Ok(success().with("list", list))
    }
}
