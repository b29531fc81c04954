//! The rooms of a server, for doors that do not keep them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::{Room, RoomSettings};

/// The registry of a server's rooms. The door that keeps the rooms implements it, so that other
/// doors find and make rooms there.
///
/// A door that uses it has let its clients in by its own tokens, so it needs no secret, PIN or token
/// of the rooms. No method may be called under the lock of a room.
pub trait Directory: fmt::Debug + Send + Sync {
    /// Returns the room that is called `name`: its id as a text.
    fn find(&self, name: &str) -> Option<Arc<Room>>;

    /// Makes the room that is called `name`, unless it exists.
    fn create(&self, name: &str, settings: RoomSettings) -> Result<Arc<Room>, CreateError>;

    /// Ends the room that is called `name`, and tells its clients. Does nothing without one.
    fn destroy(&self, name: &str);

    /// Returns whether clients of the keeping door can name only participants whose id is a number.
    fn has_numbers(&self) -> bool;

    /// Returns all rooms with their names.
    fn list(&self) -> Vec<(String, Arc<Room>)>;
}

/// The reason why a room cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// The name cannot be the id of a room.
    #[error("{0:?} cannot be the name of a room")]
    Name(String),
    /// The server has too many rooms.
    #[error("there cannot be more rooms: {0}")]
    Refused(String),
}

/// The place where the keeper of the rooms puts its [`Directory`]; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Rooms(Arc<OnceLock<Arc<dyn Directory>>>);

impl Rooms {
    /// Sets the directory. The first one stays.
    pub fn set(&self, directory: Arc<dyn Directory>) {
        // A server has one keeper of rooms.
        let _ = self.0.set(directory);
    }

    /// Returns the directory, or `None` if no part of the server keeps rooms.
    pub fn get(&self) -> Option<&Arc<dyn Directory>> {
        self.0.get()
    }
}
