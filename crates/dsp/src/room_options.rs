//! How a room mixes.

use crate::Format;

/// How a room mixes. None of this changes while the room lives.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomOptions {
    /// The form of the mix. Stereo rooms place their participants from left to right.
    pub format: Format,
    /// How many participants are heard at once, the loudest; 0: all.
    pub loudest: usize,
    /// How many groups participants and announcements may be of, each with a mix of its own beside that of all.
    pub groups: usize,
}
