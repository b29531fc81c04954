//! The mix of one participant as a source of the media graph.

use portunus_media::{IngestId, MediaPlane, SourceRef};

use crate::leg::mix_ingest;
use crate::{AudioCodec, AudioRoom};

/// A source that carries the mix which a participant hears, as one stream whichever mix that is.
/// It is an output of the participant ([`crate::Out::Source`]). Dropping the last reference ends
/// the source.
#[derive(Debug)]
pub struct MixOutlet {
    media: MediaPlane,
    ingest: IngestId,
}

impl MixOutlet {
    /// Returns a source for a participant of this room who hears this codec. It is silent until
    /// the participant hears a mix.
    pub fn new(room: &AudioRoom, codec: AudioCodec) -> Self {
        let media = room.port.media.clone();
        let options = mix_ingest(codec, room.port.clocks, None);
        let ingest = media.add_ingest(options).id;
        Self { media, ingest }
    }

    /// Returns the source to route from.
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.ingest)
    }

    pub(crate) const fn ingest(&self) -> IngestId {
        self.ingest
    }
}

impl Drop for MixOutlet {
    fn drop(&mut self) {
        // Nobody waits for its end.
        let _ = self.media.remove_ingest(self.ingest);
    }
}
