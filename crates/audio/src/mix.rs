//! Mixes of a room as sources of the media graph.

use std::sync::Arc;

use portunus_media::{IngestId, SourceRef};

use crate::room_port::RoomPort;

/// A mix for forwarders and viewers, which are no participants. Dropping it ends the mix and the
/// routes from it.
#[derive(Debug)]
pub struct MixSource {
    pub(crate) id: u64,
    pub(crate) ingest: IngestId,
    pub(crate) room: Arc<RoomPort>,
}

impl MixSource {
    /// Returns the source to route from.
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.ingest)
    }
}

impl Drop for MixSource {
    fn drop(&mut self) {
        self.room.drop_mix(self.id, self.ingest);
    }
}
