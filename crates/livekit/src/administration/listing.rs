//! The rooms of all nodes.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use livekit_protocol as lk;
use portunus_room::FarRoom;

use crate::cluster::Asked;
use crate::door::Door;
use crate::hall::RoomNote;

/// The most rooms of other nodes that are asked for at a time, and for one answer. Others are listed
/// by their names only.
const AT_ONCE: usize = 32;
const MAX_ASKED: usize = 1_000;

impl Door {
    /// Returns the rooms of these names, or all rooms if there are no names.
    pub(super) async fn rooms_of_all_nodes(&self, names: Vec<String>) -> Vec<lk::Room> {
        let mut far: BTreeMap<String, FarRoom> = match self.rooms.others() {
            Some(others) if names.is_empty() => {
                let rooms = others.rooms().into_iter();
                rooms.map(|room| (room.name.clone(), room)).collect()
            }
            Some(others) => {
                let rooms = names.iter().filter_map(|name| others.room(name));
                rooms.map(|room| (room.name.clone(), room)).collect()
            }
            None => BTreeMap::new(),
        };
        let here = self.rooms.get().map(|rooms| rooms.list());
        let here = here.unwrap_or_default().into_iter().map(|(name, _)| name);
        let here = here.filter(|name| names.is_empty() || names.contains(name));
        let mut rooms = Vec::new();
        for name in here {
            // A room may end meanwhile.
            if let Ok(room) = self.room_here(&name) {
                rooms.push(match far.remove(&name) {
                    Some(far) => with_counts(room, &far),
                    None => room,
                });
            }
        }
        let mut asked = Vec::new();
        for (name, far) in far {
            match RoomNote::latest(&far.notes).filter(|note| !note.is_cut()) {
                Some(note) => rooms.push(with_counts(note.into_room(), &far)),
                None if asked.len() < MAX_ASKED => asked.push(name),
                None => rooms.push(named(name, &far)),
            }
        }
        let asked = stream::iter(asked).map(|name| async move {
            self.ask_elsewhere::<lk::Room>(|| Asked::Room(name))
                .await?
                .ok()
        });
        let mut answers = asked.buffer_unordered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            rooms.extend(answer);
        }
        rooms
    }
}

/// Returns a room with the numbers that another node has told, if they are greater: that node may
/// use the room, and this one may not.
fn with_counts(mut room: lk::Room, far: &FarRoom) -> lk::Room {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    room.num_participants = room.num_participants.max(count(far.people));
    room.num_publishers = room.num_publishers.max(count(far.publishers));
    room
}

fn named(name: String, far: &FarRoom) -> lk::Room {
    let room = lk::Room {
        name,
        ..lk::Room::default()
    };
    with_counts(room, far)
}
