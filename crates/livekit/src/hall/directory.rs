//! The rooms of the door, for what follows them from outside.

use std::fmt;
use std::sync::Arc;

use livekit_protocol::RoomConfiguration;

use super::Hall;

/// The rooms of the door.
pub(crate) trait Halls: fmt::Debug + Send + Sync {
    /// Returns the room of this name, if it exists.
    fn find(&self, name: &str) -> Option<Arc<Hall>>;

    /// Returns the room of this name. Makes it if there is none. Fails with the reason as a text.
    fn open(
        &self,
        name: &str,
        configuration: Option<&RoomConfiguration>,
    ) -> Result<Arc<Hall>, String>;
}
