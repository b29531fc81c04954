//! Sources: their state, who relays them, and their end.

use std::time::{Duration, Instant};

use portunus_rtc::streams::SenderClock;
use smallvec::SmallVec;

use super::Worker;
use super::peers::Peer;
use crate::command::Command;
use crate::graph::{Messages, Source, SourceFormat, SourceKey};
use crate::{KeyframeCache, SourceRef};

/// What a source's history spans; that of another worker's source is shorter, so that the owner can
/// use its buffers again.
const HISTORY: Duration = Duration::from_millis(1_000);
const HISTORY_ELSEWHERE: Duration = Duration::from_millis(600);

impl Worker {
    /// The state of a source; made if there is none yet.
    pub(super) fn source_of(&mut self, is: SourceRef) -> SourceKey {
        if let Some(key) = self.by_source.get(&is) {
            return *key;
        }
        let here = is.worker() == self.others.index();
        let window = if here { HISTORY } else { HISTORY_ELSEWHERE };
        let mut source = Source::new(is, window);
        if is
            .track()
            .is_some_and(|track| self.peers.brings_messages(track))
        {
            source.format.messages = Some(Messages::OF_PEERS);
        }
        let key = SourceKey(self.sources.insert(source));
        self.by_source.insert(is, key);
        if let Some(peer) = self.peer_of(is) {
            peer.sources.push(key);
        }
        key
    }

    /// The peer of this worker whose source it is.
    fn peer_of(&mut self, is: SourceRef) -> Option<&mut Peer> {
        let slot = self.peers.slot(is.track()?.peer)?;
        self.peers.get_mut(slot)
    }

    /// Whether a source lives on this worker, or can come into being here.
    pub(super) fn is_here(&self, is: SourceRef) -> bool {
        match is {
            SourceRef::Track(track) => self.peers.slot(track.peer).is_some(),
            SourceRef::Ingest(_) => self.by_source.contains_key(&is),
        }
    }

    pub(super) fn subscribe(&mut self, from: SourceRef, worker: u16, now: Instant) {
        if !self.is_here(from) {
            self.others
                .send(worker, Command::SourceGone { source: from });
            return;
        }
        let key = self.source_of(from);
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        let watcher = source.watchers.iter_mut().find(|(w, _)| *w == worker);
        let is_new = watcher.is_none();
        match watcher {
            Some((_, routes)) => *routes += 1,
            None => source.watchers.push((worker, 1)),
        }
        let clocks = source.clocks;
        let format = source.format;
        self.others.send(
            worker,
            Command::SourceFormat {
                source: from,
                format,
            },
        );
        for (encoding, clock) in clocks.into_iter().enumerate() {
            if let Some(clock) = clock {
                let encoding = encoding as u8;
                let clock = Command::SourceClock {
                    source: from,
                    encoding,
                    clock,
                };
                self.others.send(worker, clock);
            }
        }
        if is_new {
            self.pass_cached(key, worker);
        }
        // The other worker could not ask: it learns only now that this is video.
        let source = self.sources.get(key.0);
        if !source.is_some_and(|source| source.has_picture(now)) {
            self.want_keyframes(key, now);
        }
    }

    /// Keeps keyframes of a source from now on, or no longer, here and where it is relayed to.
    pub(super) fn keep_keyframe(&mut self, is: SourceRef, keep: Option<KeyframeCache>) {
        if !self.is_here(is) {
            return;
        }
        let key = self.source_of(is);
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        let mut format = source.format;
        format.keep = keep;
        self.set_source_format(key, format);
    }

    /// What is kept of the pictures of a source goes on no longer, here and where it is relayed to. A message stays the last
    /// one.
    pub(super) fn drop_kept(&mut self, key: SourceKey) {
        let format = self.sources.get(key.0).map(|source| source.format);
        if let Some(format) = format.filter(|it| it.keep.is_some() && it.messages.is_none()) {
            let keep = None;
            self.set_source_format(key, SourceFormat { keep, ..format });
            self.set_source_format(key, format);
        }
    }

    /// Says what a source is like, here and where it is relayed to.
    pub(super) fn set_source_format(&mut self, key: SourceKey, format: SourceFormat) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        source.set_format(format);
        let is = source.is;
        let watchers: SmallVec<[u16; 4]> = source.watchers.iter().map(|(w, _)| *w).collect();
        for worker in watchers {
            self.others
                .send(worker, Command::SourceFormat { source: is, format });
        }
    }

    pub(super) fn unsubscribe(&mut self, from: SourceRef, worker: u16, now: Instant) {
        let Some(key) = self.by_source.get(&from).copied() else {
            return;
        };
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        if let Some((_, routes)) = source.watchers.iter_mut().find(|(w, _)| *w == worker) {
            *routes = routes.saturating_sub(1);
        }
        source.watchers.retain(|(_, routes)| *routes > 0);
        let is_gone = !source.watchers.iter().any(|(w, _)| *w == worker);
        if !source.is_relayed() {
            source.forget();
        }
        if is_gone {
            self.take_limit(from, worker, None, now);
        }
    }

    /// Keeps what a sender report says, here and where the source is relayed to.
    pub(super) fn set_source_clock(&mut self, key: SourceKey, encoding: u8, clock: SenderClock) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        if let Some(slot) = source.clocks.get_mut(usize::from(encoding)) {
            *slot = Some(clock);
        }
        for slot in &source.routes {
            if let Some(route) = self.routes.get_mut(*slot) {
                route.clock_of = None;
            }
        }
        let is = source.is;
        let watchers: SmallVec<[u16; 4]> =
            source.watchers.iter().map(|(worker, _)| *worker).collect();
        for worker in watchers {
            self.others.send(
                worker,
                Command::SourceClock {
                    source: is,
                    encoding,
                    clock,
                },
            );
        }
    }

    /// Ends a source and all its routes, here and on other workers.
    pub(super) fn end_source(&mut self, is: SourceRef, now: Instant) {
        let Some(key) = self.by_source.get(&is).copied() else {
            return;
        };
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        let watchers: Vec<u16> = source.watchers.iter().map(|(worker, _)| *worker).collect();
        // Taken out at once: each would be looked for among all others.
        let routes: Vec<_> = std::mem::take(&mut source.routes)
            .into_iter()
            .filter_map(|slot| Some(self.routes.get(slot)?.id))
            .collect();
        for worker in watchers {
            self.others.send(worker, Command::SourceGone { source: is });
        }
        for route in routes {
            self.remove_route(route, now);
        }
        self.end_outlets(key);
        if let Some(peer) = self.peer_of(is) {
            peer.sources.retain(|known| *known != key);
        }
        self.intervals.forget(is);
        self.by_source.remove(&is);
        self.sources.try_remove(key.0);
    }
}
