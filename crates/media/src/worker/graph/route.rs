//! A route as its sink's worker has it.

use std::mem;

use portunus_rtc::bandwidth::Decision;

use crate::graph::{Selector, SourceKey};
use crate::plane::RouteId;
use crate::{RouteOptions, SourceRef, TrackRef};

/// A route; it lives on its sink's worker. What each packet needs stands first and begins with a cache line.
#[repr(C, align(64))]
pub(in crate::worker) struct Route {
    /// Slot of the peer and index of its m-line, once both are there.
    pub(in crate::worker) sink: Option<(usize, usize)>,
    pub(in crate::worker) id: RouteId,
    /// How far it is.
    pub(in crate::worker) state: RouteState,
    /// The numbering that the sink's sender reports stand for.
    pub(in crate::worker) clock_of: Option<(u8, u32)>,
    pub(in crate::worker) selector: Selector,
    /// What the client asks for, as far as the link carries it.
    pub(in crate::worker) wanted: RouteOptions,
    pub(in crate::worker) source: SourceKey,
    /// The last frame, by encoding and timestamp, that was left out because too many packets waited.
    pub(in crate::worker) spared: Option<(u8, u32)>,
    /// What the client asks for.
    pub(in crate::worker) options: RouteOptions,
    /// What was decided for the link.
    pub(in crate::worker) decision: Option<Decision>,
    pub(in crate::worker) from: SourceRef,
    pub(in crate::worker) to: TrackRef,
}

/// How far a route is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum RouteState {
    /// It has not relayed anything.
    New,
    /// Its place in what the source keeps is that of its peer's `CatchUp`.
    CatchingUp,
    /// It relays what comes.
    Live,
}

impl Route {
    /// Bytes at its start that relaying reads.
    pub(in crate::worker) const HEAD: usize = mem::offset_of!(Self, decision);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache line more is a miss more for each sink of each packet, and what is fetched ahead is the start of the place.
    #[test]
    fn what_relaying_reads_takes_few_cache_lines() {
        assert_eq!(Route::HEAD.div_ceil(64), 5);
        assert_eq!(size_of::<Option<Route>>(), size_of::<Route>());
    }
}
