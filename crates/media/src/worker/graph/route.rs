//! A route on its sink's worker.

use std::mem;

use portunus_graph::{Selector, SourceKey};
use portunus_rtc::bandwidth::{Decision, Reason};

use crate::RouteId;
use crate::{RouteOptions, SourceRef, TrackRef};

/// A route. It lives on its sink's worker. The fields that each packet needs come first, and start
/// with a cache line.
#[repr(C, align(64))]
pub(in crate::worker) struct Route {
    /// The slot of the peer and the index of its m-line, once both exist.
    pub(in crate::worker) sink: Option<(usize, usize)>,
    pub(in crate::worker) id: RouteId,
    /// Its state.
    pub(in crate::worker) state: RouteState,
    /// The encoding and timestamp offset of the sink's sender reports.
    pub(in crate::worker) clock_of: Option<(u8, u32)>,
    pub(in crate::worker) selector: Selector,
    /// What the client wants, limited to what the link carries.
    pub(in crate::worker) wanted: RouteOptions,
    pub(in crate::worker) source: SourceKey,
    /// The encoding and timestamp of the last frame that was dropped because too many packets
    /// waited.
    pub(in crate::worker) spared: Option<(u8, u32)>,
    /// What the client wants.
    pub(in crate::worker) options: RouteOptions,
    /// The last decision for the link.
    pub(in crate::worker) decision: Option<Decision>,
    /// Whether the last event said that the link has paused it.
    pub(in crate::worker) announced_pause: bool,
    pub(in crate::worker) from: SourceRef,
    pub(in crate::worker) to: TrackRef,
}

/// The two ends of a new route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct RouteEnds {
    pub(in crate::worker) from: SourceRef,
    pub(in crate::worker) to: TrackRef,
}

/// The state of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum RouteState {
    /// It has relayed nothing.
    New,
    /// It catches up. Its position is in its peer's `CatchUp`.
    CatchingUp,
    /// It relays what arrives.
    Live,
}

impl Route {
    /// The size of the part at the start that relaying reads.
    pub(in crate::worker) const HEAD: usize = mem::offset_of!(Self, decision);
}

impl Route {
    /// Returns whether the link has paused it.
    pub(in crate::worker) fn is_paused(&self) -> bool {
        let reason = self.decision.map(|decision| decision.reason);
        reason == Some(Reason::Paused)
    }

    /// Returns what the client wants, limited to what the link carries.
    pub(in crate::worker) fn bounded(&self) -> RouteOptions {
        let mut wanted = self.options.clone();
        wanted.enabled &= !self.is_paused();
        if let Some(target) = self.decision.and_then(|decision| decision.target) {
            wanted.substream = wanted.substream.min(target.encoding);
            wanted.spatial = wanted.spatial.min(target.spatial);
            wanted.temporal = wanted.temporal.min(target.temporal);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache line more is a miss more for each sink of each packet, and what is fetched ahead is
    /// the start of the place.
    #[test]
    fn what_relaying_reads_takes_few_cache_lines() {
        assert_eq!(Route::HEAD.div_ceil(64), 5);
        assert_eq!(size_of::<Option<Route>>(), size_of::<Route>());
    }
}
