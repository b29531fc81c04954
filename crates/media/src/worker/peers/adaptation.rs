//! Bandwidth adaptation of a viewer: from what its link carries to the layers of its routes.

use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::{
    Allocator, DataRate, Decision, Estimate, Limit, Measure, Pacer, Target, Track, TrackKind,
};
use smallvec::SmallVec;

use super::{Peer, Peers};
use crate::graph::{Source, SourceKey};
use crate::worker::graph::{Graph, MANY, Route};
use crate::{RouteOptions, SourceRef};

/// The allocator decides anew so often, if nothing else makes it.
const INTERVAL: Duration = Duration::from_secs(1);
/// Whether there is something to adapt is looked at so often.
const LOOK: Duration = Duration::from_secs(2);
/// A peer that agreed to report, but did not so long after the first packets, is taken for one that
/// never will: what is unknown limits nothing.
const UNHEARD: Duration = Duration::from_secs(2);
/// A publisher is asked for a viewer's share if it is told no more than so many times that.
const ASKED: f64 = 1.1;
/// The pacer leaves so much room above what flows.
const ROOM: f64 = 1.25;
/// Who has yet to get what sources have kept could use so many times what flows.
const CATCHING_UP: f64 = 3.0;

/// What is adapted for a viewer that agreed to tell what its link carries.
pub(in crate::worker) struct Adaptation {
    allocator: Allocator,
    /// Something that is sent to it can be adapted.
    is_active: bool,
    /// The peer tells what its link carries.
    is_heard: bool,
    next: Instant,
    /// When the first packets were seen to have left whose arrival could be reported.
    sent_since: Option<Instant>,
    /// Kept for the next time: the tracks of the allocator, and their routes.
    tracks: Vec<Track>,
    routes: Vec<usize>,
}

impl Adaptation {
    /// The routes of a viewer are to be looked at.
    pub(in crate::worker) fn new(now: Instant) -> Self {
        Self {
            allocator: Allocator::default(),
            is_active: false,
            is_heard: false,
            next: now,
            sent_since: None,
            tracks: Vec::new(),
            routes: Vec::new(),
        }
    }

    /// Something of the routes changed.
    pub(in crate::worker) fn look_again(&mut self, now: Instant) {
        self.next = now;
    }

    /// When something is to be decided, if nothing happens before.
    pub(in crate::worker) fn poll_timeout(&self) -> Option<Instant> {
        // Without anything to adapt, it is looked at when the peer has something to do anyway.
        let next = self.is_active.then_some(self.next)?;
        let decides = self.allocator.poll_timeout().filter(|_| self.is_heard);
        Some(decides.map_or(next, |at| at.min(next)))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next <= now || self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Whether the peer is one that tells nothing, whatever was agreed.
    fn tells_nothing(&mut self, peer: &Peer, now: Instant) -> bool {
        let connection = &peer.connection;
        if connection.is_bandwidth_heard() {
            return false;
        }
        if self.sent_since.is_none() && connection.recorded() > 0 {
            self.sent_since = Some(now);
        }
        let waits = |since: Instant| now.saturating_duration_since(since) < UNHEARD;
        connection.measure() == Some(Measure::Receiver) || !self.sent_since.is_none_or(waits)
    }
}

impl Peers {
    /// A peer was negotiated: its link may tell from now on, or no longer.
    pub(in crate::worker) fn negotiate_adaptation(
        &mut self,
        slot: usize,
        graph: &mut Graph,
        now: Instant,
    ) {
        let is_on = self.setup.bandwidth_adaptation;
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        let tells = is_on && peer.connection.measure().is_some();
        match &mut peer.adaptation {
            Some(adaptation) if tells => adaptation.look_again(now),
            None if tells => peer.adaptation = Some(Box::new(Adaptation::new(now))),
            Some(_) => {
                (peer.adaptation, peer.is_recorded) = (None, false);
                self.stop_adapting(slot, graph);
            }
            None => {}
        }
    }

    /// The routes to a peer, or what they want, changed.
    pub(in crate::worker) fn adapt_soon(&mut self, slot: usize, now: Instant) {
        let adaptation = self.slots.get_mut(slot).and_then(|p| p.adaptation.as_mut());
        if let Some(adaptation) = adaptation {
            adaptation.look_again(now);
            self.touch(slot);
        }
    }

    /// Decides on the layers of a peer's routes, if there is a reason to.
    pub(in crate::worker) fn adapt(&mut self, slot: usize, graph: &mut Graph, now: Instant) {
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(adaptation) = &peer.adaptation else {
            return;
        };
        let is_due = adaptation.is_due(now);
        let has_news = adaptation.is_active && peer.connection.poll_bandwidth().is_some();
        if !(is_due || has_news) || !peer.connection.transport.is_connected() {
            return;
        }
        if let Some(mut adaptation) = peer.adaptation.take() {
            self.decide(slot, &mut adaptation, graph, now);
            if let Some(peer) = self.slots.get_mut(slot) {
                peer.adaptation = Some(adaptation);
            }
        }
    }

    fn decide(
        &mut self,
        slot: usize,
        adaptation: &mut Adaptation,
        graph: &mut Graph,
        now: Instant,
    ) {
        self.collect_tracks(slot, adaptation, graph, now);
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        peer.is_recorded = adaptation.is_active;
        if !adaptation.is_active {
            adaptation.next = now + LOOK;
            peer.connection.want_bandwidth(DataRate::ZERO, now);
            return self.stop_adapting(slot, graph);
        }
        adaptation.next = now + INTERVAL;
        adaptation.is_heard = !adaptation.tells_nothing(peer, now);
        let estimate = peer.connection.bandwidth();
        let Some(estimate) = estimate.filter(|_| adaptation.is_heard) else {
            peer.connection.want_bandwidth(DataRate::ZERO, now);
            return self.stop_adapting(slot, graph);
        };
        let Adaptation {
            allocator, tracks, ..
        } = adaptation;
        allocator.update(&estimate, tracks, now);
        peer.connection.set_follows_bandwidth(allocator.follows());
        let more = if peer.catch_up.is_some() {
            CATCHING_UP
        } else {
            1.0
        };
        let wanted = allocator.wanted().times(more);
        peer.connection.want_bandwidth(wanted, now);
        pace(peer, allocator.decisions(), &estimate, now);
        let mut lacking: SmallVec<[SourceKey; 4]> = SmallVec::new();
        for (route, decision) in adaptation.routes.iter().zip(allocator.decisions()) {
            lacking.extend(self.apply(*route, *decision, graph, now));
        }
        for route in adaptation.routes.iter().filter(|_| !lacking.is_empty()) {
            graph.want_missing_keyframe(*route, now);
        }
    }

    /// The tracks that a peer gets, and whether any of them can be adapted.
    fn collect_tracks(
        &self,
        slot: usize,
        adaptation: &mut Adaptation,
        graph: &mut Graph,
        now: Instant,
    ) {
        adaptation.tracks.clear();
        adaptation.routes.clear();
        let Some(peer) = self.slots.get(slot) else {
            return;
        };
        let feeds = |route: &&usize| {
            let sink = graph.route(**route).and_then(|route| route.sink);
            let track = sink.and_then(|(_, media)| peer.tracks.get(media));
            let sink = track.and_then(|track| track.sink.as_ref());
            sink.is_some_and(|sink| sink.sends && sink.route == Some(**route))
        };
        adaptation.routes.extend(peer.routes.iter().filter(feeds));
        let source = |route: &usize| graph.source(graph.route(*route)?.source);
        adaptation.is_active = adaptation.routes.iter().filter_map(source).any(can_adapt);
        if !adaptation.is_active {
            return;
        }
        let Adaptation { routes, tracks, .. } = adaptation;
        routes.retain(|slot| {
            let Some(route) = graph.route(*slot) else {
                return false;
            };
            let Some((_, media)) = route.sink else {
                return false;
            };
            let share = route.decision.and_then(|decision| decision.share);
            let (priority, most) = (route.options.priority as u8, bound(&route.options));
            let (key, wanted) = (route.source, route.options.enabled);
            let Some(source) = graph.source_mut(key) else {
                return false;
            };
            if source.format.messages.is_some() {
                return false;
            }
            let kind = if source.format.is_video {
                TrackKind::Video
            } else {
                TrackKind::Audio
            };
            let is_limited =
                |share: DataRate| source.limit.is_some_and(|at| at <= share.times(ASKED));
            tracks.push(Track {
                media,
                kind,
                priority,
                rates: source.flow.rates(source.format.encodings, now),
                most,
                wanted,
                asked: share.is_some_and(is_limited),
            });
            true
        });
    }

    /// A decision becomes what a route relays; returns the source if it may need a keyframe.
    fn apply(
        &mut self,
        slot: usize,
        decision: Decision,
        graph: &mut Graph,
        now: Instant,
    ) -> Option<SourceKey> {
        let key = graph.route(slot)?.source;
        let encodings = graph.source(key)?.format.encodings;
        let route = graph.route_mut(slot)?;
        let before = route.decision.replace(decision);
        if before.and_then(|decision| decision.share) != decision.share {
            graph.note_limited(key);
        }
        let route = graph.route_mut(slot)?;
        let wanted = route.bounded();
        if decision.cut && route.selector.cut(encodings, &wanted, now) {
            let (peer, media) = route.sink?;
            let peer = self.slots.get_mut(peer)?;
            if let Some(pacer) = &mut peer.pacer {
                pacer.retain(|queued| queued.route != slot);
            }
            // What follows is as after a switch: without a gap.
            let sink = peer.tracks.get_mut(media)?.sink.as_mut()?;
            sink.numbering.forget(key);
        }
        if route.wanted == wanted {
            return None;
        }
        route.wanted = wanted;
        route.selector.retarget();
        Some(key)
    }

    /// What the client asks for is all that bounds the routes to a peer, and nothing is paced.
    fn stop_adapting(&mut self, slot: usize, graph: &mut Graph) {
        let Some(peer) = self.slots.get_mut(slot) else {
            return;
        };
        for slot in &peer.routes {
            if let Some(route) = graph.route_mut(*slot)
                && let Some(decision) = route.decision.take()
            {
                route.wanted = route.options.clone();
                route.selector.retarget();
                let key = route.source;
                if decision.share.is_some() {
                    graph.note_limited(key);
                }
            }
        }
        if let Some(pacer) = &mut peer.pacer {
            // What waits leaves at once; then the pacer goes.
            pacer.set_rate(DataRate::bps(u64::MAX));
        }
    }
}

impl Graph {
    /// A route wants other layers: if that takes a keyframe it is asked for at once.
    fn want_missing_keyframe(&mut self, slot: usize, now: Instant) {
        let Some(route) = self.route(slot).filter(|r| r.options.enabled) else {
            return;
        };
        let key = route.source;
        let Some((route, source)) = self.relayed(slot, key) else {
            return;
        };
        let encodings = source.format.encodings;
        let wanted = route
            .selector
            .keyframe_wanted(encodings, &route.wanted, now);
        if let Some(encoding) = wanted {
            self.want_keyframe(key, encoding);
        }
    }
}

impl Peer {
    /// What the link has for these routes, by their slots; none if that is not known.
    pub(in crate::worker) fn spare_bandwidth(
        &self,
        is_one: impl Fn(usize) -> bool,
    ) -> Option<DataRate> {
        self.pacer.as_ref()?.limit()?;
        let adaptation = self.adaptation.as_ref()?;
        let budget = self.connection.bandwidth()?.budget;
        let decisions = adaptation.allocator.decisions();
        let taken = adaptation.routes.iter().zip(decisions);
        let taken = taken.filter(|(route, _)| !is_one(**route));
        let taken: DataRate = taken.map(|(_, decision)| decision.rate).sum();
        Some(budget - taken)
    }
}

impl Route {
    /// What the client asks for, as far as the link carries it.
    pub(in crate::worker) fn bounded(&self) -> RouteOptions {
        let mut wanted = self.options.clone();
        if let Some(target) = self.decision.and_then(|decision| decision.target) {
            wanted.substream = wanted.substream.min(target.encoding);
            wanted.spatial = wanted.spatial.min(target.spatial);
            wanted.temporal = wanted.temporal.min(target.temporal);
        }
        wanted
    }
}

/// The most that a client wants.
fn bound(options: &RouteOptions) -> Target {
    Target {
        encoding: options.substream,
        spatial: options.spatial,
        temporal: options.temporal,
    }
}

/// Whether less of a source can be sent: it has layers, or its publisher can be asked for less.
fn can_adapt(source: &Source) -> bool {
    let asked = matches!(source.is, SourceRef::Track(_)) && source.routes.len() <= MANY;
    source.has_layers() || source.format.is_video && asked
}

/// Makes what leaves keep to the estimate, once one is known.
fn pace(peer: &mut Peer, decisions: &[Decision], estimate: &Estimate, now: Instant) {
    let flows: DataRate = decisions.iter().map(|decision| decision.rate).sum();
    let rate = estimate.rate.times(Pacer::<()>::OF_ESTIMATE);
    // What has to flow although the link does not carry it must not wait ever longer.
    let rate = rate.max(flows.times(ROOM));
    match &mut peer.pacer {
        Some(pacer) => pacer.set_rate(rate),
        None if estimate.limit == Limit::Start => {}
        None => peer.pacer = Some(Box::new(Pacer::new(rate, now))),
    }
}
