//! From the viewers back to the source of an ingest: keyframe requests and bitrates.

use std::time::Instant;

use super::Ingests;
use crate::ingest::{IngestId, Remote};

/// When sources are to be told something.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Telling {
    /// That is to be found out.
    #[default]
    Changed,
    /// Not before something changes.
    Nothing,
    At(Instant),
}

/// Room for all that a source is told at a time.
const DATAGRAM: usize = 256;

impl Ingests {
    /// When there is something to tell a source.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        match self.telling {
            Telling::Changed | Telling::Nothing => None,
            Telling::At(at) => Some(at),
        }
    }

    /// A source may be to be told something new.
    pub(super) fn changed(&mut self) {
        self.telling = Telling::Changed;
    }

    /// Somebody needs a keyframe of an ingest.
    pub(in crate::worker) fn want_keyframe(&mut self, id: IngestId, encoding: u8) {
        if let Some(ingest) = self.get_mut(id) {
            ingest.upstream.want_keyframe(encoding);
            self.changed();
        }
    }

    /// Tells sources what is due.
    pub(in crate::worker) fn tell(&mut self, now: Instant) {
        match self.telling {
            Telling::Nothing => return,
            Telling::At(at) if at > now => return,
            Telling::At(_) | Telling::Changed => {}
        }
        let mut next: Option<Instant> = None;
        for (_, ingest) in &mut self.slots {
            let Some(due) = ingest.upstream.poll_timeout(now) else {
                continue;
            };
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            let mut datagram = [0; DATAGRAM];
            let Some(told) = ingest.upstream.poll_transmit(now, &mut datagram) else {
                continue;
            };
            for _ in 0..told.keyframes {
                ingest.status.asked_for_keyframe();
            }
            let out = datagram.get(..told.len).unwrap_or_default();
            let port = ingest.rtcp.and_then(|port| self.ports.get(port));
            match (told.to, port, &ingest.feed) {
                (Remote::Address(to), Some(port), _) => {
                    if let Err(error) = port.socket.send(out, to) {
                        tracing::debug!(%error, %to, "an ingest's source cannot be told");
                    }
                }
                (Remote::Feed, _, Some(feed)) => {
                    if !feed.tell(out) {
                        tracing::debug!("an ingest's source cannot be told");
                    }
                }
                (Remote::Address(_) | Remote::Feed, ..) => {}
            }
            if let Some(due) = ingest.upstream.poll_timeout(now) {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.telling = next.map_or(Telling::Nothing, Telling::At);
    }

    /// Some viewer of an ingest can take so much; says whether the ingest is here.
    pub(in crate::worker) fn viewer_takes(
        &mut self,
        id: IngestId,
        bitrate: u64,
        now: Instant,
    ) -> bool {
        let Some(ingest) = self.get_mut(id) else {
            return false;
        };
        ingest.upstream.viewer_takes(bitrate, now);
        self.changed();
        true
    }
}
