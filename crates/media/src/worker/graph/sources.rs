//! Sources: created, subscribed to, changed and removed.

use std::time::{Duration, Instant};

use portunus_graph::{Messages, SOUND_WINDOW, Source, SourceFormat, SourceKey};
use portunus_rtc::streams::SenderClock;
use portunus_sdp::negotiated::Kind;
use smallvec::SmallVec;

use super::Graph;
use crate::RouteId;
use crate::command::{Command, SourceCommand};
use crate::worker::counters::Counters;
use crate::worker::other_workers::OtherWorkers;
use crate::worker::peers::Peers;
use crate::{KeyframeCache, SourceRef, TrackRef};

/// The span of histories for sources of other workers, as a fraction. It is shorter, so that the
/// owner can reuse its buffers.
const ELSEWHERE: (u32, u32) = (3, 5);

impl Graph {
    /// Returns the key of a source, and creates the source if necessary.
    pub(in crate::worker) fn source_of(&mut self, is: SourceRef, peers: &mut Peers) -> SourceKey {
        if let Some(key) = self.by_source.get(&is) {
            return *key;
        }
        let mut source = Source::new(is, self.window_of(is));
        if is.track().is_some_and(|track| peers.brings_messages(track)) {
            source.format.messages = Some(Messages::OF_PEERS);
        }
        let key = SourceKey(self.sources.insert(source));
        self.by_source.insert(is, key);
        if let Some((_, peer)) = is.track().and_then(|track| peers.find_mut(track.peer)) {
            peer.sources.push(key);
        }
        key
    }

    /// The minimum time for which packets of a kind can be retransmitted.
    pub(in crate::worker) fn nack_queue(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Audio => self.nack_queue.min(SOUND_WINDOW),
            Kind::Video | Kind::Data => self.nack_queue,
        }
    }

    /// Sets that time, for existing sources, too.
    pub(in crate::worker) fn set_nack_queue(&mut self, nack_queue: Duration) {
        self.nack_queue = nack_queue;
        let sources: SmallVec<[SourceKey; 16]> = self.by_source.values().copied().collect();
        for key in sources {
            let window = self.source(key).map(|source| self.window_of(source.is));
            if let (Some(source), Some(window)) = (self.source_mut(key), window) {
                source.set_window(window);
            }
        }
    }

    fn window_of(&self, is: SourceRef) -> Duration {
        let (times, parts) = ELSEWHERE;
        match is.worker() == self.worker {
            true => self.nack_queue,
            false => self.nack_queue * times / parts,
        }
    }

    /// Whether a source of this worker exists or can be created.
    pub(in crate::worker) fn is_here(&self, is: SourceRef, peers: &Peers) -> bool {
        match is {
            SourceRef::Track(track) => peers.slot(track.peer).is_some(),
            SourceRef::Ingest(_) => self.by_source.contains_key(&is),
        }
    }

    /// Adds a route of another worker to a source of this one.
    pub(in crate::worker) fn subscribe(
        &mut self,
        from: SourceRef,
        worker: u16,
        peers: &mut Peers,
        (others, counters): (&mut OtherWorkers, &mut Counters),
        now: Instant,
    ) {
        if !self.is_here(from, peers) {
            others.send(worker, Command::Source(from, SourceCommand::End));
            return;
        }
        let key = self.source_of(from, peers);
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
        others.send(
            worker,
            Command::Source(from, SourceCommand::SetFormat(format)),
        );
        for (encoding, clock) in clocks.into_iter().enumerate() {
            if let Some(clock) = clock {
                let encoding = encoding as u8;
                let clock = Command::Source(from, SourceCommand::SetClock { encoding, clock });
                others.send(worker, clock);
            }
        }
        if is_new {
            self.pass_cached(key, worker, others, counters);
        }
        // The other worker could not request one: it learns only now that this is video.
        let source = self.sources.get(key.0);
        if !source.is_some_and(|source| source.has_picture(now)) {
            self.want_keyframes(key);
        }
    }

    /// Sets how much is kept for new sinks, here and on other workers.
    pub(in crate::worker) fn keep_keyframe(
        &mut self,
        is: SourceRef,
        keep: Option<KeyframeCache>,
        peers: &mut Peers,
        others: &OtherWorkers,
    ) {
        if !self.is_here(is, peers) {
            return;
        }
        let key = self.source_of(is, peers);
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        let mut format = source.format;
        format.keep = keep;
        self.set_format(key, format, others);
    }

    /// Drops the kept pictures of a source, here and on other workers. A kept message stays.
    pub(in crate::worker) fn drop_kept(&mut self, key: SourceKey, others: &OtherWorkers) {
        let format = self.sources.get(key.0).map(|source| source.format);
        if let Some(format) = format.filter(|it| it.keep.is_some() && it.messages.is_none()) {
            let keep = None;
            self.set_format(key, SourceFormat { keep, ..format }, others);
            self.set_format(key, format, others);
        }
    }

    /// Sets the format of a source, here and on other workers.
    pub(in crate::worker) fn set_format(
        &mut self,
        key: SourceKey,
        format: SourceFormat,
        others: &OtherWorkers,
    ) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        source.set_format(format);
        let is = source.is;
        let watchers: SmallVec<[u16; 4]> = source.watchers.iter().map(|(w, _)| *w).collect();
        for worker in watchers {
            others.send(
                worker,
                Command::Source(is, SourceCommand::SetFormat(format)),
            );
        }
    }

    /// Removes a route of another worker from a source of this one.
    pub(in crate::worker) fn unsubscribe(
        &mut self,
        from: SourceRef,
        worker: u16,
        peers: &mut Peers,
        now: Instant,
    ) {
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
            source.demands.retain(|(of, _)| *of != worker);
            self.note_demand(key);
            self.take_limit(from, worker, None, peers, now);
        }
    }

    /// Sets the clock of an encoding, here and on other workers.
    pub(in crate::worker) fn set_clock(
        &mut self,
        key: SourceKey,
        encoding: u8,
        clock: SenderClock,
        others: &OtherWorkers,
    ) {
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
            others.send(
                worker,
                Command::Source(is, SourceCommand::SetClock { encoding, clock }),
            );
        }
    }

    /// Sets the format of a peer's data channels, if they are in use as a source. Routes may have
    /// been added before.
    pub(in crate::worker) fn note_messages(&mut self, track: TrackRef, others: &OtherWorkers) {
        if let Some(key) = self.key(SourceRef::Track(track))
            && let Some(source) = self.sources.get(key.0)
        {
            let messages = Some(Messages::OF_PEERS);
            let format = SourceFormat {
                messages,
                ..source.format
            };
            self.set_format(key, format, others);
        }
    }

    /// Sets the format of a source of another worker, if there still is a route from it.
    pub(in crate::worker) fn take_format(&mut self, is: SourceRef, format: SourceFormat) {
        let key = self.key(is);
        let Some(key) = key else { return };
        if let Some(source) = self.sources.get_mut(key.0) {
            source.set_format(format);
            self.note_demand(key);
        }
    }

    /// Passes the kept packets to a worker that is new to the source.
    fn pass_cached(
        &self,
        key: SourceKey,
        worker: u16,
        others: &mut OtherWorkers,
        counters: &mut Counters,
    ) {
        let Some(source) = self.sources.get(key.0) else {
            return;
        };
        if !source.cached().is_empty() {
            let cached = source.cached_before_fresh();
            others.pass(worker, source.is, cached, counters);
        }
    }

    /// Takes the workers and routes that a source feeds. It forgets them first, as removing them
    /// one by one is slow.
    pub(in crate::worker) fn take_audience(&mut self, key: SourceKey) -> (Vec<u16>, Vec<RouteId>) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return (Vec::new(), Vec::new());
        };
        let watchers = source.watchers.iter().map(|(worker, _)| *worker).collect();
        let routes = std::mem::take(&mut source.routes).into_iter();
        let ids = routes.filter_map(|slot| Some(self.routes.get(slot)?.id));
        (watchers, ids.collect())
    }

    /// Removes a source.
    pub(in crate::worker) fn remove_source(&mut self, is: SourceRef, peers: &mut Peers) {
        let Some(key) = self.by_source.remove(&is) else {
            return;
        };
        if let Some((_, peer)) = is.track().and_then(|track| peers.find_mut(track.peer)) {
            peer.sources.retain(|known| *known != key);
        }
        self.intervals.forget(is);
        if self
            .sources
            .try_remove(key.0)
            .is_some_and(|it| it.is_listed)
        {
            // The key may be used for another source.
            self.fresh.retain(|listed| *listed != key);
        }
    }
}
