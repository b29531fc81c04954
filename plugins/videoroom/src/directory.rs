//! The plugin's rooms for other doors.

use std::sync::{Arc, Weak};

use portunus_resources::{AllowedTokens, Id, Ids, Maker, RoomContent, Written};
use portunus_room::{CreateError, Directory, Room as Conference, RoomSettings};
use tokio::sync::watch;

use crate::config::ConfiguredRoom;
use crate::options::{DoorOptions, RoomOptions};
use crate::refusal::Refusal;
use crate::room::Room;
use crate::shared::Shared;

/// The rooms of the plugin, as long as it runs.
#[derive(Debug)]
pub(crate) struct RoomDirectory(pub(crate) Weak<Shared>);

impl RoomDirectory {
    fn room(&self, name: &str) -> Option<(Arc<Shared>, Arc<Room>)> {
        let shared = self.0.upgrade()?;
        let room = shared.rooms.get(&id(shared.rooms.ids(), name)?).ok()?;
        Some((shared, room))
    }
}

/// Returns the id of the room that other doors call `name`. A name that is not a number is a text
/// also where the plugin's own clients use numbers; these cannot name such a room.
fn id(ids: Ids, name: &str) -> Option<Id> {
    if name.is_empty() {
        return None;
    }
    match (ids, name.parse::<u64>()) {
        (Ids::Numbers, Ok(0)) => None,
        // Another text of the same number would name a second room.
        (Ids::Numbers, Ok(number)) if number.to_string() == name => Some(Id::Number(number)),
        (Ids::Numbers | Ids::Texts, _) => Some(Id::Text(name.to_owned())),
    }
}

impl Directory for RoomDirectory {
    fn find(&self, name: &str) -> Option<Arc<Conference>> {
        let (_, room) = self.room(name)?;
        let door = room.lock();
        Some(door.conference.clone())
    }

    fn create(&self, name: &str, settings: RoomSettings) -> Result<Arc<Conference>, CreateError> {
        if let Some((_, room)) = self.room(name) {
            return Ok(room.lock().conference.clone());
        }
        let gone = || CreateError::Refused("the server ends".to_owned());
        let shared = self.0.upgrade().ok_or_else(gone)?;
        let id = id(shared.rooms.ids(), name).ok_or_else(|| CreateError::Name(name.to_owned()))?;
        let options = RoomOptions {
            door: DoorOptions::default(),
            settings,
        };
        match shared.make(Some(id), options, AllowedTokens::default(), Maker::Operator) {
            Ok(room) => {
                let door = room.lock();
                tracing::info!(room = %door.id, "room created");
                door.notify(None, || door.notice("created").into());
                Ok(door.conference.clone())
            }
            // Another client was faster.
            Err(Refusal::RoomExists(_)) => {
                let (_, room) = self.room(name).ok_or_else(gone)?;
                Ok(room.lock().conference.clone())
            }
            Err(refusal) => Err(CreateError::Refused(refusal.to_string())),
        }
    }

    fn destroy(&self, name: &str) {
        let Some((shared, room)) = self.room(name) else {
            return;
        };
        if shared.rooms.remove(&room).is_err() {
            return;
        }
        let mut door = room.lock();
        door.end(None);
        door.notify(None, || door.notice("destroyed").into());
        tracing::info!(room = %door.id, "room destroyed");
    }

    fn has_numbers(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.rooms.ids() == Ids::Numbers)
    }

    fn definition(&self, name: &str) -> Option<String> {
        let (_, room) = self.room(name)?;
        let mut door = room.lock();
        if door.allowed().is_checked() {
            // The list of tokens changes without a word, so it stays where it is.
            return None;
        }
        let mut options = door.options();
        options.door.access = options.door.access.sealed(name);
        let id = door.id.clone();
        let definition = ConfiguredRoom { id, options };
        serde_json::to_string(&definition.to_members()).ok()
    }

    fn adopt(&self, name: &str, definition: &str) -> Result<(), CreateError> {
        if self.room(name).is_some() {
            return Ok(());
        }
        let refused = |reason: String| CreateError::Refused(reason);
        let shared = self.0.upgrade();
        let shared = shared.ok_or_else(|| refused("the server ends".to_owned()))?;
        let id = id(shared.rooms.ids(), name).ok_or_else(|| CreateError::Name(name.to_owned()))?;
        let members = serde_json::from_str(definition);
        let members = members.map_err(|error| refused(error.to_string()))?;
        let ids = match id {
            Id::Number(_) => Ids::Numbers,
            Id::Text(_) => Ids::Texts,
        };
        let defined = ConfiguredRoom::read(&members, ids == Ids::Texts);
        let defined = defined.map_err(|error| refused(error.to_string()))?;
        if defined.id != id {
            return Err(CreateError::Name(defined.id.to_string()));
        }
        let (tokens, maker) = (AllowedTokens::default(), Maker::Operator);
        match shared.make(Some(id), defined.options, tokens, maker) {
            Ok(_) | Err(Refusal::RoomExists(_)) => Ok(()),
            Err(refusal) => Err(refused(refusal.to_string())),
        }
    }

    fn changes(&self) -> watch::Receiver<()> {
        match self.0.upgrade() {
            Some(shared) => shared.rooms.changes(),
            // It is closed, as the plugin has ended.
            None => watch::channel(()).1,
        }
    }

    fn list(&self) -> Vec<(String, Arc<Conference>)> {
        let Some(shared) = self.0.upgrade() else {
            return Vec::new();
        };
        let rooms = shared.rooms.all();
        let entry = |room: Arc<Room>| {
            let door = room.lock();
            (door.id.to_string(), door.conference.clone())
        };
        rooms.into_iter().map(entry).collect()
    }
}
