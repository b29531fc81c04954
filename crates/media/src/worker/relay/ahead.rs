//! Fetching ahead: each sink's state is far from the cache when its turn comes, and so is its key.
//!
//! That is some two dozen lines of memory on half a dozen pages, found by three pointers that follow each other. So they
//! are asked for in steps, each some sinks earlier than the next: when a step follows a pointer, that has come while
//! other sinks were served. No step looks at what it asks for.

use portunus_srtp::fetch_head;

use super::Relaying;
use crate::worker::graph::Route;
use crate::worker::peers::Peer;

/// Sinks that are served between two steps for the same sink.
const APART: usize = 4;

/// What is asked for of a sink, in order: what a step follows is what the steps before asked for.
#[derive(Clone, Copy)]
enum Step {
    Route,
    Peer,
    Stream,
    Key,
}

/// Each with the number of sinks that it is ahead by.
const STEPS: [(Step, usize); 4] = [
    (Step::Route, 4 * APART),
    (Step::Peer, 3 * APART),
    (Step::Stream, 2 * APART),
    (Step::Key, APART),
];

impl Relaying<'_> {
    /// To be called before each of a source's `routes` is relayed to; `index` is that of the one that is next.
    /// Fetches what those a little further on need.
    pub(super) fn fetch_ahead(&self, routes: &[usize], index: usize) {
        if routes.len() < 2 {
            return;
        }
        for (step, ahead) in STEPS {
            let last = index + ahead;
            // Nobody came before the first ones.
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
        let route = self.graph.route(slot).filter(|route| route.options.enabled);
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
