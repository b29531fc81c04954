//! Mixes of a room as sources of the media graph.

use std::sync::Arc;

use portunus_media::{IngestId, SourceRef};

use crate::room::RoomPort;

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
