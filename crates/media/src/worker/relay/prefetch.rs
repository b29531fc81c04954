//! Prefetching: a sink's state and key are not in the cache when its turn comes.
//!
//! It is some two dozen cache lines on half a dozen pages, found by a chain of three pointers. They
//! are prefetched in steps, each some sinks earlier than the next. When a step follows a pointer,
//! the cache line with it has arrived. No step reads what it prefetches.

use portunus_srtp::fetch_head;

use super::Relaying;
use crate::worker::graph::Route;
use crate::worker::peers::Peer;

/// The number of sinks between two steps for the same sink.
const APART: usize = 4;

/// What is prefetched of a sink, in order. Each step follows pointers that earlier steps have
/// prefetched.
#[derive(Clone, Copy)]
enum Step {
    Route,
    Peer,
    Stream,
    Key,
}

/// The steps, and the number of sinks that each is ahead by.
const STEPS: [(Step, usize); 4] = [
    (Step::Route, 4 * APART),
    (Step::Peer, 3 * APART),
    (Step::Stream, 2 * APART),
    (Step::Key, APART),
];

impl Relaying<'_> {
    /// Prefetches for the routes that follow soon. To be called before relaying to `routes[index]`.
    pub(super) fn fetch_ahead(&self, routes: &[usize], index: usize) {
        if routes.len() < 2 {
            return;
        }
        for (step, ahead) in STEPS {
            let last = index + ahead;
            // Nothing was prefetched yet for the first routes.
            let first = if index == 0 { 0 } else { last };
            let upcoming = routes.get(first..routes.len().min(last + 1));
            for slot in upcoming.unwrap_or_default() {
                self.fetch_step(step, *slot);
            }
        }
    }

    #[inline]
    fn fetch_step(&self, step: Step, slot: usize) {
        if let Step::Route = step {
            if let Some(place) = self.graph.route_place(slot) {
                fetch_head(place, Route::HEAD);
            }
            return;
        }
        let route = self.graph.route(slot).filter(|route| route.wanted.enabled);
        let Some((slot, media)) = route.and_then(|route| route.sink) else {
            return;
        };
        if let Step::Peer = step {
            if let Some(place) = self.peers.place(slot) {
                fetch_head(place, Peer::HEAD);
            }
            return;
        }
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        match step {
            Step::Stream => peer.fetch_stream(media),
            Step::Route | Step::Peer | Step::Key => peer.connection.fetch_key(),
        }
    }
}
