//! Limits publishers of a single layer to what their viewers can take.

use std::time::Instant;

use portunus_graph::SourceKey;
use portunus_rtc::bandwidth::DataRate;
use smallvec::SmallVec;

use super::Graph;
use crate::command::{Command, SourceCommand};
use crate::worker::other_workers::OtherWorkers;
use crate::worker::peers::Peers;
use crate::{SourceRef, TrackRef};

/// One in this many viewers may take less than the publisher sends, so that the others do not
/// suffer.
const ONE_OF: usize = 10;
/// With more viewers, the publisher is not limited because of some of them.
pub(in crate::worker) const MANY: usize = 50;
/// A lower limit is passed on if it is at most this fraction of the last one.
const LOWER: f64 = 0.97;

impl Graph {
    /// Notes that the limit of a source may have changed on this worker.
    pub(in crate::worker) fn note_limited(&mut self, key: SourceKey) {
        if !self.limited.contains(&key) {
            self.limited.push(key);
        }
    }

    /// Updates the next noted limit. Returns whether there was one.
    pub(in crate::worker) fn update_next_limit(
        &mut self,
        peers: &mut Peers,
        others: &OtherWorkers,
        now: Instant,
    ) -> bool {
        let next = self.limited.pop();
        if let Some(key) = next {
            self.update_limit(key, peers, others, now);
        }
        next.is_some()
    }

    fn update_limit(
        &mut self,
        key: SourceKey,
        peers: &mut Peers,
        others: &OtherWorkers,
        now: Instant,
    ) {
        let Some(source) = self.sources.get(key.0) else {
            return;
        };
        let SourceRef::Track(_) = source.is else {
            return;
        };
        let (is, before) = (source.is, source.limit);
        let asks = source.format.encodings == 1 && source.routes.len() <= MANY;
        if !asks && before.is_none() {
            return;
        }
        let limit = if asks {
            let routes = source.routes.iter().filter_map(|s| self.routes.get(*s));
            let shares = routes.filter_map(|route| route.decision?.share);
            let mut shares: SmallVec<[DataRate; 16]> = shares.collect();
            shares.sort_unstable();
            shares.get(source.routes.len() / ONE_OF).copied()
        } else {
            None
        };
        let news = match (before, limit) {
            (Some(before), Some(limit)) => limit > before || limit < before.times(LOWER),
            (before, limit) => before != limit,
        };
        if !news {
            return;
        }
        if let Some(source) = self.sources.get_mut(key.0) {
            source.limit = limit;
        }
        let worker = self.worker;
        if is.worker() == worker {
            return self.take_limit(is, worker, limit, peers, now);
        }
        let source = is;
        others.send(
            is.worker(),
            Command::Source(source, SourceCommand::SetLimit { worker, limit }),
        );
    }

    /// Sets the limit for viewers on a worker, for a source of this worker.
    pub(in crate::worker) fn take_limit(
        &mut self,
        is: SourceRef,
        worker: u16,
        limit: Option<DataRate>,
        peers: &mut Peers,
        now: Instant,
    ) {
        let key = self.by_source.get(&is);
        let Some(source) = key.and_then(|key| self.sources.get_mut(key.0)) else {
            return;
        };
        source.limits.retain(|(of, _)| *of != worker);
        source.limits.extend(limit.map(|limit| (worker, limit)));
        if let SourceRef::Track(track) = is {
            self.limit_publisher(track, peers, now);
        }
    }

    /// Limits all video of a publisher. It gets one bitrate for all of it, so only if all relayed
    /// video is limited.
    fn limit_publisher(&self, track: TrackRef, peers: &mut Peers, now: Instant) {
        let Some((slot, peer)) = peers.find_mut(track.peer) else {
            return;
        };
        let sources = peer.tracks.iter().filter_map(|track| track.source);
        let sources = sources.filter_map(|key| self.sources.get(key.0));
        let relayed = sources.filter(|source| source.format.is_video && source.is_relayed());
        let limits = relayed.map(|source| source.limits.iter().map(|(_, limit)| *limit).min());
        let limit: Option<DataRate> = limits
            .collect::<Option<SmallVec<[DataRate; 4]>>>()
            .filter(|limits| !limits.is_empty())
            .map(|limits| limits.into_iter().sum());
        let limit = limit.map(DataRate::as_bps);
        peer.connection.limit_bitrate(limit, now);
        peers.touch(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_seen_to_once() {
        let (mut graph, key) = (Graph::new(0), SourceKey(7));
        for _ in 0..3 {
            graph.note_limited(key);
        }
        assert_eq!(graph.limited, [key]);
    }
}
