//! Where what is published comes from.

use std::sync::Arc;

use portunus_media::{MediaPlane, SourceRef, TalkDetection};
use portunus_rtp::Mid;

use super::Remote;
use crate::Connection;

/// Where what a participant publishes comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A client.
    Client(Arc<dyn Connection>),
    /// Another server, which sends RTP.
    Remote(Remote),
    /// Nowhere: it holds the places of publishers who are still to come.
    Dummy,
}

impl Origin {
    /// The source of routes that m-line `mid` is.
    pub(crate) fn source(&self, mid: Mid) -> Option<SourceRef> {
        match self {
            Origin::Client(connection) => connection.track(mid).map(SourceRef::Track),
            Origin::Remote(remote) => remote.source(mid).map(SourceRef::Ingest),
            Origin::Dummy => None,
        }
    }

    /// Asks for a keyframe on m-line `mid`.
    pub(super) fn request_keyframe_on(&self, media: &MediaPlane, mid: Mid) {
        if let Some(source) = self.source(mid) {
            media.request_source_keyframe(source);
        }
    }

    /// Listens to m-line `mid` as `after` says, and no longer as `before`: for talking, and for how much is spoken.
    pub(super) fn listen(
        &self,
        media: &MediaPlane,
        mid: Mid,
        before: (Option<TalkDetection>, bool),
        after: (Option<TalkDetection>, bool),
    ) {
        match self {
            Origin::Client(connection) => {
                let Some(track) = connection.track(mid) else {
                    return;
                };
                if before.1 != after.1 {
                    media.measure_speech(track, after.1);
                }
                if before.0 != after.0 {
                    media.detect_talking(track, after.0);
                }
            }
            Origin::Remote(remote) => remote.listen(mid, after.0, after.1),
            Origin::Dummy => {}
        }
    }
}
