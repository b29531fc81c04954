//! The video rooms that are in use on this server, as the cluster gets to know them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portunus_cluster::{Demand, HomeKey};
use portunus_room::{Room, Rooms};

/// The kind of their keys.
const KIND: &str = "room.videoroom";

/// The rooms in use with their participants, as of the last look.
#[derive(Debug, Default)]
pub(super) struct OpenRooms(BTreeMap<HomeKey, BTreeSet<String>>);

impl OpenRooms {
    /// Looks at the rooms of the server. Returns what has changed since the last look.
    pub(super) fn look(&mut self, rooms: &Rooms) -> Vec<Demand> {
        let all = rooms.get().map(|rooms| rooms.list()).unwrap_or_default();
        let used = all.into_iter().filter_map(|(name, room)| {
            // A name that is too long for a key stays on its server.
            Some((HomeKey::new(KIND, &name).ok()?, people(&room)?))
        });
        self.change(used.collect())
    }

    fn change(&mut self, now: BTreeMap<HomeKey, BTreeSet<String>>) -> Vec<Demand> {
        let mut demands = Vec::new();
        let nobody = BTreeSet::new();
        for key in self.0.keys().filter(|key| !now.contains_key(key)) {
            demands.push(Demand::Release(key.clone()));
        }
        for (key, people) in &now {
            let before = self.0.get(key);
            if before.is_none() {
                demands.push(Demand::Open(key.clone()));
            }
            let before = before.unwrap_or(&nobody);
            demands.extend(before.difference(people).map(|item| Demand::Remove {
                key: key.clone(),
                item: item.clone(),
            }));
            demands.extend(people.difference(before).map(|item| Demand::Set {
                key: key.clone(),
                item: item.clone(),
                value: Default::default(),
            }));
        }
        self.0 = now;
        demands
    }
}

/// Returns the participants of a room, or `None` if nobody uses it.
fn people(room: &Arc<Room>) -> Option<BTreeSet<String>> {
    let room = room.lock();
    room.is_used().then(|| {
        let people = room.people().filter(|person| !person.is_dummy());
        people
            .map(|person| person.id().as_str().to_owned())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn key(name: &str) -> HomeKey {
        HomeKey::new(KIND, name).unwrap()
    }

    fn rooms(rooms: &[(&str, &[&str])]) -> BTreeMap<HomeKey, BTreeSet<String>> {
        let rooms = rooms.iter().map(|(name, people)| {
            let people = people.iter().map(ToString::to_string);
            (key(name), people.collect())
        });
        rooms.collect()
    }

    #[test]
    fn only_changes_are_told() {
        let mut open = OpenRooms::default();
        let set = |item: &str| Demand::Set {
            key: key("1"),
            item: item.to_owned(),
            value: Default::default(),
        };
        let first = open.change(rooms(&[("1", &["ada"])]));
        assert_eq!(first, [Demand::Open(key("1")), set("ada")]);
        assert_eq!(open.change(rooms(&[("1", &["ada"])])), []);
        let remove = Demand::Remove {
            key: key("1"),
            item: "ada".to_owned(),
        };
        assert_eq!(open.change(rooms(&[("1", &["bob"])])), [remove, set("bob")]);
        let last = open.change(rooms(&[("2", &[])]));
        assert_eq!(last, [Demand::Release(key("1")), Demand::Open(key("2"))]);
    }
}
