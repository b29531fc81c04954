//! The rooms by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;

use crate::id::{Id, Ids};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::room::Room;

/// All rooms.
#[derive(Debug)]
pub(crate) struct Registry {
    media: MediaPlane,
    recorder: Recorder,
    rooms: Mutex<Rooms>,
}

#[derive(Debug, Default)]
struct Rooms {
    by_id: HashMap<Id, (u64, Arc<Room>)>,
    /// Counts rooms, so that lists have the order of creation.
    next: u64,
}

impl Registry {
    /// No rooms yet.
    pub(crate) fn new(media: MediaPlane, recorder: Recorder) -> Self {
        Registry {
            media,
            recorder,
            rooms: Mutex::default(),
        }
    }

    /// Makes a room with the id `wanted`, or with a free one if none is wanted.
    pub(crate) fn create(
        &self,
        wanted: Option<Id>,
        ids: Ids,
        mut options: RoomOptions,
        tokens: Option<Vec<String>>,
    ) -> Result<Arc<Room>, Refusal> {
        let mut rooms = self.rooms();
        let id = match wanted {
            Some(id) if rooms.by_id.contains_key(&id) => return Err(Refusal::RoomExists(id)),
            Some(id) => id,
            None => ids.random(|id| rooms.by_id.contains_key(id)),
        };
        if options.description.is_empty() {
            options.description = format!("Room {id}");
        }
        let room = Arc::new(Room::new(
            id.clone(),
            ids,
            options,
            tokens,
            (self.media.clone(), self.recorder.clone()),
        ));
        let place = rooms.next;
        rooms.next += 1;
        rooms.by_id.insert(id, (place, room.clone()));
        Ok(room)
    }

    /// The room with this id.
    pub(crate) fn get(&self, id: &Id) -> Result<Arc<Room>, Refusal> {
        let rooms = self.rooms();
        let found = rooms.by_id.get(id).map(|(_, room)| room.clone());
        found.ok_or_else(|| Refusal::NoSuchRoom(id.clone()))
    }

    /// Whether there is a room with this id.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.rooms().by_id.contains_key(id)
    }

    /// Forgets a room.
    pub(crate) fn remove(&self, id: &Id) {
        self.rooms().by_id.remove(id);
    }

    /// All rooms, in the order of their creation.
    pub(crate) fn all(&self) -> Vec<Arc<Room>> {
        let mut all: Vec<_> = self.rooms().by_id.values().cloned().collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, room)| room).collect()
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
