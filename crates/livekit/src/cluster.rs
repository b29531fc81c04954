//! Rooms of the other nodes of a cluster.

use std::sync::Weak;

use portunus_room::{ClaimError, FarDoor, OtherNodes, Unprepared};

use crate::door::{Door, EntryError};
use crate::hall::FarMessage;

/// The door, for itself at other nodes.
#[derive(Debug)]
pub(crate) struct FarSide(pub(crate) Weak<Door>);

impl FarDoor for FarSide {
    fn take(&self, name: &str, message: &[u8]) {
        let Some(door) = self.0.upgrade() else { return };
        let hall = door.halls().get(name).cloned();
        if let (Some(hall), Some(content)) = (hall, FarMessage::parse(message)) {
            hall.take(content);
        }
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
