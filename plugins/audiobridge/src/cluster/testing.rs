//! The parsers of what other nodes send, for the fuzz targets. What can be read can be written and
//! read again.

use std::time::Instant;

use super::RoomRecord;
use super::message::FarMessage;
use super::pipe::Pipe;

/// Reads a message of another node.
pub fn read_message(bytes: &[u8]) {
    if let Ok(message) = FarMessage::parse(bytes) {
        assert!(FarMessage::parse(&message.to_bytes()).is_ok());
    }
}

/// Reads what another node says of a room.
pub fn read_record(bytes: &[u8]) {
    if let Ok(record) = RoomRecord::parse(bytes) {
        assert!(RoomRecord::parse(&record.to_value()).is_ok());
    }
}

/// Takes frames of another node, each after its length in one byte.
pub fn read_frames(mut bytes: &[u8]) {
    let now = Instant::now();
    let mut pipe = Pipe::new(1, now);
    while let Some((length, rest)) = bytes.split_first() {
        let (frame, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        // A malformed frame is skipped.
        let _ = pipe.take(frame, now);
        drop(pipe.send(frame, now));
        bytes = rest;
    }
}
