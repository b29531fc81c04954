//! The rooms of a server, for doors that do not keep them.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

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

    /// Returns the definition of the room that is called `name` for [`Directory::adopt`], a text
    /// that only the keeper understands. Secrets in it are sealed. `None` if there is no such room,
    /// or if it cannot be had elsewhere.
    fn definition(&self, name: &str) -> Option<String>;

    /// Makes the room that is called `name` by the definition of another node, unless it exists.
    fn adopt(&self, name: &str, definition: &str) -> Result<(), CreateError>;

    /// Returns a receiver that sees when rooms were made or removed. Changes that follow each other
    /// closely may be seen as one.
    fn changes(&self) -> watch::Receiver<()>;
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

/// The other nodes of a cluster, which have the same rooms.
pub trait OtherNodes: fmt::Debug + Send + Sync {
    /// Makes a room known here as the other nodes have it, with its participants there. Ends
    /// without that after a second.
    fn prepare(&self, name: &str) -> Preparation;
}

/// The work before a client can join a room.
pub type Preparation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The place where the keeper of the rooms puts its [`Directory`], and a cluster its
/// [`OtherNodes`]; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Rooms(Arc<Places>);

#[derive(Debug, Default)]
struct Places {
    directory: OnceLock<Arc<dyn Directory>>,
    others: OnceLock<Arc<dyn OtherNodes>>,
}

impl Rooms {
    /// Sets the directory. The first one stays.
    pub fn set(&self, directory: Arc<dyn Directory>) {
        // A server has one keeper of rooms.
        let _ = self.0.directory.set(directory);
    }

    /// Returns the directory, or `None` if no part of the server keeps rooms.
    pub fn get(&self) -> Option<&Arc<dyn Directory>> {
        self.0.directory.get()
    }

    /// Sets the other nodes, if the server is one of a cluster.
    pub fn set_others(&self, others: Arc<dyn OtherNodes>) {
        // A server is a node of one cluster.
        let _ = self.0.others.set(others);
    }

    /// Returns the work before a client can join the room that is called `name`, or `None` if there
    /// is none.
    pub fn prepare(&self, name: &str) -> Option<Preparation> {
        let others = self.0.others.get()?;
        Some(others.prepare(name))
    }
}
