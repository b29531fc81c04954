//! Fetching ahead: each sink's state is far from the cache when its turn comes, and so is its key.
//!
//! That is some twenty lines of memory, each found by the one before, at 0.1 us each. Those of several sinks are
//! asked for together, step by step, so that a step takes hardly longer for all than for one.

use portunus_srtp::fetch;
use smallvec::SmallVec;

use super::Worker;

/// Sinks that are fetched together: as many as a core has misses under way, or so.
const TOGETHER: usize = 8;

impl Worker {
    /// To be called before each of a source's `routes` is relayed to; `index` is that of the one that is next.
    /// Fetches what those a little further on need.
    pub(super) fn fetch_ahead(&self, routes: &[usize], index: usize) {
        if !index.is_multiple_of(TOGETHER) || routes.len() < 2 {
            return;
        }
        if index == 0 {
            self.fetch_sinks(routes.get(..TOGETHER.min(routes.len())));
        }
        let start = index + TOGETHER;
        self.fetch_sinks(routes.get(start..routes.len().min(start + TOGETHER)));
    }

    fn fetch_sinks(&self, routes: Option<&[usize]>) {
        let routes = routes.unwrap_or_default();
        for route in routes.iter().filter_map(|slot| self.routes.get(*slot)) {
            fetch(route);
        }
        let routes = routes.iter().filter_map(|slot| self.routes.get(*slot));
        let sinks = routes.filter_map(|route| {
            let (slot, media) = route.sink.filter(|_| route.options.enabled)?;
            Some((self.peers.get(slot)?, media))
        });
        let sinks: SmallVec<[_; TOGETHER]> = sinks.collect();
        for (peer, _) in &sinks {
            fetch(&peer.tracks);
            fetch(&peer.pacer);
            fetch(&peer.is_recorded);
            peer.connection.fetch();
        }
        for (peer, media) in &sinks {
            if let Some(track) = peer.tracks.get(*media) {
                fetch(&track.sink);
            }
            peer.connection.fetch_stream(*media);
        }
        for (peer, _) in &sinks {
            peer.connection.fetch_key();
        }
    }
}
