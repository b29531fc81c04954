//! The mix of one participant as a source of the media graph.

use portunus_media::{IngestId, MediaPlane, SourceRef};

use crate::AudioCodec;
use crate::clocks::Clocks;
use crate::leg::mix_ingest;

/// A source that carries the mix which a participant hears, as one stream whichever mix that is:
/// [`crate::AudioRoom::outlet`]. It is an output of the participant ([`crate::Out::Source`]).
/// Dropping the last reference ends the source.
#[derive(Debug)]
pub struct MixOutlet {
    media: MediaPlane,
    ingest: IngestId,
}

impl MixOutlet {
    pub(crate) fn new(media: MediaPlane, clocks: Clocks, codec: AudioCodec) -> Self {
        let options = mix_ingest(codec, clocks, None);
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
