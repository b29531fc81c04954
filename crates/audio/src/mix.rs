//! Mixes of a room as sources of the media graph.

use std::sync::Arc;

use portunus_media::{IngestId, SourceRef};

use crate::room::RoomPort;

/// What a mix is made of. Nobody is left out of it, as a talker is of what it hears itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mixture {
    /// All that is heard in the room, announcements too.
    Everyone,
    /// The participants and announcements of this group.
    Group(usize),
}

/// An announcement of a room, as whoever runs the room numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnnouncementId(pub u64);

/// A mix that is made for somebody who is no participant: forwarders and viewers. It is made until this is dropped, and
/// routes from it end then.
#[derive(Debug)]
pub struct MixSource {
    pub(crate) id: u64,
    pub(crate) ingest: IngestId,
    pub(crate) room: Arc<RoomPort>,
}

impl MixSource {
    /// What to route from.
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.ingest)
    }
}

impl Drop for MixSource {
    fn drop(&mut self) {
        self.room.drop_mix(self.id, self.ingest);
    }
}
