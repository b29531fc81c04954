//! What fuzz targets check: the readers of bytes from clients.

use livekit_protocol::SignalRequest;

use crate::cluster::read_question;
use crate::frame;
pub use crate::frame::Form;
use crate::hall::{FarMessage, RoomNote, read_note, signed_packet};
use crate::join_parameters::JoinParameters;
pub use crate::services::read_call;
use crate::token::Grants;

/// Reads the frame of a client.
pub fn read_frame(form: Form, frame: &[u8]) -> Option<SignalRequest> {
    frame::read(form, frame).ok()
}

/// Reads the claims of a token.
pub fn read_grants(claims: &str) -> Option<Grants> {
    serde_json::from_str(claims).ok()
}

/// Reads the query of a join. Returns the number of tracks that it announces.
pub fn read_join(query: &str, v1: bool) -> Option<usize> {
    let parameters = JoinParameters::read(query, v1).ok()?;
    Some(parameters.add_tracks.len())
}

/// Reads a message and a note of this door at another node.
pub fn read_of_node(bytes: &[u8]) {
    drop(FarMessage::parse(bytes));
    drop(RoomNote::read(bytes));
    read_question(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        read_note(text);
        drop(RoomNote::parse(text));
    }
}

/// Returns a data message as the others get it from this sender, or `None` if it is no packet.
pub fn forward_packet(bytes: &[u8], identity: &str, sid: &str) -> Option<Vec<u8>> {
    signed_packet(bytes.to_vec(), identity, sid)
}
