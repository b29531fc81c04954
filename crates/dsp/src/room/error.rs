//! The errors of rooms.

use crate::{AnnouncementId, CodecError, ParticipantId};

/// The reason why a room has refused a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// A participant with this number exists.
    #[error("participant {} is in the room already", .0.0)]
    ParticipantExists(ParticipantId),
    /// There is no participant with this number.
    #[error("participant {} is not in the room", .0.0)]
    NoSuchParticipant(ParticipantId),
    /// The room has fewer groups.
    #[error("the room has no group {0}")]
    NoSuchGroup(usize),
    /// An announcement with this number is playing.
    #[error("announcement {} plays already", .0.0)]
    AnnouncementExists(AnnouncementId),
    /// A codec has failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
}
