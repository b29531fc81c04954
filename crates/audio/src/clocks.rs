//! The media clocks of a room.

use portunus_media::SharedClock;

/// The clocks of a room's mixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) opus: SharedClock,
    pub(crate) g711: SharedClock,
}
