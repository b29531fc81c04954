//! A worker: one thread with a UDP socket, and all state of its peers.
//!
//! A turn takes what has arrived (commands, packets), relays it, does what is due, and flushes
//! once. A worker blocks and waits only between turns, and takes no locks.

mod adaptation;
mod budget;
mod commands;
mod counters;
mod datagrams;
mod graph;
mod guard;
mod handover;
mod handover_intake;
mod handshakes;
mod ingests;
mod legs;
mod load;
mod network;
mod node_link_intake;
mod node_links;
mod other_workers;
mod outbox;
mod outlets;
mod peers;
mod poller;
mod polling;
mod relay;
mod removal;
mod slots;
mod tcp;
#[cfg(feature = "testing")]
mod test_driver;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod turn;
mod upstream;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Poll, Token};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::{Identity, StreamConfig};
use smallvec::SmallVec;
use tokio::sync::mpsc;

use crate::candidates::Candidates;
use crate::inbox::Inbox;
use crate::ingest::{ThreadFeedEnd, ThreadFeedEntry};
use crate::sys::{self, MediaSocket, ReceiveBatch};
use crate::totals::WorkerTotals;
use crate::turn::TurnStatus;
use crate::{IngestId, PeerEvent, RouteId, SourceRef};

pub(crate) use counters::Counters;
use graph::Graph;
use handover::Handover;
pub(crate) use handover::Links;
use handshakes::Handshakes;
use ingests::{Ingests, Intake};
use legs::Legs;
use load::Load;
pub(crate) use load::SharedLoad;
use network::{Allocation, Network};
use node_links::NodeLinks;
use other_workers::OtherWorkers;
pub(crate) use other_workers::Rings;
use outbox::Outbox;
use outlets::Outlets;
use peers::{PeerSetup, Peers};
use poller::Poller;
use relay::Relaying;
pub(crate) use tcp::most_pipes;

/// The poll's token for commands and packets of other workers. The network has the others.
pub(crate) const INBOX: Token = Token(1);
/// The maximum time between two turns.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The parts that a worker is built from.
pub(crate) struct WorkerParts {
    pub(crate) index: u16,
    pub(crate) socket: MediaSocket,
    /// Accepts the TCP connections of peers.
    pub(crate) listener: Option<TcpListener>,
    /// The maximum number of TCP connections. `None` without ICE-TCP.
    pub(crate) most_pipes: Option<usize>,
    pub(crate) poll: Poll,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) rings: Rings,
    /// The connections to workers that share the port.
    pub(crate) links: Option<Links>,
    pub(crate) events: mpsc::Sender<PeerEvent>,
    /// The last statistics of peers are wanted.
    pub(crate) last_stats: Arc<AtomicBool>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) offered: Arc<Candidates>,
    pub(crate) turn: Arc<TurnStatus>,
    pub(crate) ice_lite: bool,
    pub(crate) bandwidth_adaptation: bool,
    pub(crate) busy_poll: Duration,
    pub(crate) streams: StreamConfig,
    pub(crate) clock: NtpClock,
    pub(crate) peer_count: Arc<AtomicUsize>,
    pub(crate) totals: Arc<WorkerTotals>,
    pub(crate) load: Arc<SharedLoad>,
    pub(crate) ingest_count: Arc<AtomicUsize>,
}

/// A media worker: parts that own their state, and the loop that drives them. A part is given the
/// other parts that it needs. What needs most of them is done by the worker itself, in the files
/// beside this one.
pub(crate) struct Worker {
    /// The peers.
    peers: Peers,
    /// The sources and routes.
    graph: Graph,
    /// Sources without a PeerConnection.
    ingests: Ingests,
    /// Far ends without ICE and DTLS.
    legs: Legs,
    /// Destinations of packets other than peers.
    outlets: Outlets,
    /// The links to other nodes.
    node_links: NodeLinks,
    /// Threads that feed ingests.
    thread_feeds: Vec<ThreadFeedEnd>,
    /// Datagrams that came by the sockets of other workers.
    handover: Handover,
    /// Handshakes that wait for the next turn.
    handshakes: Handshakes,
    /// The sockets.
    network: Network,
    /// The poll.
    poller: Poller,
    /// Events for the control plane.
    outbox: Outbox,
    /// Whether the control plane wants the last statistics of peers that end by themselves.
    last_stats: Arc<AtomicBool>,
    others: OtherWorkers,
    counters: Counters,
    load: Load,
    running: bool,
}

impl Worker {
    pub(crate) fn new(parts: WorkerParts) -> Self {
        let WorkerParts {
            index,
            inboxes,
            rings,
            clock,
            totals,
            ..
        } = parts;
        let outbox = Outbox::new(parts.events);
        let others = OtherWorkers::new(index, inboxes, rings);
        let counters = Counters::new(totals);
        let (socket, listener) = (parts.socket, parts.listener);
        let candidates = parts.offered.candidates();
        let turn = Allocation::new(parts.offered, parts.turn);
        let network = Network::new(index, socket, listener, parts.most_pipes, clock, turn);
        let poller = Poller::new(parts.poll, parts.busy_poll);
        let handover = Handover::new(parts.links);
        let setup = PeerSetup {
            index,
            sharing: handover.workers(),
            identity: parts.identity,
            candidates,
            ice_lite: parts.ice_lite,
            bandwidth_adaptation: parts.bandwidth_adaptation,
            streams: parts.streams,
            clock,
            count: parts.peer_count,
        };
        Self {
            peers: Peers::new(setup),
            graph: Graph::new(index),
            ingests: Ingests::new(index, parts.ingest_count),
            legs: Legs::new(index, clock),
            outlets: Outlets::new(clock),
            node_links: NodeLinks::new(index, clock),
            thread_feeds: Vec::new(),
            handover,
            handshakes: Handshakes::default(),
            network,
            poller,
            outbox,
            last_stats: parts.last_stats,
            others,
            counters,
            load: Load::new(parts.load),
            running: true,
        }
    }

    /// Runs until the worker is shut down.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut batch = sys::receive_batch();
        let mut ready = Events::with_capacity(64);
        self.network.listen(self.poller.registry())?;
        let mut more = true;
        while self.running && !self.outbox.is_closed() {
            let idle = (!more && self.others.sleep()).then(|| self.idle());
            self.poller.wait(&mut ready, idle)?;
            self.others.stay_awake();
            self.ingests.note_ready(&ready);
            self.legs.note_ready(&ready);
            self.network.pipes.note_ready(&ready);
            self.outlets.note_ready(&ready);
            self.node_links.note_ready(&ready);
            more = self.turn(&mut batch)?;
        }
        Ok(())
    }

    /// Runs one turn. Returns whether more is waiting already.
    fn turn(&mut self, batch: &mut ReceiveBatch) -> io::Result<bool> {
        let now = Instant::now();
        self.load.begin_turn(self.due(), now);
        // Takes commands and what has arrived.
        let (passed, delivered) = (self.count_passed(), self.count_delivered());
        let blocks = self.handover.count_blocks();
        self.take_commands(now);
        self.take_claims(now);
        let mut more = self.take_passed(&passed, now);
        more |= self.take_delivered(&delivered, now);
        self.take_handshakes(now);
        more |= self.take_handed_over(&blocks);
        more |= self.receive(batch)? || self.handshakes.are_waiting();
        self.handover.send(&self.others);
        more |= self.receive_relayed(batch);
        more |= self.receive_pipes(now);
        more |= self.receive_node_links(batch, now);
        more |= self.receive_ingests(batch, now);
        more |= self.receive_legs(batch, now);
        more |= self.outlets.receive(batch, &mut self.graph, now);
        self.ask_for_keyframes(now);
        // Relays it.
        more |= self.relay_fresh(Instant::now());
        // Does what is due, and polls peers.
        self.run_timers(now);
        self.poll_touched(now);
        self.run_turn(now);
        self.ingests.send_feedback(now);
        self.send_node_link_feedback();
        self.run_node_links(now);
        self.run_legs(now);
        self.outlets.report(&self.graph, now);
        // Sends all of it.
        self.network.flush();
        self.outlets.flush();
        self.node_links.flush();
        more |= self.flush_pipes(now);
        self.others.wake();
        self.outbox.flush();
        self.publish_counters(now);
        Ok(more)
    }

    /// Counts what other workers have passed on, for this turn. It is counted before commands are
    /// taken, so that a source's format is known before its packets.
    pub(crate) fn count_passed(&self) -> SmallVec<[usize; 8]> {
        self.others.count_passed()
    }

    /// Takes `counts` packets from each other worker. Returns whether there are more.
    pub(crate) fn take_passed(&mut self, counts: &[usize], now: Instant) -> bool {
        let graph = &mut self.graph;
        self.others.take_passed(counts, |is, packet| {
            if let Some(key) = graph.key(is) {
                graph.take_in(key, |source| source.push(packet, now));
            }
        })
    }

    /// Counts what threads have sent, for this turn. Commands that came before are carried out
    /// first.
    pub(crate) fn count_delivered(&self) -> SmallVec<[usize; 8]> {
        self.thread_feeds.iter().map(ThreadFeedEnd::count).collect()
    }

    /// Takes `counts` entries of each thread. Returns whether there may be more.
    pub(crate) fn take_delivered(&mut self, counts: &[usize], now: Instant) -> bool {
        let mut feeds = std::mem::take(&mut self.thread_feeds);
        for (feed, count) in feeds.iter().zip(counts) {
            for _ in 0..*count {
                match feed.pop() {
                    Some(ThreadFeedEntry::Packet { ingest, mut bytes }) => {
                        let (ingests, mut into) = self.intake();
                        ingests.take_delivered(ingest, &mut bytes, &mut into, now);
                        feed.recycle(bytes);
                    }
                    // Packets before it belong to the route as it was.
                    Some(ThreadFeedEntry::Redirect {
                        route,
                        before,
                        from,
                    }) => self.redirect(route, (before, from), now),
                    Some(ThreadFeedEntry::Remove { ingest }) => {
                        self.relay_fresh(now);
                        self.remove_ingest(ingest, now);
                    }
                    None => break,
                }
            }
        }
        // Feeds that were added in this turn were not read.
        let more = feeds.len() > counts.len();
        feeds.retain(|feed| !feed.has_ended());
        self.thread_feeds = feeds;
        more
    }

    /// Continues a route or an outlet from another ingest, if it comes from `before` or that is
    /// `None`.
    fn redirect(
        &mut self,
        route: RouteId,
        (before, from): (Option<IngestId>, IngestId),
        now: Instant,
    ) {
        let from = SourceRef::Ingest(from);
        let Some(key) = self.graph.key(from) else {
            return;
        };
        if let Some(before) = before {
            let source = match self.graph.slot(route) {
                Some(slot) => self.graph.route(slot).map(|route| route.source),
                None => match self.legs.source_of(route) {
                    Some((_, source)) => source,
                    None => self.outlets.source_of(route),
                },
            };
            let before = self.graph.key(SourceRef::Ingest(before));
            if before.is_none() || source != before {
                return;
            }
        }
        // What came before belongs to the route as it was.
        self.relay_fresh(now);
        match self.graph.slot(route) {
            Some(slot) => {
                let (peers, others) = (&mut self.peers, &self.others);
                self.graph.redirect_route(slot, from, peers, others);
            }
            None => match self.legs.source_of(route) {
                Some((leg, _)) => {
                    let graph = (&mut self.graph, &mut self.peers);
                    self.legs.redirect(leg, from, graph, &self.others);
                }
                None => self.outlets.redirect(route, key, &mut self.graph),
            },
        }
    }

    /// Relays the fresh packets. Returns whether some are held for the rest of their frame.
    pub(crate) fn relay_fresh(&mut self, now: Instant) -> bool {
        let mut fresh = self.graph.take_fresh();
        fresh.retain(|key| {
            let holds = self.graph.holds_back(*key, now);
            if !holds {
                self.graph
                    .pass_on(*key, &mut self.others, &mut self.counters);
                let with = (self.poller.registry(), &mut self.node_links);
                self.outlets.feed(*key, &mut self.graph, with, now);
                self.legs.feed(*key, &mut self.graph, now);
                self.graph.make_ready(*key);
            }
            holds
        });
        self.relaying().relay_all(now);
        let any = !fresh.is_empty();
        self.graph.hold(fresh);
        self.ask_for_keyframes(now);
        any
    }

    /// Takes what has arrived for ingests. Returns whether there is more.
    fn receive_ingests(&mut self, batch: &mut ReceiveBatch, now: Instant) -> bool {
        let (ingests, mut into) = self.intake();
        ingests.receive(batch, &mut into, now)
    }

    /// Takes what has arrived for legs. Returns whether there is more.
    fn receive_legs(&mut self, batch: &mut ReceiveBatch, now: Instant) -> bool {
        let mut into = Intake {
            graph: &mut self.graph,
            others: &self.others,
            counters: &mut self.counters,
        };
        self.legs.receive(batch, &mut self.ingests, &mut into, now)
    }

    /// Does what is due for legs, and requests keyframes of far ends.
    pub(crate) fn run_legs(&mut self, now: Instant) {
        let mut into = Intake {
            graph: &mut self.graph,
            others: &self.others,
            counters: &mut self.counters,
        };
        self.legs.run(&mut self.ingests, &mut into, now);
        self.legs
            .ask_for_keyframes(&mut self.ingests, into.graph, now);
    }

    /// The ingests, and the destination of what arrives for them.
    fn intake(&mut self) -> (&mut Ingests, Intake<'_>) {
        let into = Intake {
            graph: &mut self.graph,
            others: &self.others,
            counters: &mut self.counters,
        };
        (&mut self.ingests, into)
    }

    /// The parts that relaying needs.
    fn relaying(&mut self) -> Relaying<'_> {
        Relaying {
            graph: &mut self.graph,
            peers: &mut self.peers,
            network: &mut self.network,
            outbox: &mut self.outbox,
            counters: &mut self.counters,
        }
    }

    /// Publishes the counters.
    fn publish_counters(&mut self, now: Instant) {
        let worker = self.others.index();
        let sending = self.outlets.counted(self.network.counters());
        let sending = self.legs.counted(sending);
        let sending = self.node_links.counted(sending);
        self.counters.events_dropped(self.outbox.dropped());
        self.counters.handed_over(self.handover.counted());
        self.counters.publish(sending);
        if let Some(counted) = self.network.pipes.counted() {
            self.counters.publish_tcp(counted);
            self.network.pipes.report(worker, now);
        }
        self.network.turn.publish();
        self.counters.report(worker, sending, now);
        self.load.end_turn(self.counters.passed(sending), now);
    }

    /// When the next task is due.
    fn due(&self) -> Option<Instant> {
        let due = [
            self.peers.timeout(),
            self.graph.timeout(),
            self.ingests.timeout(),
            self.legs.timeout(),
            self.outlets.timeout(),
            self.node_links.timeout(),
            self.network.pipes.timeout(),
            self.network.turn.timeout(),
        ];
        due.into_iter().flatten().min()
    }

    /// The time until the next task.
    fn idle(&self) -> Duration {
        let now = Instant::now();
        let due = self.due().map(|at| at.saturating_duration_since(now));
        let all = [due, self.outbox.retry(), Some(LONGEST_WAIT)];
        all.into_iter().flatten().min().unwrap_or(LONGEST_WAIT)
    }
}
