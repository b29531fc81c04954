//! Rooms of the other nodes of a cluster.

mod entry;
mod question;
mod services;

use std::sync::{Arc, Weak};

use portunus_room::{ClaimError, FarDoor, OtherNodes, PersonId, Unprepared, Work};
use prost::Message;

use crate::door::{Door, EntryError};
use crate::hall::{FarMessage, Hall, RoomNote};
pub(crate) use question::Asked;
use question::FarQuestion;
#[cfg(feature = "testing")]
pub(crate) use question::read as read_question;

/// The door, for itself at other nodes.
#[derive(Debug)]
pub(crate) struct FarSide(pub(crate) Weak<Door>);

impl FarDoor for FarSide {
    fn take(&self, name: &str, _: &str, message: &[u8]) {
        let Some(hall) = self.hall(name) else { return };
        if let Some(content) = FarMessage::parse(message) {
            hall.take(content);
        }
    }

    fn answer(&self, name: &str, node: &str, question: &[u8]) -> Work<Option<Vec<u8>>> {
        let door = self.0.upgrade();
        let question = FarQuestion::parse(question);
        let (name, node) = (name.to_owned(), node.to_owned());
        Box::pin(async move {
            let (content, hops) = question?;
            let answer = door?.answer(&name, &node, content, hops).await;
            Some(answer.encode_to_vec())
        })
    }

    fn noted(&self, name: &str, note: &str) {
        if let (Some(hall), Some(note)) = (self.hall(name), RoomNote::parse(note)) {
            hall.take_room_note(note, false);
        }
    }

    fn replaced(&self, name: &str, id: &PersonId) {
        if let Some(hall) = self.hall(name) {
            hall.replace(&mut hall.room.lock(), id);
        }
    }
}

impl FarSide {
    /// Returns what this door knows of a room, if clients of it or the services have used the room.
    fn hall(&self, name: &str) -> Option<Arc<Hall>> {
        self.0.upgrade()?.halls().get(name).cloned()
    }
}

impl Door {
    /// Makes a room known here as the other nodes have it. `makes`: if there is none, it is to be
    /// made here, so no other node may make it. Fails if the cluster cannot give a new room a home.
    pub(crate) async fn prepare_room(&self, name: &str, makes: bool) -> Result<(), EntryError> {
        let Some(others) = self.rooms.others() else {
            return Ok(());
        };
        prepare(others.as_ref(), name).await?;
        let exists = || {
            let rooms = self.rooms.get();
            rooms.is_some_and(|rooms| rooms.find(name).is_some())
        };
        if !makes || exists() {
            return Ok(());
        }
        match others.claim(name).await {
            Ok(()) => Ok(()),
            // Another node makes it.
            Err(ClaimError::Taken) => prepare(others.as_ref(), name).await,
            Err(ClaimError::Unknown(reason)) => Err(EntryError::NoHome(reason)),
        }
    }
}

async fn prepare(others: &dyn OtherNodes, name: &str) -> Result<(), EntryError> {
    let prepared = others.prepare(name).await;
    prepared.map_err(|Unprepared::NoHome(reason)| EntryError::NoHome(reason))
}
