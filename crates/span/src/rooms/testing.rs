//! The parsers of what other nodes say of video rooms, for the fuzz targets.

use super::listing::ListedRoom;
use super::message::RoomMessage;
use super::record::PersonRecord;

/// Reads a participant.
pub(crate) fn record(bytes: &[u8]) {
    if let Ok(record) = PersonRecord::parse(bytes) {
        let streams = record.streams().iter().enumerate();
        assert!(streams.filter_map(|(index, it)| it.stream(index)).count() <= 1_000);
        assert_eq!(PersonRecord::parse(&record.to_value()), Ok(record));
    }
}

/// Reads an item of the directory of rooms.
pub(crate) fn listed(bytes: &[u8]) {
    if let Some(room) = ListedRoom::parse(bytes) {
        assert_eq!(ListedRoom::parse(&room.to_value()), Some(room));
    }
}

/// Reads a message about a room.
pub(crate) fn message(bytes: &[u8]) {
    if let Some(message) = RoomMessage::parse(bytes) {
        assert_eq!(RoomMessage::parse(&message.to_bytes()), Some(message));
    }
}
