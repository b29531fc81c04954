//! The plugin's rooms for other doors.

use std::sync::{Arc, Weak};
use std::time::Duration;

use portunus_resources::{self as resources, AllowedTokens, Id, Ids, Maker, RoomContent};
use portunus_room::{CreateError, Directory, Room as Conference, RoomSettings, Work};
use tokio::sync::watch;

use crate::definition::Definition;
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
pub(crate) fn id(ids: Ids, name: &str) -> Option<Id> {
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
                shared.rooms.note_made(&room.id);
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

    fn destroy_permanently(&self, name: &str, ago: Duration) -> bool {
        let shared = self.0.upgrade();
        let found = shared.and_then(|shared| Some((id(shared.rooms.ids(), name)?, shared)));
        found.is_some_and(|(id, shared)| shared.rooms.end_permanently_too(&id, ago))
    }

    fn is_listed_elsewhere(&self, name: &str) -> Option<Duration> {
        let shared = self.0.upgrade()?;
        let id = id(shared.rooms.ids(), name)?;
        shared.rooms.is_listed_elsewhere(&id)
    }

    fn change_permanently(&self, name: &str, definition: &str) -> Result<(), CreateError> {
        // A room that is not here is in no file either.
        if self.room(name).is_none() {
            return Ok(());
        }
        self.adopt(name, definition)?;
        if let Some((shared, room)) = self.room(name) {
            shared.rooms.keep_too(&room);
        }
        Ok(())
    }

    fn has_numbers(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.rooms.ids() == Ids::Numbers)
    }

    fn definition(&self, name: &str) -> Option<String> {
        let (_, room) = self.room(name)?;
        let definition = room.lock().definition();
        Some(definition.as_ref().to_owned())
    }

    fn adopt(&self, name: &str, definition: &str) -> Result<(), CreateError> {
        let refused = |reason: String| CreateError::Refused(reason);
        let shared = self.0.upgrade();
        let shared = shared.ok_or_else(|| refused("the server ends".to_owned()))?;
        let id = id(shared.rooms.ids(), name).ok_or_else(|| CreateError::Name(name.to_owned()))?;
        let definition = Definition::read(&id, definition).map_err(refused)?;
        if definition.id != id {
            return Err(CreateError::Name(definition.id.to_string()));
        }
        if let Some((_, room)) = self.room(name) {
            room.lock().redefine(definition);
            return Ok(());
        }
        let Definition {
            options,
            allowed,
            edited,
            ..
        } = definition;
        match shared.rooms.reserve(Some(id), Maker::Operator) {
            Ok(reservation) => {
                shared.make_reserved(reservation, options, allowed, edited);
                Ok(())
            }
            // A client was faster.
            Err(resources::Refusal::Exists(_)) => Ok(()),
            Err(refusal) => Err(refused(Refusal::from(refusal).to_string())),
        }
    }

    fn answer(&self, name: &str, node: &str, question: &str) -> Work<Option<String>> {
        let shared = self.0.upgrade();
        let found = shared.filter(|shared| {
            let id = id(shared.rooms.ids(), name);
            id.is_some_and(|id| shared.rooms.exists(&id))
        });
        let Some(shared) = found else {
            return Box::pin(async { None });
        };
        shared.answer_node(name, node, question)
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
