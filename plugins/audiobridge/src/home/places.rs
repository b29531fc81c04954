//! Where the clients of other nodes are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portunus_dsp::ParticipantId;
use portunus_resources::Id;

use crate::cluster::StayId;
use crate::room::Room;

/// The most clients of one other node in rooms of this one.
const MAX_OF_NODE: usize = 50_000;

/// The clients of other nodes in rooms of this one, by their nodes.
///
/// It is locked for moments, also under the lock of a room, and no room is locked under its lock.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<String, HashMap<StayId, Place>>>);

/// The place of a client of another node.
#[derive(Debug, Clone)]
pub(super) struct Place {
    room: Weak<Room>,
    role: Role,
}

#[derive(Debug, Clone)]
pub(super) enum Role {
    /// The participant with this number in the mixer. Ids may be used again.
    In(Id, ParticipantId),
    Listening,
}

impl Places {
    fn nodes(&self) -> MutexGuard<'_, HashMap<String, HashMap<StayId, Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether clients of a node are in rooms of this one.
    pub(super) fn is_used_by(&self, node: &str) -> bool {
        self.nodes()
            .get(node)
            .is_some_and(|stays| !stays.is_empty())
    }

    /// Returns whether one more client of a node may enter a room.
    pub(super) fn has_space(&self, node: &str) -> bool {
        let nodes = self.nodes();
        nodes.get(node).is_none_or(|it| it.len() < MAX_OF_NODE)
    }

    /// Notes the place of a client. It is called under the lock of the room, so that the room
    /// removes it later.
    pub(super) fn add(&self, node: &str, stay: StayId, room: &Arc<Room>, role: Role) {
        let room = Arc::downgrade(room);
        let mut nodes = self.nodes();
        let stays = nodes.entry(node.to_owned()).or_default();
        stays.insert(stay, Place { room, role });
    }

    pub(super) fn get(&self, node: &str, stay: StayId) -> Option<Place> {
        self.nodes().get(node)?.get(&stay).cloned()
    }

    /// Returns the places of all clients of a node.
    pub(super) fn of_node(&self, node: &str) -> Vec<Place> {
        let nodes = self.nodes();
        let stays = nodes.get(node).into_iter().flatten();
        stays.map(|(_, place)| place.clone()).collect()
    }

    pub(super) fn take(&self, node: &str, stay: StayId) -> Option<Place> {
        let mut nodes = self.nodes();
        let stays = nodes.get_mut(node)?;
        let place = stays.remove(&stay);
        if stays.is_empty() {
            nodes.remove(node);
        }
        place
    }

    /// Removes all clients of a node.
    pub(super) fn take_node(&self, node: &str) -> HashMap<StayId, Place> {
        self.nodes().remove(node).unwrap_or_default()
    }
}

impl Place {
    /// Returns the room, unless it has ended.
    pub(super) fn room(self) -> Option<(Arc<Room>, Role)> {
        Some((self.room.upgrade()?, self.role))
    }

    /// Returns the id of a participant.
    pub(super) fn id(&self) -> Option<&Id> {
        match &self.role {
            Role::In(id, _) => Some(id),
            Role::Listening => None,
        }
    }
}
