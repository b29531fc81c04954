//! The options of a room.

use crate::Format;

/// The options of a room. They stay the same for its lifetime.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomOptions {
    /// The format of the mix. Stereo rooms place their participants from left to right.
    pub format: Format,
    /// The number of participants that are heard at once, the loudest ones; 0 means all.
    pub loudest: usize,
    /// The number of groups of participants and announcements. Each has a mix of its own, besides
    /// that of all.
    pub groups: usize,
}
