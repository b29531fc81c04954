//! The parsers of what other nodes send, for the fuzz targets. What can be read is the same when it
//! is written and read again.

use bytes::Bytes;

use crate::envelope::Envelope;
use crate::link_message::LinkMessage;
use crate::rooms::testing::{listed, message, record};

/// Reads a message about a media link.
pub fn read_link_message(bytes: &[u8]) {
    if let Ok(message) = LinkMessage::parse(bytes) {
        assert_eq!(LinkMessage::parse(&message.to_bytes()), Ok(message));
    }
}

/// Reads a message about a thing.
pub fn read_envelope(bytes: &[u8]) {
    if let Ok(envelope) = Envelope::parse(Bytes::copy_from_slice(bytes)) {
        assert_eq!(Envelope::parse(envelope.to_bytes()), Ok(envelope));
    }
}

/// Reads a participant of a video room, a message about one, and an item of the directory.
pub fn read_room(bytes: &[u8]) {
    record(bytes);
    listed(bytes);
    message(bytes);
}
