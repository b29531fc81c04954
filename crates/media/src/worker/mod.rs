//! A worker: one thread, one UDP socket, and all that its peers need.
//!
//! A turn takes the commands and packets that are there, relays them, does what is due, and flushes
//! once. Nothing in it blocks, locks or waits but the poll between two of them.

mod arrivals;
mod commands;
mod counters;
mod graph;
mod handshakes;
mod ingests;
mod network;
mod others;
mod outbox;
mod outlets;
mod peers;
mod poller;
mod polling;
mod relay;
mod slots;
mod tcp;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Poll, Token};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::{Identity, LocalCandidate, StreamConfig};
use smallvec::SmallVec;
use tokio::sync::mpsc;

use crate::PeerEvent;
use crate::plane::{Inbox, PeerId};
use crate::sys::{self, MediaSocket, ReceiveBatch};
use crate::totals::WorkerTotals;

pub(crate) use counters::Counters;
use graph::Graph;
use handshakes::Handshakes;
use ingests::{Ingests, Intake};
use network::Network;
use others::OtherWorkers;
pub(crate) use others::Rings;
use outbox::Outbox;
use outlets::Outlets;
use peers::{PeerSetup, Peers};
use poller::Poller;
use relay::Relaying;
pub(crate) use tcp::most_pipes;

/// The poll's token for commands and packets of other workers; the network has the others.
pub(crate) const INBOX: Token = Token(1);
/// Poll at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a worker is made of.
pub(crate) struct WorkerParts {
    pub(crate) index: u16,
    pub(crate) socket: MediaSocket,
    /// Where peers connect by TCP.
    pub(crate) listener: Option<TcpListener>,
    /// How many may be connected by TCP at a time.
    pub(crate) most_pipes: usize,
    pub(crate) poll: Poll,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) rings: Rings,
    pub(crate) events: mpsc::Sender<PeerEvent>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) candidates: Vec<LocalCandidate>,
    pub(crate) ice_lite: bool,
    pub(crate) bandwidth_adaptation: bool,
    pub(crate) busy_poll: Duration,
    pub(crate) streams: StreamConfig,
    pub(crate) clock: NtpClock,
    pub(crate) peer_count: Arc<AtomicUsize>,
    pub(crate) totals: Arc<WorkerTotals>,
    pub(crate) ingest_count: Arc<AtomicUsize>,
}

/// One media worker.
pub(crate) struct Worker {
    peers: Peers,
    graph: Graph,
    ingests: Ingests,
    outlets: Outlets,
    handshakes: Handshakes,
    network: Network,
    poller: Poller,
    outbox: Outbox,
    others: OtherWorkers,
    counters: Counters,
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
        let network = Network::new(index, socket, listener, parts.most_pipes, clock);
        let poller = Poller::new(parts.poll, parts.busy_poll);
        let setup = PeerSetup {
            identity: parts.identity,
            candidates: parts.candidates,
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
            outlets: Outlets::new(clock),
            handshakes: Handshakes::default(),
            network,
            poller,
            outbox,
            others,
            counters,
            running: true,
        }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut batch = sys::receive_batch();
        let mut ready = Events::with_capacity(64);
        self.network.listen(self.poller.registry())?;
        let mut more = true;
        while self.running && !self.outbox.is_closed() {
            let idle = (!more).then(|| self.idle());
            self.poller.wait(&mut ready, idle)?;
            self.ingests.note_ready(&ready);
            self.network.pipes.note_ready(&ready);
            self.outlets.note_ready(&ready);
            more = self.turn(&mut batch)?;
        }
        Ok(())
    }

    /// One turn; says whether more is waiting already.
    fn turn(&mut self, batch: &mut ReceiveBatch) -> io::Result<bool> {
        let now = Instant::now();
        let passed = self.count_passed();
        self.take_commands(now);
        let more_passed = self.take_passed(&passed, now);
        self.take_handshakes(now);
        let more_received = self.receive(batch)? || self.handshakes.are_waiting();
        let more_by_tcp = self.receive_pipes(now);
        let more_ingested = self.receive_ingests(batch, now);
        let more_told = self.outlets.receive(batch, &mut self.graph, now);
        self.ask_for_keyframes(now);
        let holds = self.relay_fresh(Instant::now());
        self.run_timers(now);
        self.poll_touched(now);
        self.ingests.tell(now);
        self.outlets.report(&self.graph, now);
        // What polling set free (keyframe requests, packets sent again) leaves with the rest.
        self.network.flush();
        self.outlets.flush();
        let broken = self.flush_pipes(now);
        self.others.wake();
        self.outbox.flush();
        let sending = self.outlets.counted(self.network.counters());
        self.counters.events_dropped(self.outbox.dropped());
        self.counters.publish(sending);
        if let Some(counted) = self.network.pipes.counted() {
            self.counters.publish_tcp(counted);
            self.network.pipes.report(self.others.index(), now);
        }
        self.counters.report(self.others.index(), sending, now);
        let more = more_passed || more_received || more_by_tcp || more_ingested || more_told;
        Ok(more || holds || broken)
    }

    /// How much other workers have passed on, for the turn to take. To be counted before the turn's commands
    /// are taken: what a worker says of a source before it passes packets of it on is known then.
    pub(crate) fn count_passed(&self) -> SmallVec<[usize; 8]> {
        self.others.count_passed()
    }

    /// Takes what other workers passed on, `counts` from each; says whether there is more.
    pub(crate) fn take_passed(&mut self, counts: &[usize], now: Instant) -> bool {
        let graph = &mut self.graph;
        self.others.take_passed(counts, |is, packet| {
            if let Some(key) = graph.key(is) {
                graph.take_in(key, |source| source.push(packet, now));
            }
        })
    }

    /// Relays the packets of this turn; says whether some are held, for the rest of their frame.
    pub(crate) fn relay_fresh(&mut self, now: Instant) -> bool {
        let mut fresh = self.graph.take_fresh();
        fresh.retain(|key| {
            let holds = self.graph.holds_back(*key, now);
            if !holds {
                self.graph
                    .pass_on(*key, &mut self.others, &mut self.counters);
                let registry = self.poller.registry();
                self.outlets.feed(*key, &mut self.graph, registry, now);
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

    /// Takes what has come for ingests; says whether there is more.
    fn receive_ingests(&mut self, batch: &mut ReceiveBatch, now: Instant) -> bool {
        let (ingests, mut into) = self.intake();
        ingests.receive(batch, &mut into, now)
    }

    /// The ingests, and where goes what comes for them.
    fn intake(&mut self) -> (&mut Ingests, Intake<'_>) {
        let into = Intake {
            graph: &mut self.graph,
            others: &self.others,
            counters: &mut self.counters,
        };
        (&mut self.ingests, into)
    }

    /// What relaying works with.
    fn relaying(&mut self) -> Relaying<'_> {
        Relaying {
            graph: &mut self.graph,
            peers: &mut self.peers,
            network: &mut self.network,
            outbox: &mut self.outbox,
            counters: &mut self.counters,
        }
    }

    /// How long there is nothing to do.
    fn idle(&self) -> Duration {
        let now = Instant::now();
        let timers = self.peers.timeout();
        let timers = timers.map(|at| at.saturating_duration_since(now));
        let retry = self.outbox.retry();
        let ingests = self.ingests.timeout();
        let ingests = ingests.map(|at| at.saturating_duration_since(now));
        let reports = self.outlets.timeout();
        let reports = reports.map(|at| at.saturating_duration_since(now));
        let keyframes = self.graph.timeout();
        let keyframes = keyframes.map(|at| at.saturating_duration_since(now));
        let pipes = self.network.pipes.timeout();
        let pipes = pipes.map(|at| at.saturating_duration_since(now));
        [timers, retry, ingests, reports, keyframes, pipes]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(LONGEST_WAIT)
            .min(LONGEST_WAIT)
    }
}

/// A worker without a network, turned by hand.
#[cfg(feature = "testing")]
impl Worker {
    /// Keeps datagrams for [`Worker::take_kept`] instead of sending them.
    pub(crate) fn keep_datagrams(&mut self) {
        self.network.keep();
    }

    /// Drops datagrams instead of sending them.
    pub(crate) fn drop_datagrams(&mut self) {
        self.network.drop();
    }

    /// What was kept since the last call.
    pub(crate) fn take_kept(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.network.take_kept()
    }

    /// Takes a datagram of an ingest.
    pub(crate) fn take_ingested(
        &mut self,
        slot: usize,
        encoding: u8,
        datagram: &mut [u8],
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take(slot, encoding, (None, datagram), &mut into, now);
    }

    /// Takes a datagram of an ingest's RTCP port.
    pub(crate) fn take_ingest_rtcp(
        &mut self,
        slot: usize,
        (remote, datagram): (SocketAddr, &[u8]),
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take_rtcp(slot, (remote, datagram), &mut into, now);
    }

    /// Takes a datagram as if it had come by the socket `index` of ingests.
    pub(crate) fn take_by_port(
        &mut self,
        index: usize,
        (remote, datagram): (SocketAddr, &mut [u8]),
        now: Instant,
    ) {
        let (ingests, mut into) = self.intake();
        ingests.take_by_port(index, (remote, datagram), &mut into, now);
    }

    /// Takes what feeds have.
    #[cfg(test)]
    pub(crate) fn receive_fed(&mut self, now: Instant) {
        let (ingests, mut into) = self.intake();
        ingests.receive_fed(&mut into, now);
    }

    /// Ends a turn.
    pub(crate) fn flush(&mut self) {
        self.network.flush();
    }

    /// Whose datagrams come from an address.
    #[cfg(test)]
    pub(crate) fn owner(&self, address: SocketAddr) -> Option<PeerId> {
        self.peers.owner(address)
    }

    /// Packets that wait in the pacer of a peer.
    pub(crate) fn waiting(&self, peer: PeerId) -> Option<usize> {
        let pacer = self.peers.get(self.peers.slot(peer)?)?.pacer.as_ref()?;
        Some(pacer.len())
    }

    /// Datagrams that have left so far.
    pub(crate) fn sent(&self) -> u64 {
        self.network.counters().datagrams
    }
}
