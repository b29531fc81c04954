//! The rooms of a server, for doors that do not keep them.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use crate::{PersonId, Room, RoomSettings};

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

    /// Ends the room that is called `name`, which another node has ended permanently `ago`, and notes
    /// that in the file of permanent rooms. Returns false if the room was made since, and stays.
    fn destroy_permanently(&self, name: &str, ago: Duration) -> bool {
        let _ = ago;
        self.destroy(name);
        true
    }

    /// Another node has the room that is called `name`. Returns how long ago it was ended
    /// permanently, which that node may not know.
    fn is_listed_elsewhere(&self, name: &str) -> Option<Duration> {
        let _ = name;
        None
    }

    /// Changes the room that is called `name` as [`Directory::adopt`] does, and notes that in the
    /// file of permanent rooms, if that or the configuration has the room.
    fn change_permanently(&self, name: &str, definition: &str) -> Result<(), CreateError> {
        self.adopt(name, definition)
    }

    /// Returns whether clients of the keeping door can name only participants whose id is a number.
    fn has_numbers(&self) -> bool;

    /// Returns all rooms with their names.
    fn list(&self) -> Vec<(String, Arc<Room>)>;

    /// Returns the definition of the room that is called `name` for [`Directory::adopt`], a text
    /// that only the keeper understands. Secrets in it are sealed. `None` if there is no such room,
    /// or if it cannot be had elsewhere.
    fn definition(&self, name: &str) -> Option<String>;

    /// Makes the room that is called `name` by the definition of another node. If the room exists and
    /// the definition is a later one, changes the room.
    fn adopt(&self, name: &str, definition: &str) -> Result<(), CreateError>;

    /// Answers a question about the room that is called `name`, which the keeper of rooms at `node`
    /// has sent by [`OtherNodes::ask`]. Only the keepers understand both texts. `None` if there is no
    /// such room.
    fn answer(&self, name: &str, node: &str, question: &str) -> Work<Option<String>>;

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
    fn prepare(&self, name: &str) -> Work<Result<(), Unprepared>>;

    /// Asks the home of a room for something ([`Directory::answer`]).
    fn ask(&self, name: &str, question: String) -> Work<Answered>;

    /// Asks the same door at another node about a room ([`FarDoor::answer`]). The node counts as
    /// silent after `patience`.
    fn ask_door(
        &self,
        name: &str,
        whom: Whom,
        question: Vec<u8>,
        patience: Duration,
    ) -> Work<Answered<Vec<u8>>>;

    /// Claims the name of a room that is to be made here, so that no other node makes such a room.
    fn claim(&self, name: &str) -> Work<Result<(), ClaimError>>;

    /// Sends a message of a door to the same door at all nodes where participants of a room are
    /// ([`FarDoor::take`]).
    fn tell(&self, name: &str, message: Vec<u8>);

    /// The same for one node. A message that `may_be_lost` is dropped before others are.
    fn tell_node(&self, node: &str, name: &str, message: Vec<u8>, may_be_lost: bool);

    /// A client of this node has ended the room that is called `name`, for all nodes. `permanently`:
    /// also in their files.
    fn destroyed(&self, name: &str, permanently: bool);

    /// A client has changed the room that is called `name`, which is in the file of this node so.
    fn changed_permanently(&self, name: &str);

    /// Returns the rooms of the other nodes.
    fn rooms(&self) -> Vec<FarRoom>;

    /// Returns the room that is called `name` as other nodes have it.
    fn room(&self, name: &str) -> Option<FarRoom>;

    /// Returns whether another node has the room that is called `name`.
    fn has(&self, name: &str) -> bool;
}

/// A door whose parts at all nodes tell each other what rooms do not know.
pub trait FarDoor: fmt::Debug + Send + Sync {
    /// Takes a message of the same door at `node` about the room that is called `name`.
    fn take(&self, name: &str, node: &str, message: &[u8]);

    /// Answers a question of the same door at `node` about the room that is called `name`. `None` if
    /// the question cannot be read.
    fn answer(&self, name: &str, node: &str, question: &[u8]) -> Work<Option<Vec<u8>>>;

    /// Takes what the same door at another node says of the room that is called `name`
    /// ([`State::set_room_note`](crate::State::set_room_note)).
    fn noted(&self, name: &str, note: &str);

    /// A client of another node has the id of a participant of this door. Ends the participant's
    /// session.
    fn replaced(&self, name: &str, id: &PersonId);
}

/// The node that is asked about a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// The home of the room, or a node that has the room if nobody uses it.
    Home,
    /// The node of this name.
    Node(String),
}

/// A room of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarRoom {
    /// Its name.
    pub name: String,
    /// Its definition, see [`Directory::definition`].
    pub definition: Arc<str>,
    /// The number of its participants.
    pub people: usize,
    /// The number of those who publish.
    pub publishers: usize,
    /// What the doors at these nodes say of it ([`FarDoor::noted`]).
    pub notes: Vec<Arc<str>>,
}

/// The outcome of a question to the home of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered<T = String> {
    /// This node is the home, or it has to act by what it knows since no home can be reached.
    Here,
    /// The home has answered.
    Answer(T),
    /// The home, which is this node, has not answered in time.
    Silent(String),
}

/// The reason why nobody can join a room now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unprepared {
    /// The room is new, and the cluster cannot say where it is at home.
    #[error("{0}")]
    NoHome(String),
}

/// The reason why a room cannot have its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Another node has a room of this name, or makes one.
    #[error("another node has such a room")]
    Taken,
    /// The cluster cannot say whether the name is free.
    #[error("{0}")]
    Unknown(String),
}

/// Work that takes time.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The place where the keeper of the rooms puts its [`Directory`], and a cluster its
/// [`OtherNodes`]; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Rooms(Arc<Places>);

#[derive(Debug, Default)]
struct Places {
    directory: OnceLock<Arc<dyn Directory>>,
    others: OnceLock<Arc<dyn OtherNodes>>,
    door: OnceLock<Arc<dyn FarDoor>>,
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

    /// Sets the door that takes messages of other nodes.
    pub fn set_door(&self, door: Arc<dyn FarDoor>) {
        // A server has one such door.
        let _ = self.0.door.set(door);
    }

    /// Returns the door that takes messages of other nodes, if there is one.
    pub fn door(&self) -> Option<&Arc<dyn FarDoor>> {
        self.0.door.get()
    }

    /// Returns the other nodes, or `None` if the server is not one of a cluster.
    pub fn others(&self) -> Option<&Arc<dyn OtherNodes>> {
        self.0.others.get()
    }
}
