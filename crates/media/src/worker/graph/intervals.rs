//! Requests keyframes of sources at intervals.

use std::time::{Duration, Instant};

use super::Graph;
use portunus_graph::{ENCODINGS, Source};

use crate::worker::peers::Peers;
use crate::{KeyframeInterval, SourceRef};

/// The minimum time between two checks of the sources.
const LOOK: Duration = Duration::from_millis(100);

/// The sources with an interval.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    asked: Vec<Asked>,
    next: Option<Instant>,
}

/// A source, and when each of its encodings was last asked.
#[derive(Debug)]
struct Asked {
    source: SourceRef,
    interval: KeyframeInterval,
    last: [Instant; ENCODINGS],
}

impl Intervals {
    /// Removes the interval of a source.
    pub(super) fn forget(&mut self, source: SourceRef) {
        self.asked.retain(|asked| asked.source != source);
    }
}

impl Asked {
    /// When a keyframe of an encoding is due, or `None` if never.
    fn due(&self, encoding: u8, source: &Source) -> Option<Instant> {
        let last = *self.last.get(usize::from(encoding))?;
        let came = source.flow.last_keyframe(encoding);
        let came = came.filter(|_| !self.interval.opaque);
        let last = came.map_or(last, |came| came.max(last));
        last.checked_add(self.interval.every)
    }
}

impl Graph {
    /// When the next check is due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        self.intervals.next
    }

    /// Sets the interval of a source. `None` removes it.
    pub(in crate::worker) fn set_keyframe_interval(
        &mut self,
        is: SourceRef,
        interval: Option<KeyframeInterval>,
        peers: &mut Peers,
        now: Instant,
    ) {
        self.intervals.forget(is);
        let Some(interval) = interval.filter(|_| self.is_here(is, peers)) else {
            return;
        };
        // The source has to exist, so that its end removes the interval.
        self.source_of(is, peers);
        self.intervals.asked.push(Asked {
            source: is,
            interval,
            last: [now; ENCODINGS],
        });
        self.intervals.next = Some(now);
    }

    /// Requests the keyframes that are due, of sources with receivers.
    pub(in crate::worker) fn ask_at_intervals(&mut self, peers: &mut Peers, now: Instant) {
        if self.intervals.next.is_none_or(|next| next > now) {
            return;
        }
        let mut all = std::mem::take(&mut self.intervals.asked);
        let mut next: Option<Instant> = None;
        for asked in &mut all {
            let Some(key) = self.by_source.get(&asked.source).copied() else {
                continue;
            };
            for encoding in 0..ENCODINGS as u8 {
                let Some(source) = self.sources.get(key.0) else {
                    break;
                };
                let is_wanted = source.is_wanted() && source.format.is_video;
                if encoding >= source.format.encodings {
                    break;
                }
                if asked.due(encoding, source).is_some_and(|due| due <= now) {
                    if let Some(last) = asked.last.get_mut(usize::from(encoding)) {
                        *last = now;
                    }
                    match asked.source {
                        _ if !is_wanted => {}
                        SourceRef::Ingest(_) => self.want_keyframe(key, encoding),
                        SourceRef::Track(track) => peers.ask(track, |peer, media| {
                            peer.request_keyframe_once(media, encoding, now);
                        }),
                    }
                }
                let due = self.sources.get(key.0);
                if let Some(due) = due.and_then(|source| asked.due(encoding, source)) {
                    next = Some(next.map_or(due, |next| next.min(due)));
                }
            }
        }
        self.intervals.asked = all;
        self.intervals.next = next.map(|next| next.max(now + LOOK));
    }
}
