//! The fresh packets of a turn, and the order in which they are relayed.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use super::Graph;
use portunus_graph::{Packet, Source, SourceKey};

use crate::worker::counters::Counters;
use crate::worker::other_workers::OtherWorkers;

/// A source that is relayed in this turn, in the order of relaying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) struct Ready {
    /// The slot of the first peer that it goes to. Sources with the same one are relayed together.
    first: Option<usize>,
    /// The serial of the peer that sends it, or 0.
    publisher: u64,
    /// Long packets come first.
    is_audio: bool,
    pub(in crate::worker) key: SourceKey,
}

impl Ready {
    /// Whether both sources probably go to the same peers.
    pub(in crate::worker) fn has_audience_of(&self, other: &Self) -> bool {
        self.first.is_some() && self.first == other.first
    }
}

impl Graph {
    /// Pushes packets to a source, to be relayed at the end of the turn.
    #[inline]
    pub(in crate::worker) fn take_in<T>(
        &mut self,
        key: SourceKey,
        take: impl FnOnce(&mut Source) -> T,
    ) -> Option<T> {
        let source = self.sources.get_mut(key.0)?;
        let taken = take(source);
        if !source.fresh.is_empty() && !mem::replace(&mut source.is_listed, true) {
            self.fresh.push(key);
        }
        Some(taken)
    }

    /// Takes the sources with fresh packets. Those that are held go back by [`Graph::hold`].
    pub(in crate::worker) fn take_fresh(&mut self) -> Vec<SourceKey> {
        mem::take(&mut self.fresh)
    }

    /// Puts back sources whose packets are held.
    pub(in crate::worker) fn hold(&mut self, fresh: Vec<SourceKey>) {
        self.fresh = fresh;
    }

    /// Whether the packets of a source should wait for the rest of their frame.
    pub(in crate::worker) fn holds_back(&self, key: SourceKey, now: Instant) -> bool {
        let source = self.sources.get(key.0);
        source.is_some_and(|source| source.holds_back(now))
    }

    /// Passes the packets of a source to other workers, once to each.
    pub(in crate::worker) fn pass_on(
        &self,
        key: SourceKey,
        others: &mut OtherWorkers,
        counters: &mut Counters,
    ) {
        let Some(source) = self.sources.get(key.0) else {
            return;
        };
        for (worker, _) in &source.watchers {
            others.pass(*worker, source.is, &source.fresh, counters);
        }
    }

    /// Queues a source to be relayed.
    pub(in crate::worker) fn make_ready(&mut self, key: SourceKey) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        source.is_listed = false;
        let route = source
            .routes
            .first()
            .and_then(|slot| self.routes.get(*slot));
        let first = route.and_then(|route| route.sink).map(|(peer, _)| peer);
        self.ready.push(Ready {
            first: first.filter(|_| source.format.messages.is_none()),
            publisher: source.is.track().map_or(0, |track| track.peer.serial),
            is_audio: !source.format.is_video,
            key,
        });
    }

    /// Takes the sources to relay, in order. Their memory goes back by [`Graph::relayed_all`].
    pub(in crate::worker) fn take_ready(&mut self) -> Vec<Ready> {
        let mut ready = mem::take(&mut self.ready);
        if ready.len() > 1 {
            ready.sort_unstable();
        }
        ready
    }

    /// Gives the memory back.
    pub(in crate::worker) fn relayed_all(&mut self, mut ready: Vec<Ready>) {
        ready.clear();
        self.ready = ready;
    }

    /// Takes the fresh packets of a source. Their memory goes back after relaying.
    #[inline]
    pub(in crate::worker) fn take_packets(&mut self, key: SourceKey) -> Vec<Arc<Packet>> {
        let source = self.sources.get_mut(key.0);
        source.map_or_else(Vec::new, |source| mem::take(&mut source.fresh))
    }

    /// Gives the memory back after relaying.
    #[inline]
    pub(in crate::worker) fn relayed_packets(
        &mut self,
        key: SourceKey,
        mut packets: Vec<Arc<Packet>>,
    ) {
        packets.clear();
        self.return_packets(key, packets);
    }

    /// Puts back packets that are not relayed yet.
    pub(in crate::worker) fn return_packets(&mut self, key: SourceKey, packets: Vec<Arc<Packet>>) {
        if let Some(source) = self.sources.get_mut(key.0) {
            source.fresh = packets;
        }
    }
}
