//! The legs of a worker: added, changed and removed.

mod intake;
mod relay;
mod timers;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Registry, Token};
use portunus_graph::{Demand, Source, SourceKey};
use portunus_rtc::streams::NtpClock;
use portunus_sdp::negotiated::Codec;
use slab::Slab;

use super::graph::Graph;
use super::ingests::Ingests;
use super::other_workers::OtherWorkers;
use super::peers::Peers;
use crate::command::{LegSetup, NewIngest};
use crate::ingest::{IngestFeed, IngestOptions, IngestSocket, MAX_PACKET};
use crate::leg::{LegGates, LegId, LegOptions, LegRemote, LegState, LegTones, ReportContents};
use crate::sys::{SendCounters, enable_gro, keep_errors};
use crate::{RouteId, RouteOptions, SourceRef};

use timers::Scheduled;

/// The first of the poll's tokens for sockets of legs. No worker has so many forwarders.
const FIRST_TOKEN: usize = 1 << 25;
/// Room for a packet with extensions and tag, in bytes.
const ROOM: usize = MAX_PACKET + 128;

/// All legs of a worker. Invariants:
///
/// - A leg keeps its slot, can be found by its id, and has an ingest of its own.
/// - A leg is listed by its source, if it has one.
/// - A readable socket is queued once.
pub(super) struct Legs {
    /// The index of the worker.
    worker: u16,
    slots: Slab<Leg>,
    by_id: HashMap<LegId, usize>,
    /// Sockets that may be readable.
    ready: VecDeque<Place>,
    due: BinaryHeap<Scheduled>,
    /// The buffer for outgoing datagrams.
    room: Box<[u8; ROOM]>,
    clock: NtpClock,
    sent: SendCounters,
}

/// A socket of a leg.
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
    /// The source that is sent to the far end.
    source: Option<(SourceRef, SourceKey)>,
    /// The source whose keys are passed on.
    keys: Option<(SourceRef, SourceKey)>,
    /// Its timer.
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

    /// Sends an RTP datagram. Returns whether it was sent.
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
        // An error of an earlier datagram is returned instead of sending this one.
        once().or_else(|_| once()).is_ok()
    }
}

impl Legs {
    /// Returns the legs of a worker. Reports use this clock.
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

    /// Adds a leg and its ingest.
    pub(super) fn add(
        &mut self,
        LegSetup { id, new, status }: LegSetup,
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
        let options = LegOptions {
            silence: new.silence,
            hears_source: new.hears_source,
            hears_unknown: new.hears_unknown,
        };
        let state = LegState::new(id, options, new.tell, status);
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

    /// Sets what was agreed on with the far end of a leg.
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

    /// Opens and closes the gates of a leg.
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

    /// Sends telephone events.
    pub(super) fn send_tones(&mut self, id: LegId, tones: &LegTones, now: Instant) {
        if let Some((slot, leg)) = self.get_mut(id) {
            leg.state.add_tones(tones, now);
            self.schedule(slot);
        }
    }

    /// Sends another source to the far end of a leg.
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
            // Joins the new source first, so that a source of another worker stays if it is the
            // same.
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
        if let Some(key) = key {
            graph.note_demand(key);
        }
        self.want_keyframe(slot, graph);
    }

    /// Passes the keys of a source on to the far end of a leg.
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

    /// Returns the leg with this route, and its source.
    pub(super) fn source_of(&self, route: RouteId) -> Option<(LegId, Option<SourceKey>)> {
        let id = LegId {
            worker: route.worker,
            serial: route.serial,
        };
        let leg = self.slots.get(self.slot(id)?)?;
        Some((id, leg.key()))
    }

    /// Continues a leg from another source, with the same options.
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

    /// Removes a source that ends from all legs.
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

    /// Removes a leg, and says goodbye to its far end. Returns whether it existed. Its ingest has
    /// to be removed, too.
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
        let contents = ReportContents {
            keyframe: false,
            bye: true,
        };
        self.report(slot, contents, graph, now);
        self.by_id.remove(&id);
        let Some(leg) = self.slots.try_remove(slot) else {
            return false;
        };
        for (is, key) in [leg.source, leg.keys].into_iter().flatten() {
            graph.leave_leg(slot, (key, is), others);
        }
        for port in [&leg.rtp, &leg.rtcp] {
            let fd = port.socket.as_fd().as_raw_fd();
            // Closing it ends the registration, too.
            let _ = registry.deregister(&mut SourceFd(&fd));
        }
        self.ready.retain(|place| place.leg != slot);
        true
    }

    /// Requests a keyframe of the source of a leg.
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

    /// Returns what the legs of a source can see.
    pub(super) fn demand(&self, source: &Source) -> Demand {
        let legs = source.legs.iter().filter_map(|slot| self.slots.get(*slot));
        let demands = legs.map(|leg| {
            let encodings = source.format.encodings;
            Demand::up_to(leg.state.options(), encodings)
        });
        demands.fold(Demand::NOTHING, Demand::union)
    }

    /// Adds what legs have sent to `others`.
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

/// Counts a datagram.
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
