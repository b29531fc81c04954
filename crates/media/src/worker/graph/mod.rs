//! The media graph of a worker: its sources and routes, their fresh packets, and pending requests.

mod demands;
mod intervals;
mod limits;
mod route;
mod routes;
mod sources;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::slots::Slots;
use portunus_graph::{Source, SourceKey};

use crate::RouteId;
use crate::{MediaSettings, SourceRef};

use intervals::Intervals;
pub(super) use limits::MANY;
pub(super) use route::{Route, RouteEnds, RouteState};
pub(super) use turn::Ready;

/// The sources and routes of a worker. Invariants:
///
/// - A source keeps its key, and can be found by its id. A source of another worker exists as long
///   as there are routes from it.
/// - A route keeps its slot. It is listed by its source, and by its sink's peer.
/// - A source with packets that are not relayed yet is in [`Graph::take_fresh`] once.
/// - A needed keyframe is queued once, until it is requested ([`Graph::next_keyframe`]).
pub(super) struct Graph {
    /// The index of the worker.
    worker: u16,
    sources: Slots<Source>,
    by_source: HashMap<SourceRef, SourceKey>,
    routes: Slots<Route>,
    by_route: HashMap<RouteId, usize>,
    /// Sources with fresh packets.
    fresh: Vec<SourceKey>,
    /// The sources that are being relayed. Kept for its memory.
    ready: Vec<Ready>,
    /// Sources whose limits may have changed.
    limited: Vec<SourceKey>,
    /// Sources whose receivers may see more or less than before.
    demanded: Vec<SourceKey>,
    /// Sources and encodings of which a keyframe is needed.
    keyframes: VecDeque<(SourceKey, u8)>,
    intervals: Intervals,
    /// The time that histories span.
    nack_queue: Duration,
    /// Packets from before the last keyframe are not retransmitted.
    pub(in crate::worker) nack_optimizations: bool,
}

impl Graph {
    /// Returns the empty graph of a worker.
    pub(super) fn new(worker: u16) -> Self {
        Self {
            worker,
            sources: Slots::new(),
            by_source: HashMap::new(),
            routes: Slots::new(),
            by_route: HashMap::new(),
            fresh: Vec::new(),
            ready: Vec::new(),
            limited: Vec::new(),
            demanded: Vec::new(),
            keyframes: VecDeque::new(),
            intervals: Intervals::default(),
            nack_queue: MediaSettings::NACK_QUEUE,
            nack_optimizations: false,
        }
    }

    /// Returns the key of a source.
    pub(super) fn key(&self, is: SourceRef) -> Option<SourceKey> {
        self.by_source.get(&is).copied()
    }

    #[inline]
    pub(super) fn source(&self, key: SourceKey) -> Option<&Source> {
        self.sources.get(key.0)
    }

    #[inline]
    pub(super) fn source_mut(&mut self, key: SourceKey) -> Option<&mut Source> {
        self.sources.get_mut(key.0)
    }

    /// Returns the slot of a route.
    pub(super) fn slot(&self, route: RouteId) -> Option<usize> {
        self.by_route.get(&route).copied()
    }

    #[inline]
    pub(super) fn route(&self, slot: usize) -> Option<&Route> {
        self.routes.get(slot)
    }

    #[inline]
    pub(super) fn route_mut(&mut self, slot: usize) -> Option<&mut Route> {
        self.routes.get_mut(slot)
    }

    /// Returns the slot of a route without reading it.
    #[inline]
    pub(super) fn route_place(&self, slot: usize) -> Option<&Option<Route>> {
        self.routes.place(slot)
    }

    /// Returns a route to relay to, and the source of packets.
    #[inline]
    pub(super) fn relayed(&mut self, slot: usize, key: SourceKey) -> Option<(&mut Route, &Source)> {
        Some((self.routes.get_mut(slot)?, self.sources.get(key.0)?))
    }

    /// Requests a keyframe of an encoding of a source.
    pub(super) fn want_keyframe(&mut self, key: SourceKey, encoding: u8) {
        if let Some(source) = self.sources.get_mut(key.0)
            && source.format.is_video
            && source.keyframes.want(encoding)
        {
            self.keyframes.push_back((key, encoding));
        }
    }

    /// Requests keyframes of all encodings of a source.
    pub(super) fn want_keyframes(&mut self, key: SourceKey) {
        let encodings = self.source(key).map_or(0, |source| source.format.encodings);
        for encoding in 0..encodings {
            self.want_keyframe(key, encoding);
        }
    }

    /// Takes the next source and encoding of which a keyframe is needed.
    pub(super) fn next_keyframe(&mut self) -> Option<(SourceKey, u8)> {
        while let Some((key, encoding)) = self.keyframes.pop_front() {
            // The key may belong to another source by now.
            let source = self.sources.get_mut(key.0);
            if source.is_some_and(|source| source.keyframes.take(encoding)) {
                return Some((key, encoding));
            }
        }
        None
    }

    /// The number of sources and routes.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn len(&self) -> (usize, usize) {
        assert_eq!(self.sources.len(), self.by_source.len());
        assert_eq!(self.routes.len(), self.by_route.len());
        (self.sources.len(), self.routes.len())
    }

    /// All routes.
    #[cfg(all(test, feature = "testing"))]
    pub(super) fn routes_mut(&mut self) -> impl Iterator<Item = (usize, &mut Route)> {
        self.routes.iter_mut()
    }
}
