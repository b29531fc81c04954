//! The parser of what other nodes send, for the fuzz targets.

use crate::far::CallMessage;

/// Reads a message about a call. What can be read is the same when it is written and read again.
pub fn read_call(bytes: &[u8]) {
    let Some(message) = CallMessage::parse(bytes) else {
        return;
    };
    assert_eq!(
        CallMessage::parse(&message.to_bytes()).as_ref(),
        Some(&message)
    );
    match message {
        CallMessage::Invite { offer, .. } => drop(offer.description()),
        CallMessage::Data { message, .. } => drop(message.message()),
        _ => {}
    }
}
