//! The media graph of a worker: its sources and routes, what of them is new in a turn, and what is to be asked of whom.

mod intervals;
mod limits;
mod route;
mod routes;
mod sources;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::slots::Slots;
use crate::graph::{Source, SourceKey};
use crate::plane::RouteId;
use crate::{MediaSettings, SourceRef};

use intervals::Intervals;
pub(super) use limits::MANY;
pub(super) use route::{Route, RouteState};
pub(super) use turn::Ready;

/// The sources and routes of a worker. What holds:
///
/// - A source has one key for as long as it is there, and is found by what it is all the time. One of another worker is there
///   for as long as there are routes from it.
/// - A route has one slot for as long as it is there. It is among the routes of its source, and of its sink's peer.
/// - Sources with packets that are not yet relayed are in [`Graph::take_fresh`], each once.
/// - A keyframe that is needed is in the queue once, until it is asked for ([`Graph::next_keyframe`]).
pub(super) struct Graph {
    /// The number of the worker.
    worker: u16,
    sources: Slots<Source>,
    by_source: HashMap<SourceRef, SourceKey>,
    routes: Slots<Route>,
    by_route: HashMap<RouteId, usize>,
    /// Sources with packets of this turn.
    fresh: Vec<SourceKey>,
    /// Those of them that are relayed now; kept for the next time.
    ready: Vec<Ready>,
    /// Sources of which some viewer can take more or less than before.
    limited: Vec<SourceKey>,
    /// Sources and their encodings of which a keyframe is needed.
    keyframes: VecDeque<(SourceKey, u8)>,
    intervals: Intervals,
    /// What the histories of sources span.
    nack_queue: Duration,
    /// What came before the last keyframe is not sent again.
    pub(in crate::worker) nack_optimizations: bool,
}

impl Graph {
    /// That of the worker with this number.
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
            keyframes: VecDeque::new(),
            intervals: Intervals::default(),
            nack_queue: MediaSettings::NACK_QUEUE,
            nack_optimizations: false,
        }
    }

    /// The key of a source, if it is there.
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

    /// The slot of a route, if it is there.
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

    /// The place of a route, of which nothing is read.
    #[inline]
    pub(super) fn route_place(&self, slot: usize) -> Option<&Option<Route>> {
        self.routes.place(slot)
    }

    /// A route to relay to, and the source that packets come from.
    #[inline]
    pub(super) fn relayed(&mut self, slot: usize, key: SourceKey) -> Option<(&mut Route, &Source)> {
        Some((self.routes.get_mut(slot)?, self.sources.get(key.0)?))
    }

    /// Somebody needs a keyframe of a source's encoding.
    pub(super) fn want_keyframe(&mut self, key: SourceKey, encoding: u8) {
        if let Some(source) = self.sources.get_mut(key.0)
            && source.format.is_video
            && source.keyframes.want(encoding)
        {
            self.keyframes.push_back((key, encoding));
        }
    }

    /// Somebody needs keyframes of whatever a source has.
    pub(super) fn want_keyframes(&mut self, key: SourceKey) {
        let encodings = self.source(key).map_or(0, |source| source.format.encodings);
        for encoding in 0..encodings {
            self.want_keyframe(key, encoding);
        }
    }

    /// A source and its encoding of which a keyframe is to be asked for.
    pub(super) fn next_keyframe(&mut self) -> Option<(SourceKey, u8)> {
        while let Some((key, encoding)) = self.keyframes.pop_front() {
            // The source may be another one by now.
            let source = self.sources.get_mut(key.0);
            if source.is_some_and(|source| source.keyframes.take(encoding)) {
                return Some((key, encoding));
            }
        }
        None
    }

    /// How many sources and routes there are.
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
