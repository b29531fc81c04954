//! Routes: added, attached to their sinks, changed and removed.

use std::time::Instant;

use portunus_graph::{Selector, SourceKey};
use smallvec::SmallVec;

use super::{Graph, MANY, Route, RouteEnds, RouteState};
use crate::command::{Command, SourceCommand};
use crate::worker::other_workers::OtherWorkers;
use crate::worker::peers::Peers;
use crate::{PeerId, RouteId};
use crate::{RouteOptions, SourceRef};

impl Graph {
    /// Restarts routes whose sinks take media again or were replaced, as pictures are missing.
    pub(in crate::worker) fn resume_routes(
        &mut self,
        slot: usize,
        resumed: &[usize],
        peers: &mut Peers,
    ) {
        for route in resumed {
            if let Some(peer) = peers.get_mut(slot) {
                peer.sending.forget_waiting(*route);
            }
            if let Some(route) = self.routes.get_mut(*route) {
                route.selector.restart();
                route.state = RouteState::New;
            }
        }
    }

    /// Adds a route. Returns its slot, or `None` if source or sink cannot exist.
    pub(in crate::worker) fn add_route(
        &mut self,
        id: RouteId,
        RouteEnds { from, to }: RouteEnds,
        options: RouteOptions,
        peers: &mut Peers,
        others: &OtherWorkers,
        now: Instant,
    ) -> Option<usize> {
        // A removed source must not be created again.
        let gone = from.worker() == self.worker && !self.is_here(from, peers);
        if gone || peers.slot(to.peer).is_none() {
            return None;
        }
        let source = self.source_of(from, peers);
        if from.worker() != self.worker {
            let worker = self.worker;
            others.send(
                from.worker(),
                Command::Source(from, SourceCommand::Subscribe { worker }),
            );
        }
        let slot = self.routes.insert(Route {
            id,
            from,
            to,
            wanted: options.clone(),
            options,
            decision: None,
            announced_pause: false,
            selector: Selector::default(),
            source,
            sink: None,
            clock_of: None,
            spared: None,
            state: RouteState::New,
        });
        self.by_route.insert(id, slot);
        if let Some(of) = self.sources.get_mut(source.0) {
            of.routes.push(slot);
            if of.routes.len() > MANY && of.limit.is_some() {
                self.note_limited(source);
            }
            self.note_demand(source);
        }
        if let Some(peer) = peers.slot(to.peer).and_then(|slot| peers.get_mut(slot)) {
            peer.routes.push(slot);
        }
        self.attach_route(slot, peers);
        if let Some(peer) = peers.slot(to.peer) {
            peers.adapt_soon(peer, now);
        }
        Some(slot)
    }

    /// Attaches the routes to a peer to the sinks that exist by now.
    pub(in crate::worker) fn attach_routes(&mut self, id: PeerId, peers: &mut Peers) {
        let peer = peers.slot(id).and_then(|slot| peers.get(slot));
        let routes: SmallVec<[usize; 4]> = peer.map(|p| p.routes.clone()).unwrap_or_default();
        for route in routes {
            self.attach_route(route, peers);
        }
    }

    /// Attaches a route to its sink, if that exists. Of several routes to one sink, the newest
    /// feeds it.
    fn attach_route(&mut self, slot: usize, peers: &mut Peers) {
        let Some(route) = self.routes.get(slot) else {
            return;
        };
        let (id, to) = (route.id, route.to);
        let Some(of) = peers.slot(to.peer) else {
            return;
        };
        let Some(peer) = peers.get_mut(of) else {
            return;
        };
        let mut media = peer.connection.media().iter();
        let index = media.position(|media| media.mid == to.mid);
        let track = index.and_then(|index| peer.tracks.get_mut(index));
        let mut follows = false;
        if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
            let fed = sink.route.and_then(|other| self.routes.get(other));
            if fed.is_none_or(|other| other.id <= id || other.to != to) {
                follows = sink.route.replace(slot) != Some(slot) && sink.numbering.has_begun();
                if follows && route.state != RouteState::New {
                    sink.numbering.forget(route.source);
                }
            }
        }
        if let Some(route) = self.routes.get_mut(slot) {
            route.sink = index.map(|index| (of, index));
            if follows {
                route.selector.await_keyframe();
                route.state = RouteState::New;
            }
        }
    }

    /// Changes the options of a route. Returns whether this has opened its gate.
    pub(in crate::worker) fn set_route(
        &mut self,
        slot: usize,
        options: RouteOptions,
        peers: &mut Peers,
        now: Instant,
    ) -> bool {
        if let Some(source) = self.routes.get(slot).map(|route| route.source) {
            self.note_demand(source);
        }
        let Some(route) = self.routes.get_mut(slot) else {
            return false;
        };
        let before = route.wanted.enabled;
        route.options = options;
        let wanted = route.bounded();
        let opened = wanted.enabled && !before;
        if route.wanted != wanted {
            route.wanted = wanted;
            route.selector.retarget();
        }

        if let Some(peer) = peers.slot(route.to.peer) {
            peers.adapt_soon(peer, now);
        }
        if opened {
            self.reopen_route(slot, peers);
        }
        opened
    }

    /// Has a route whose gate was closed start anew.
    pub(in crate::worker) fn reopen_route(&mut self, slot: usize, peers: &mut Peers) {
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        route.selector.restart();
        route.state = RouteState::New;
        let (source, sink) = (route.source, route.sink);
        let sink = sink.and_then(|(peer, index)| {
            let peer = peers.get_mut(peer)?;
            peer.sending.forget_waiting(slot);
            peer.tracks.get_mut(index)?.sink.as_mut()
        });
        // What was not relayed meanwhile leaves no gap.
        if let Some(sink) = sink {
            sink.numbering.forget(source);
        }
    }

    /// Continues a route from another audio source of this worker.
    pub(in crate::worker) fn redirect_route(
        &mut self,
        slot: usize,
        from: SourceRef,
        peers: &mut Peers,
        others: &OtherWorkers,
    ) {
        let (Some(key), Some(route)) = (self.key(from), self.routes.get_mut(slot)) else {
            return;
        };
        if route.source == key {
            return;
        }
        let before = (route.source, route.from);
        (route.source, route.from) = (key, from);
        route.clock_of = None;
        if let Some((peer, index)) = route.sink
            && let Some(peer) = peers.get_mut(peer)
        {
            peer.sending.forget_waiting(slot);
            let track = peer.tracks.get_mut(index);
            if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
                // The key may be used for another source.
                sink.numbering.forget(before.0);
            }
        }
        if let Some(source) = self.sources.get_mut(key.0) {
            source.routes.push(slot);
            self.note_demand(key);
        }
        self.leave_source(slot, before, others);
    }

    /// Removes a route from a source.
    fn leave_source(
        &mut self,
        slot: usize,
        (key, from): (SourceKey, SourceRef),
        others: &OtherWorkers,
    ) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        source.routes.retain(|other| *other != slot);
        let are_many = source.routes.len() == MANY;
        if !source.is_relayed() {
            source.forget();
        }
        let unused = source.routes.is_empty() && source.legs.is_empty();
        if are_many {
            self.note_limited(key);
        }
        self.note_demand(key);
        if from.worker() != self.worker {
            let worker = self.worker;
            others.send(
                from.worker(),
                Command::Source(from, SourceCommand::Unsubscribe { worker }),
            );
            if unused {
                self.by_source.remove(&from);
                self.sources.try_remove(key.0);
            }
        }
    }

    /// Adds a leg to a source. Returns the key of the source, or `None` if it cannot exist.
    pub(in crate::worker) fn join_leg(
        &mut self,
        from: SourceRef,
        leg: usize,
        peers: &mut Peers,
        others: &OtherWorkers,
    ) -> Option<SourceKey> {
        let is_own = from.worker() == self.worker;
        if is_own && !self.is_here(from, peers) {
            return None;
        }
        let key = self.source_of(from, peers);
        if !is_own {
            let worker = self.worker;
            others.send(
                from.worker(),
                Command::Source(from, SourceCommand::Subscribe { worker }),
            );
        }
        self.sources.get_mut(key.0)?.legs.push(leg);
        self.note_demand(key);
        Some(key)
    }

    /// Removes a leg from a source.
    pub(in crate::worker) fn leave_leg(
        &mut self,
        leg: usize,
        (key, from): (SourceKey, SourceRef),
        others: &OtherWorkers,
    ) {
        let Some(source) = self.sources.get_mut(key.0) else {
            return;
        };
        // It may be listed twice: for what it sends, and for keys.
        if let Some(place) = source.legs.iter().position(|other| *other == leg) {
            source.legs.remove(place);
        }
        if !source.is_relayed() {
            source.forget();
        }
        let unused = source.routes.is_empty() && source.legs.is_empty();
        self.note_demand(key);
        if from.worker() != self.worker {
            let worker = self.worker;
            others.send(
                from.worker(),
                Command::Source(from, SourceCommand::Unsubscribe { worker }),
            );
            if unused {
                self.by_source.remove(&from);
                self.sources.try_remove(key.0);
            }
        }
    }

    /// Removes a route. Returns whether it existed.
    pub(in crate::worker) fn remove_route(
        &mut self,
        id: RouteId,
        peers: &mut Peers,
        others: &OtherWorkers,
        now: Instant,
    ) -> bool {
        let Some(slot) = self.by_route.remove(&id) else {
            return false;
        };
        let Some(route) = self.routes.try_remove(slot) else {
            return true;
        };
        if route
            .decision
            .is_some_and(|decision| decision.share.is_some())
        {
            self.note_limited(route.source);
        }
        let peer = peers.slot(route.to.peer);
        if let Some(peer) = peer.and_then(|peer| peers.get_mut(peer)) {
            peer.routes.retain(|other| *other != slot);
            // The slot may be used for another route.
            peer.sending.forget_waiting(slot);
        }
        if let Some((peer, index)) = route.sink
            && let Some(track) = peers
                .get_mut(peer)
                .and_then(|peer| peer.tracks.get_mut(index))
            && let Some(sink) = &mut track.sink
        {
            sink.numbering.forget(route.source);
            if sink.route == Some(slot) {
                sink.route = None;
            }
        }
        if let (Some(label), Some((peer, _))) = (&route.options.label, route.sink) {
            peers.close_channel(peer, label, now);
        }
        self.leave_source(slot, (route.source, route.from), others);
        true
    }
}
