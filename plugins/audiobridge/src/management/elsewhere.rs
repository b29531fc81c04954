//! Requests about rooms of other nodes, which their homes answer.

use portunus_core::{Asked, Fields, Later, Object, Reply};
use portunus_resources::{Asker, FarAuthor, Id, RoomContent};
use serde_json::Value;

use crate::requests::Management;
use crate::shared::Shared;

impl Shared {
    /// Asks the home of the room that a request names. Returns `None` if that is this node, or if
    /// the request is not about one room.
    pub(super) fn asked_elsewhere(
        &self,
        asked: Asked<Management>,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Option<Reply> {
        let of_all = [Management::Create, Management::List, Management::Exists];
        if of_all.into_iter().any(|it| asked == Asked::unnamed(it)) {
            return None;
        }
        let id = self.rooms.ids().required(fields, "room").ok()?;
        let node = self.home_elsewhere(&id)?;
        let token = fields.member::<&str>("token").ok().flatten();
        let author = FarAuthor::of(asker, &id, token);
        let client = asker.handle.as_ref();
        let stay = client.and_then(|client| self.cluster.stay_of(client.id(), &id));
        let answer = self.cluster.ask(node, stay, author, fields.0.clone());
        Some(Reply::Later(Later::new(answer)))
    }

    /// Returns the node at which a room is at home, or `None` if that is this one, or no node has
    /// the room. It must not be called under the lock of the room.
    pub(crate) fn home_elsewhere(&self, id: &Id) -> Option<String> {
        if !self.is_elsewhere(id) {
            return None;
        }
        let own = match self.rooms.exists(id) {
            true => self.rooms.get(id).ok().map(|room| room.lock().is_used()),
            false => None,
        };
        self.cluster.home_of(&id.to_string(), own)
    }

    /// Returns whether another node has a room with this id.
    pub(super) fn is_elsewhere(&self, id: &Id) -> bool {
        self.cluster.has(&id.to_string())
    }

    /// Returns the entries in lists of the rooms that are at home at other nodes. `all`: of private
    /// ones, too.
    pub(super) fn listed_elsewhere(&self, all: bool) -> Vec<(Id, Value)> {
        let ids = self.cluster.ids().into_iter();
        let ids = ids.filter_map(|id| self.rooms.ids().parse(&id));
        let there = ids.filter(|id| *id != Id::Number(0) && self.home_elsewhere(id).is_some());
        let entries = there.filter_map(|id| {
            let (node, record) = self.cluster.first(&id.to_string())?;
            let entry = Object::new()
                .with("room", id.to_json())
                .with_all(record.listed)
                .with("node", node);
            (all || !record.is_private).then(|| (id, entry.into()))
        });
        entries.collect()
    }
}
