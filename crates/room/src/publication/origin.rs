//! The origins of what is published.

use std::sync::Arc;

use portunus_media::{MediaPlane, SourceRef};
use portunus_rtp::Mid;

use super::stream::AudioMonitor;
use super::{Relayed, Remote};
use crate::Connection;

/// The origin of a participant's media.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A client.
    Client(Arc<dyn Connection>),
    /// Another server, which sends RTP.
    Remote(Remote),
    /// A client at another node of the cluster.
    Relayed(Relayed),
    /// None: a placeholder publisher sends nothing.
    Dummy,
}

impl Origin {
    /// Returns m-line `mid` as a source of routes, or `None` if there is no media.
    pub(crate) fn source(&self, mid: Mid) -> Option<SourceRef> {
        match self {
            Origin::Client(connection) => connection.track(mid).map(SourceRef::Track),
            Origin::Remote(remote) => remote.source(mid).map(SourceRef::Ingest),
            Origin::Relayed(relayed) => relayed.source(mid).map(SourceRef::Ingest),
            Origin::Dummy => None,
        }
    }

    /// Requests a keyframe on m-line `mid`.
    pub(super) fn request_keyframe_on(&self, media: &MediaPlane, mid: Mid) {
        if let Some(source) = self.source(mid) {
            media.request_source_keyframe(source);
        }
    }

    /// Changes the monitoring of m-line `mid` from `before` to `after`.
    pub(super) fn monitor(
        &self,
        media: &MediaPlane,
        mid: Mid,
        before: AudioMonitor,
        after: AudioMonitor,
    ) {
        match self {
            Origin::Client(connection) => {
                let Some(track) = connection.track(mid) else {
                    return;
                };
                if before.speech != after.speech {
                    media.measure_speech(track, after.speech);
                }
                if before.talking != after.talking {
                    media.detect_talking(track, after.talking);
                }
            }
            Origin::Remote(remote) => remote.listen(mid, after.talking, after.speech),
            Origin::Relayed(relayed) => relayed.listen(mid, after.talking, after.speech),
            Origin::Dummy => {}
        }
    }
}
