//! The legs of a worker: which there are, what they are told, and how they go.

mod due;
mod receive;
mod relay;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Registry, Token};
use portunus_rtc::streams::NtpClock;
use portunus_sdp::negotiated::Codec;
use slab::Slab;

use super::graph::Graph;
use super::ingests::Ingests;
use super::others::OtherWorkers;
use super::peers::Peers;
use crate::command::NewIngest;
use crate::graph::SourceKey;
use crate::ingest::{IngestFeed, IngestOptions, IngestSocket, MAX_PACKET};
use crate::leg::{LegGates, LegId, LegRemote, LegState, LegStatus, LegTones, NewLeg};
use crate::sys::{SendCounters, enable_gro, keep_errors};
use crate::{RouteId, RouteOptions, SourceRef};

use due::Scheduled;

/// The poll's tokens from here on are those of legs: no worker has so many forwarders.
const FIRST_TOKEN: usize = 1 << 25;
/// Room for a packet with extensions and tag.
const ROOM: usize = MAX_PACKET + 128;

/// All legs of a worker. What holds:
///
/// - A leg has a slot for as long as it is there, is found by its id all the time, and has an ingest of its own.
/// - A leg is among the legs of its source, if it has one.
/// - A socket that may have something is in the queue once.
pub(super) struct Legs {
    /// The number of the worker.
    worker: u16,
    slots: Slab<Leg>,
    by_id: HashMap<LegId, usize>,
    /// Sockets that may have something.
    ready: VecDeque<Place>,
    due: BinaryHeap<Scheduled>,
    /// Where datagrams are written.
    room: Box<[u8; ROOM]>,
    clock: NtpClock,
    sent: SendCounters,
}

/// A socket of a leg, by the leg's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    leg: usize,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Rtp,
    Rtcp,
}

impl Place {
    fn token(self) -> Token {
        Token(FIRST_TOKEN + self.leg * 2 + self.role as usize)
    }

    fn of(token: Token) -> Option<Self> {
        let number = token.0.checked_sub(FIRST_TOKEN)?;
        let role = match number % 2 {
            0 => Role::Rtp,
            _ => Role::Rtcp,
        };
        let leg = number / 2;
        Some(Self { leg, role })
    }
}

/// A leg with its sockets.
struct Leg {
    id: LegId,
    state: LegState,
    rtp: Port,
    rtcp: Port,
    /// The slot of its ingest.
    ingest: usize,
    /// What is routed into it.
    source: Option<(SourceRef, SourceKey)>,
    /// Whose keys are passed on.
    keys: Option<(SourceRef, SourceKey)>,
    /// When it is looked at.
    scheduled: Option<Instant>,
}

struct Port {
    socket: IngestSocket,
    is_ready: bool,
}

impl Port {
    fn new(socket: IngestSocket) -> Self {
        Self {
            socket,
            is_ready: false,
        }
    }
}

impl Leg {
    fn port(&mut self, role: Role) -> &mut Port {
        match role {
            Role::Rtp => &mut self.rtp,
            Role::Rtcp => &mut self.rtcp,
        }
    }

    fn key(&self) -> Option<SourceKey> {
        self.source.map(|(_, key)| key)
    }

    /// Sends a datagram of RTP; says whether it left.
    fn send(&mut self, datagram: &[u8]) -> bool {
        let Some(to) = self.state.incoming.rtp.current() else {
            return false;
        };
        let left = self.rtp.send(datagram, to);
        match left {
            true => self.state.status.note_sent(datagram.len()),
            false => self.state.status.note_error(),
        }
        left
    }
}

impl Port {
    fn send(&self, datagram: &[u8], to: SocketAddr) -> bool {
        let once = || self.socket.send(datagram, to);
        // An error of an earlier datagram is told instead of this one's being sent.
        once().or_else(|_| once()).is_ok()
    }
}

impl Legs {
    /// Those of the worker with this number; reports are of this clock.
    pub(super) fn new(worker: u16, clock: NtpClock) -> Self {
        Self {
            worker,
            slots: Slab::new(),
            by_id: HashMap::new(),
            ready: VecDeque::new(),
            due: BinaryHeap::new(),
            room: Box::new([0; ROOM]),
            clock,
            sent: SendCounters::default(),
        }
    }

    /// Notes which sockets the poll found readable.
    pub(super) fn note_ready(&mut self, events: &Events) {
        for event in events {
            if let Some(place) = Place::of(event.token()) {
                self.mark_ready(place);
            }
        }
    }

    fn mark_ready(&mut self, place: Place) {
        if let Some(leg) = self.slots.get_mut(place.leg)
            && !std::mem::replace(&mut leg.port(place.role).is_ready, true)
        {
            self.ready.push_back(place);
        }
    }

    fn slot(&self, id: LegId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    fn get_mut(&mut self, id: LegId) -> Option<(usize, &mut Leg)> {
        let slot = self.slot(id)?;
        Some((slot, self.slots.get_mut(slot)?))
    }

    /// A leg comes, and the ingest that it is.
    pub(super) fn add(
        &mut self,
        (id, new, status): (LegId, NewLeg, Arc<LegStatus>),
        ingests: &mut Ingests,
        (graph, peers): (&mut Graph, &mut Peers),
        others: &OtherWorkers,
        registry: &Registry,
    ) {
        let (codec, clock_rate) = match new.video {
            true => (Codec::Vp8, 90_000),
            false => (Codec::Pcmu, 8_000),
        };
        let ingest = NewIngest {
            id: id.ingest(),
            options: IngestOptions::rtp(codec, clock_rate, IngestFeed::Thread),
            status: status.shared_incoming(),
        };
        ingests.add(ingest, (graph, peers), others, registry);
        let Some(ingest) = ingests.slot(id.ingest()) else {
            return;
        };
        if new.video {
            enable_gro(&new.rtp);
        }
        keep_errors(&new.rtp);
        let hears = (new.silence, new.hears_source, new.hears_unknown);
        let state = LegState::new(id, hears, new.tell, status);
        let slot = self.slots.insert(Leg {
            id,
            state,
            rtp: Port::new(new.rtp),
            rtcp: Port::new(new.rtcp),
            ingest,
            source: None,
            keys: None,
            scheduled: None,
        });
        self.by_id.insert(id, slot);
        for role in [Role::Rtp, Role::Rtcp] {
            let place = Place { leg: slot, role };
            let Some(leg) = self.slots.get_mut(slot) else {
                return;
            };
            let fd = leg.port(role).socket.as_fd().as_raw_fd();
            let interest = Interest::READABLE;
            if let Err(error) = registry.register(&mut SourceFd(&fd), place.token(), interest) {
                tracing::error!(worker = self.worker, %error, "cannot listen to a leg's socket");
                continue;
            }
            self.mark_ready(place);
        }
    }

    /// A leg's far end is there, and this was agreed on with it.
    pub(super) fn set_remote(
        &mut self,
        id: LegId,
        remote: &LegRemote,
        ingests: &mut Ingests,
        (graph, others): (&mut Graph, &OtherWorkers),
        now: Instant,
    ) {
        let Some((slot, leg)) = self.get_mut(id) else {
            return;
        };
        leg.state.set_remote(remote, now);
        let payloads = &remote.incoming;
        ingests.set_payloads(id.ingest(), payloads, remote.extensions, (graph, others));
        self.schedule(slot);
    }

    /// Opens and closes the ways of a leg.
    pub(super) fn set_gates(
        &mut self,
        id: LegId,
        gates: LegGates,
        ingests: &mut Ingests,
        (graph, others): (&mut Graph, &OtherWorkers),
        now: Instant,
    ) {
        let Some((slot, leg)) = self.get_mut(id) else {
            return;
        };
        if leg.state.set_gates(gates, leg.key(), now) {
            self.want_keyframe(slot, graph);
        }
        ingests.set_enabled(id.ingest(), gates.receive, graph, others);
        self.schedule(slot);
    }

    /// Presses keys.
    pub(super) fn send_tones(&mut self, id: LegId, tones: &LegTones, now: Instant) {
        if let Some((slot, leg)) = self.get_mut(id) {
            leg.state.add_tones(tones, now);
            self.schedule(slot);
        }
    }

    /// What is routed into a leg comes from this source from now on.
    pub(super) fn route(
        &mut self,
        id: LegId,
        from: Option<SourceRef>,
        options: RouteOptions,
        (graph, peers): (&mut Graph, &mut Peers),
        others: &OtherWorkers,
    ) {
        let Some((slot, leg)) = self.get_mut(id) else {
            return;
        };
        let before = leg.source;
        if from.is_none() || before.map(|(before, _)| before) != from {
            // The new one first: a source of another worker that both are stays.
            let next =
                from.and_then(|from| Some((from, graph.join_leg(from, slot, peers, others)?)));
            leg.source = next;
            if let Some((is, key)) = before {
                leg.state.outgoing.leave(key);
                graph.leave_leg(slot, (key, is), others);
            }
        }
        let key = leg.key();
        leg.state.set_options(options, key);
        self.want_keyframe(slot, graph);
    }

    /// The keys that a source brings go to the far end of a leg from now on.
    pub(super) fn pass_keys(
        &mut self,
        id: LegId,
        from: Option<SourceRef>,
        (graph, peers): (&mut Graph, &mut Peers),
        others: &OtherWorkers,
    ) {
        let Some((slot, leg)) = self.get_mut(id) else {
            return;
        };
        let next = from.and_then(|from| Some((from, graph.join_leg(from, slot, peers, others)?)));
        if let Some((is, key)) = std::mem::replace(&mut leg.keys, next) {
            graph.leave_leg(slot, (key, is), others);
        }
        leg.state.begin_keys();
    }

    /// The leg whose route this is, and where it is from.
    pub(super) fn source_of(&self, route: RouteId) -> Option<(LegId, Option<SourceKey>)> {
        let id = LegId {
            worker: route.worker,
            serial: route.serial,
        };
        let leg = self.slots.get(self.slot(id)?)?;
        Some((id, leg.key()))
    }

    /// What is routed into a leg goes on from another source, with the same options.
    pub(super) fn redirect(
        &mut self,
        id: LegId,
        from: SourceRef,
        graph: (&mut Graph, &mut Peers),
        others: &OtherWorkers,
    ) {
        if let Some((_, leg)) = self.get_mut(id) {
            let options = leg.state.options().clone();
            self.route(id, Some(from), options, graph, others);
        }
    }

    /// A source ends: nothing is routed from it any more.
    pub(super) fn end_all(&mut self, key: SourceKey, graph: &mut Graph) {
        let source = graph.source_mut(key);
        let legs = source.map(|source| std::mem::take(&mut source.legs));
        for slot in legs.unwrap_or_default() {
            if let Some(leg) = self.slots.get_mut(slot) {
                leg.keys = leg.keys.filter(|(_, of)| *of != key);
                if leg.key() == Some(key) {
                    leg.source = None;
                    leg.state.outgoing.leave(key);
                }
            }
        }
    }

    /// A leg goes, and says so to its far end; says whether it was there. Its ingest is to be removed.
    pub(super) fn remove(
        &mut self,
        id: LegId,
        graph: &mut Graph,
        others: &OtherWorkers,
        registry: &Registry,
        now: Instant,
    ) -> bool {
        let Some(slot) = self.slot(id) else {
            return false;
        };
        self.report(slot, (false, true), graph, now);
        self.by_id.remove(&id);
        let Some(leg) = self.slots.try_remove(slot) else {
            return false;
        };
        for (is, key) in [leg.source, leg.keys].into_iter().flatten() {
            graph.leave_leg(slot, (key, is), others);
        }
        for port in [&leg.rtp, &leg.rtcp] {
            let fd = port.socket.as_fd().as_raw_fd();
            // Closing it ends the registration too.
            let _ = registry.deregister(&mut SourceFd(&fd));
        }
        self.ready.retain(|place| place.leg != slot);
        true
    }

    /// Asks for a keyframe of what is routed into a leg.
    fn want_keyframe(&self, slot: usize, graph: &mut Graph) {
        let leg = self.slots.get(slot);
        let Some((leg, key)) = leg.and_then(|leg| Some((leg, leg.key()?))) else {
            return;
        };
        match leg.state.outgoing.encoding() {
            Some(encoding) => graph.want_keyframe(key, encoding),
            None => graph.want_keyframes(key),
        }
    }

    /// What legs have sent, with `others`.
    pub(super) fn counted(&self, others: SendCounters) -> SendCounters {
        SendCounters {
            datagrams: others.datagrams + self.sent.datagrams,
            bytes: others.bytes + self.sent.bytes,
            calls: others.calls + self.sent.calls,
            dropped: others.dropped + self.sent.dropped,
            refused: others.refused + self.sent.refused,
        }
    }
}

/// Counts a datagram that was to be sent.
fn count(sent: &mut SendCounters, len: usize, left: bool) {
    sent.calls += 1;
    match left {
        true => {
            sent.datagrams += 1;
            sent.bytes += len as u64;
        }
        false => sent.refused += 1,
    }
}
