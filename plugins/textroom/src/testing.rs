//! The parsers of what other nodes send, for the fuzz targets.

pub use crate::cluster::read_listing;
use crate::contact::RoomMessage;

/// Reads a message about a room.
pub fn read_message(bytes: &[u8]) {
    if let Some(message) = RoomMessage::parse(bytes) {
        assert!(RoomMessage::parse(&message.to_bytes()).is_some());
    }
}
