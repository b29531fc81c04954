//! What a room refuses.

use crate::{AnnouncementId, CodecError, ParticipantId};

/// A room refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// A participant of this number is there already.
    #[error("participant {} is in the room already", .0.0)]
    ParticipantExists(ParticipantId),
    /// No participant has this number.
    #[error("participant {} is not in the room", .0.0)]
    NoSuchParticipant(ParticipantId),
    /// The room has not that many groups.
    #[error("the room has no group {0}")]
    NoSuchGroup(usize),
    /// An announcement of this number plays already.
    #[error("announcement {} plays already", .0.0)]
    AnnouncementExists(AnnouncementId),
    /// An announcement could not be decoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
}
