//! A source: one track with all its encodings, and who relays it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::streams::SenderClock;
use portunus_rtp::SeqNo;

use super::selector::ENCODINGS;
use super::{History, Packet};
use crate::TrackRef;

/// Index of a source in its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct SourceKey(pub(crate) usize);

/// What a source is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceFormat {
    pub(crate) is_video: bool,
    /// RTP clock in Hz.
    pub(crate) clock_rate: u32,
    /// Encodings that the source may have: 1 without simulcast.
    pub(crate) encodings: u8,
}

/// A source as one worker has it: the peer lives here, or another worker passes its packets on.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) track: TrackRef,
    pub(crate) format: SourceFormat,
    histories: [History; ENCODINGS],
    /// Packets of this turn, not yet relayed.
    pub(crate) fresh: Vec<Arc<Packet>>,
    /// Slots of the routes on this worker.
    pub(crate) routes: Vec<usize>,
    /// Other workers that relay it, with the number of their routes.
    pub(crate) watchers: Vec<(u16, usize)>,
    pub(crate) clocks: [Option<SenderClock>; ENCODINGS],
    pub(crate) keyframes: KeyframeRequests,
}

impl Source {
    /// A source whose histories span `window`.
    pub(crate) fn new(track: TrackRef, window: Duration) -> Self {
        Self {
            track,
            format: SourceFormat {
                is_video: false,
                clock_rate: 90_000,
                encodings: 1,
            },
            histories: [
                History::new(window),
                History::new(window),
                History::new(window),
            ],
            fresh: Vec::new(),
            routes: Vec::new(),
            watchers: Vec::new(),
            clocks: [None; ENCODINGS],
            keyframes: KeyframeRequests::default(),
        }
    }

    /// Whether anybody relays it.
    pub(crate) fn is_relayed(&self) -> bool {
        !self.routes.is_empty() || !self.watchers.is_empty()
    }

    /// The history of an encoding.
    pub(crate) fn history(&mut self, encoding: u8) -> Option<&mut History> {
        self.histories.get_mut(usize::from(encoding))
    }

    /// A packet that is still remembered.
    pub(crate) fn remembered(&self, encoding: u8, seq: SeqNo) -> Option<&Arc<Packet>> {
        self.histories.get(usize::from(encoding))?.get(seq)
    }

    /// Takes a packet: it is remembered, and relayed at the end of the turn.
    pub(crate) fn push(&mut self, packet: Arc<Packet>, now: Instant) {
        if let Some(history) = self.history(packet.encoding) {
            history.insert(Arc::clone(&packet), now);
        }
        self.fresh.push(packet);
    }

    /// Frees what is remembered.
    pub(crate) fn forget(&mut self) {
        self.histories.iter_mut().for_each(History::clear);
        self.fresh = Vec::new();
    }
}

/// Keyframe requests to a source: merged, and at most one in [`KeyframeRequests::SPACING`] an encoding.
#[derive(Debug, Default)]
pub(crate) struct KeyframeRequests {
    last: [Option<Instant>; ENCODINGS],
}

impl KeyframeRequests {
    const SPACING: Duration = Duration::from_millis(300);

    /// Somebody wants a keyframe; says whether it is to be asked for now.
    pub(crate) fn ask(&mut self, encoding: u8, now: Instant) -> bool {
        let Some(last) = self.last.get_mut(usize::from(encoding)) else {
            return false;
        };
        if last.is_some_and(|last| now.saturating_duration_since(last) < Self::SPACING) {
            return false;
        }
        *last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyframe_requests_are_merged() {
        let start = Instant::now();
        let mut requests = KeyframeRequests::default();
        assert!(requests.ask(0, start));
        assert!(!requests.ask(0, start + Duration::from_millis(299)));
        assert!(requests.ask(1, start));
        assert!(requests.ask(0, start + Duration::from_millis(300)));
        assert!(!requests.ask(9, start));
    }
}
