//! Publishers of a single layer are asked for what their viewers can take.

use std::time::Instant;

use portunus_rtc::bandwidth::DataRate;
use smallvec::SmallVec;

use super::Worker;
use crate::command::Command;
use crate::graph::SourceKey;
use crate::{SourceRef, TrackRef};

/// Of so many viewers one may take less than the publisher sends: the others are not to suffer from it.
const ONE_OF: usize = 10;
/// With more viewers the publisher is not asked for less because of some of them.
pub(super) const MANY: usize = 50;
/// A lower limit is told if it is lower by this share.
const LOWER: f64 = 0.97;

/// Notes that what some viewer can take of a source changed.
pub(super) fn note_limited(limited: &mut Vec<SourceKey>, key: SourceKey) {
    if !limited.contains(&key) {
        limited.push(key);
    }
}

impl Worker {
    /// What some viewer on this worker can take of a source changed.
    pub(super) fn update_limit(&mut self, key: SourceKey, now: Instant) {
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
        let worker = self.others.index();
        if is.worker() == worker {
            return self.take_limit(is, worker, limit, now);
        }
        let source = is;
        self.others.send(
            is.worker(),
            Command::SourceLimit {
                source,
                worker,
                limit,
            },
        );
    }

    /// What the viewers on a worker can take of a source that lives here.
    pub(super) fn take_limit(
        &mut self,
        is: SourceRef,
        worker: u16,
        limit: Option<DataRate>,
        now: Instant,
    ) {
        let key = self.by_source.get(&is);
        let Some(source) = key.and_then(|key| self.sources.get_mut(key.0)) else {
            return;
        };
        source.limits.retain(|(of, _)| *of != worker);
        source.limits.extend(limit.map(|limit| (worker, limit)));
        if let SourceRef::Track(track) = is {
            self.limit_publisher(track, now);
        }
    }

    /// A publisher is told one bitrate for all its video, so it is told none unless all of it that is
    /// relayed is to be less.
    fn limit_publisher(&mut self, track: TrackRef, now: Instant) {
        let slot = self.peers.slot(track.peer);
        let Some((slot, peer)) = slot.and_then(|slot| Some((slot, self.peers.get_mut(slot)?)))
        else {
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
        self.peers.touch(slot);
    }
}
