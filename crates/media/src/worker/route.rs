//! A route as its sink's worker has it.

use std::mem;

use portunus_rtc::bandwidth::Decision;

use super::relay::Progress;
use crate::graph::{Selector, SourceKey};
use crate::plane::RouteId;
use crate::{RouteOptions, SourceRef, TrackRef};

/// A route; it lives on its sink's worker. What each packet needs stands first and begins with a cache line.
#[repr(C, align(64))]
pub(super) struct Route {
    /// Slot of the peer and index of its m-line, once both are there.
    pub(super) sink: Option<(usize, usize)>,
    pub(super) id: RouteId,
    /// Whether it relays already.
    pub(super) progress: Progress,
    /// The numbering that the sink's sender reports stand for.
    pub(super) clock_of: Option<(u8, u32)>,
    pub(super) selector: Selector,
    /// What the client asks for, as far as the link carries it.
    pub(super) wanted: RouteOptions,
    pub(super) source: SourceKey,
    /// The last frame, by encoding and timestamp, that was left out because too many packets waited.
    pub(super) spared: Option<(u8, u32)>,
    /// What the client asks for.
    pub(super) options: RouteOptions,
    /// What was decided for the link.
    pub(super) decision: Option<Decision>,
    pub(super) from: SourceRef,
    pub(super) to: TrackRef,
}

impl Route {
    /// Bytes at its start that relaying reads.
    pub(super) const HEAD: usize = mem::offset_of!(Self, decision);
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
