//! Bandwidth adaptation: chooses the layers of a viewer's routes by what its link carries.

use std::time::{Duration, Instant};

use portunus_graph::{RouteOptions, Source, SourceKey, SourceRef};
use portunus_rtc::bandwidth::{
    DataRate, Decision, Estimate, Limit, Pacer, Target, Track, TrackKind,
};
use smallvec::SmallVec;

use super::graph::{Graph, MANY};
use super::peers::{Adaptation, Peer, Peers};

/// The interval of decisions, if nothing else triggers one.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often a peer without anything to adapt is checked.
const LOOK: Duration = Duration::from_secs(2);
/// A publisher counts as limited for a viewer if its limit is at most this multiple of the viewer's
/// share.
const ASKED: f64 = 1.1;
/// The rate of the pacer, as a multiple of what flows.
const ROOM: f64 = 1.25;
/// How much a peer that catches up can use, as a multiple of what flows.
const CATCHING_UP: f64 = 3.0;

impl Peers {
    /// Starts or stops the adaptation of a peer that was negotiated.
    pub(in crate::worker) fn negotiate_adaptation(
        &mut self,
        slot: usize,
        graph: &mut Graph,
        now: Instant,
    ) {
        let is_on = self.adapts();
        let Some(peer) = self.get_mut(slot) else {
            return;
        };
        let tells = is_on && peer.connection.measure().is_some();
        match peer.sending.adaptation_mut() {
            Some(adaptation) if tells => adaptation.look_again(now),
            None if tells => peer.sending.set_adaptation(Box::new(Adaptation::new(now))),
            Some(_) => {
                peer.sending.take_adaptation();
                peer.sending.set_recorded(false);
                self.stop_adapting(slot, graph);
            }
            None => {}
        }
    }

    /// Decides on the layers of a peer's routes, if there is a reason to.
    pub(in crate::worker) fn adapt(&mut self, slot: usize, graph: &mut Graph, now: Instant) {
        let Some(peer) = self.get_mut(slot) else {
            return;
        };
        let Some(adaptation) = peer.sending.adaptation() else {
            return;
        };
        let is_due = adaptation.is_due(now);
        let has_news = adaptation.is_active && peer.connection.poll_bandwidth().is_some();
        if !(is_due || has_news) || !peer.connection.transport.is_connected() {
            return;
        }
        if let Some(mut adaptation) = peer.sending.take_adaptation() {
            self.decide(slot, &mut adaptation, graph, now);
            if let Some(peer) = self.get_mut(slot) {
                peer.sending.set_adaptation(adaptation);
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
        let Some(peer) = self.get_mut(slot) else {
            return;
        };
        peer.sending.set_recorded(adaptation.is_active);
        if !adaptation.is_active {
            adaptation.next = now + LOOK;
            peer.connection.want_bandwidth(DataRate::ZERO, now);
            return self.stop_adapting(slot, graph);
        }
        adaptation.next = now + INTERVAL;
        adaptation.is_heard = !adaptation.never_reports(peer, now);
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
        let more = if peer.sending.catch_up().is_some() {
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

    /// Collects the tracks that a peer gets, and whether any of them can be adapted.
    fn collect_tracks(
        &self,
        slot: usize,
        adaptation: &mut Adaptation,
        graph: &mut Graph,
        now: Instant,
    ) {
        adaptation.tracks.clear();
        adaptation.routes.clear();
        let Some(peer) = self.get(slot) else {
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
            let pausable = route.options.pausable;
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
                pausable,
                asked: share.is_some_and(is_limited),
            });
            true
        });
    }

    /// Applies a decision to a route. Returns the source if it may need a keyframe.
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
        if wanted.enabled != route.wanted.enabled {
            route.wanted = wanted;
            self.pause(slot, graph);
            return None;
        }
        if decision.cut && route.selector.cut(encodings, &wanted, now) {
            let (peer, media) = route.sink?;
            let peer = self.get_mut(peer)?;
            if let Some(pacer) = peer.sending.pacer_mut() {
                pacer.retain(|queued| queued.route != slot);
            }
            // The next packet continues as after a switch: without a gap.
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

    /// Stops adapting: routes are bounded only by the client's options, and nothing is paced.
    fn stop_adapting(&mut self, slot: usize, graph: &mut Graph) {
        let Some(peer) = self.get_mut(slot) else {
            return;
        };
        let mut resumed: SmallVec<[usize; 4]> = SmallVec::new();
        for slot in &peer.routes {
            if let Some(route) = graph.route_mut(*slot)
                && let Some(decision) = route.decision.take()
            {
                route.wanted = route.options.clone();
                route.selector.retarget();
                let (key, was_paused) = (route.source, route.announced_pause);
                if decision.share.is_some() {
                    graph.note_limited(key);
                }
                if was_paused {
                    resumed.push(*slot);
                }
            }
        }
        if let Some(pacer) = peer.sending.pacer_mut() {
            // What waits leaves immediately. Then the pacer is removed.
            pacer.set_rate(DataRate::bps(u64::MAX));
        }
        for slot in resumed {
            self.pause(slot, graph);
        }
    }

    /// Closes or opens a route as its link permits. The next poll of the peer reports it.
    fn pause(&mut self, slot: usize, graph: &mut Graph) {
        let Some(route) = graph.route(slot) else {
            return;
        };
        let (is_open, peer) = (route.wanted.enabled, route.to.peer);
        if let Some(peer) = self.slot(peer).and_then(|slot| self.get_mut(slot)) {
            peer.sending.has_pauses = true;
            if !is_open {
                peer.sending.forget_waiting(slot);
            }
        }
        if is_open {
            graph.reopen_route(slot, self);
        }
    }

    /// Returns the routes of a peer that were paused or go on since the last call, and whether they
    /// are paused.
    pub(in crate::worker) fn take_pauses(
        &mut self,
        slot: usize,
        graph: &mut Graph,
    ) -> SmallVec<[(usize, bool); 4]> {
        let mut changed = SmallVec::new();
        let peer = self.get_mut(slot);
        let Some(peer) = peer.filter(|peer| peer.sending.has_pauses) else {
            return changed;
        };
        peer.sending.has_pauses = false;
        for slot in &peer.routes {
            if let Some(route) = graph.route_mut(*slot) {
                let paused = route.is_paused();
                if std::mem::replace(&mut route.announced_pause, paused) != paused {
                    changed.push((*slot, paused));
                }
            }
        }
        changed
    }
}

impl Graph {
    /// Requests a keyframe immediately if a route needs one for other layers.
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

/// The highest layers that a client wants.
fn bound(options: &RouteOptions) -> Target {
    Target {
        encoding: options.substream,
        spatial: options.spatial,
        temporal: options.temporal,
    }
}

/// Whether a source can be reduced: it has layers, or its publisher can be asked for less.
fn can_adapt(source: &Source) -> bool {
    let asked = matches!(source.is, SourceRef::Track(_)) && source.routes.len() <= MANY;
    source.has_layers() || source.format.is_video && asked
}

/// Paces packets by the estimate, once there is one.
fn pace(peer: &mut Peer, decisions: &[Decision], estimate: &Estimate, now: Instant) {
    let flows: DataRate = decisions.iter().map(|decision| decision.rate).sum();
    let rate = estimate.rate.times(Pacer::<()>::OF_ESTIMATE);
    // What must flow although the link does not carry it must not wait ever longer.
    let rate = rate.max(flows.times(ROOM));
    match peer.sending.pacer_mut() {
        Some(pacer) => pacer.set_rate(rate),
        None if estimate.limit == Limit::Start => {}
        None => peer.sending.start_pacing(Pacer::new(rate, now)),
    }
}
