//! Totals of all workers since the start, readable at any time without asking them.

use crate::RelayedTotals;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Totals of all workers since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaTotals {
    /// The present number of peers.
    pub peers: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes of these, without IP and UDP headers.
    pub received_bytes: u64,
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of these, without IP and UDP headers.
    pub sent_bytes: u64,
    /// System calls for sending.
    pub send_calls: u64,
    /// Datagrams dropped because the socket stayed full.
    pub send_dropped: u64,
    /// Datagrams that the kernel refused to send.
    pub send_refused: u64,
    /// Packets dropped because the ring to another worker was full.
    pub ring_dropped: u64,
    /// Datagrams that came to the socket of another worker than their peer's and were handed over,
    /// if workers share a port.
    pub handed_over: u64,
    /// Datagrams dropped instead, because the other worker did not take them in time.
    pub handover_dropped: u64,
    /// Packets dropped because too many waited for their viewer.
    pub pacer_dropped: u64,
    /// Events dropped because the control plane did not take them in time.
    pub events_dropped: u64,
    /// Packets and messages accepted by ingests.
    pub ingested_packets: u64,
    /// Their bytes, with RTP headers.
    pub ingested_bytes: u64,
    /// Datagrams that ingests refused, or that came while they were disabled, by reason.
    pub ingest_refused: Vec<(&'static str, u64)>,
    /// Datagrams to the sockets of node links that were refused, by reason.
    pub node_link_refused: Vec<(&'static str, u64)>,
    /// Messages for data channels that were dropped: the receiver did not keep up, or does not take
    /// messages of this length.
    pub messages_dropped: u64,
    /// Datagrams refused, by kind.
    pub refused: Vec<(&'static str, u64)>,
    /// Changes of layers for viewers, by reason.
    pub layer_changes: Vec<(&'static str, u64)>,
    /// The totals of ICE-TCP.
    pub tcp: TcpTotals,
    /// The totals of TURN servers.
    pub relayed: RelayedTotals,
}

/// Totals of ICE-TCP (RFC 6544). Their datagrams do not count in [`MediaTotals`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpTotals {
    /// Open connections.
    pub connections: u64,
    /// Accepted connections.
    pub accepted: u64,
    /// Datagrams received in frames.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams sent in frames.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Datagrams dropped because the connection did not take them.
    pub dropped_frames: u64,
    /// Connections refused, in the order of [`TcpTotals::REFUSED`].
    pub refused: [u64; 8],
    /// Connections of peers that ended, in the order of [`TcpTotals::CLOSED`].
    pub closed: [u64; 5],
}

impl TcpTotals {
    /// Why connections are refused, for metrics.
    pub const REFUSED: [&'static str; 8] = [
        "not_a_check",
        "unknown_peer",
        "refused_check",
        "silent",
        "left",
        "displaced",
        "full",
        "system",
    ];
    /// How connections of peers end, for metrics.
    pub const CLOSED: [&'static str; 5] = ["left", "broken", "silent", "displaced", "peer_ended"];
    const FIGURES: usize = 7 + Self::REFUSED.len() + Self::CLOSED.len();

    fn figures(&mut self) -> impl Iterator<Item = &mut u64> {
        let figures = [
            &mut self.connections,
            &mut self.accepted,
            &mut self.received_frames,
            &mut self.received_bytes,
            &mut self.sent_frames,
            &mut self.sent_bytes,
            &mut self.dropped_frames,
        ];
        figures
            .into_iter()
            .chain(&mut self.refused)
            .chain(&mut self.closed)
    }
}

/// The totals of one worker, which writes them once a turn.
#[derive(Debug)]
pub(crate) struct WorkerTotals {
    pub(crate) received_datagrams: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_datagrams: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) send_calls: AtomicU64,
    pub(crate) send_dropped: AtomicU64,
    pub(crate) send_refused: AtomicU64,
    pub(crate) ring_dropped: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) handover_dropped: AtomicU64,
    pub(crate) pacer_dropped: AtomicU64,
    pub(crate) events_dropped: AtomicU64,
    pub(crate) ingested_packets: AtomicU64,
    pub(crate) ingested_bytes: AtomicU64,
    pub(crate) messages_dropped: AtomicU64,
    /// Messages dropped because too many waited for the worker.
    messages_refused: AtomicU64,
    /// In the order in which the worker counts them.
    pub(crate) refused: Vec<(&'static str, AtomicU64)>,
    /// In the order in which the worker counts them.
    pub(crate) layer_changes: Vec<(&'static str, AtomicU64)>,
    /// In the order in which the worker counts them.
    pub(crate) ingest_refused: Vec<(&'static str, AtomicU64)>,
    /// In the order in which the worker counts them.
    pub(crate) node_link_refused: Vec<(&'static str, AtomicU64)>,
    /// As [`TcpTotals::figures`].
    tcp: [AtomicU64; TcpTotals::FIGURES],
}

impl WorkerTotals {
    /// Returns zero totals with these kinds of refusals, reasons of layer changes, and reasons of
    /// ingests and of node links.
    pub(crate) fn new(
        kinds: impl Iterator<Item = &'static str>,
        reasons: impl Iterator<Item = &'static str>,
        ingests: impl Iterator<Item = &'static str>,
        links: impl Iterator<Item = &'static str>,
    ) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            received_datagrams: zero(),
            received_bytes: zero(),
            sent_datagrams: zero(),
            sent_bytes: zero(),
            send_calls: zero(),
            send_dropped: zero(),
            send_refused: zero(),
            ring_dropped: zero(),
            handed_over: zero(),
            handover_dropped: zero(),
            pacer_dropped: zero(),
            events_dropped: zero(),
            ingested_packets: zero(),
            ingested_bytes: zero(),
            messages_dropped: zero(),
            messages_refused: zero(),
            refused: kinds.map(|kind| (kind, zero())).collect(),
            layer_changes: reasons.map(|reason| (reason, zero())).collect(),
            ingest_refused: ingests.map(|reason| (reason, zero())).collect(),
            node_link_refused: links.map(|reason| (reason, zero())).collect(),
            tcp: [const { AtomicU64::new(0) }; TcpTotals::FIGURES],
        }
    }

    /// Counts a message that was dropped because too many waited for the worker.
    pub(crate) fn message_refused(&self) {
        self.messages_refused.fetch_add(1, Relaxed);
    }

    /// Publishes the totals of TCP.
    pub(crate) fn publish_tcp(&self, mut counted: TcpTotals) {
        for (total, count) in self.tcp.iter().zip(counted.figures()) {
            total.store(*count, Relaxed);
        }
    }

    /// Adds the totals of this worker to `sum`.
    pub(crate) fn add_to(&self, sum: &mut MediaTotals) {
        sum.received_datagrams += self.received_datagrams.load(Relaxed);
        sum.received_bytes += self.received_bytes.load(Relaxed);
        sum.sent_datagrams += self.sent_datagrams.load(Relaxed);
        sum.sent_bytes += self.sent_bytes.load(Relaxed);
        sum.send_calls += self.send_calls.load(Relaxed);
        sum.send_dropped += self.send_dropped.load(Relaxed);
        sum.send_refused += self.send_refused.load(Relaxed);
        sum.ring_dropped += self.ring_dropped.load(Relaxed);
        sum.handed_over += self.handed_over.load(Relaxed);
        sum.handover_dropped += self.handover_dropped.load(Relaxed);
        sum.pacer_dropped += self.pacer_dropped.load(Relaxed);
        sum.events_dropped += self.events_dropped.load(Relaxed);
        sum.ingested_packets += self.ingested_packets.load(Relaxed);
        sum.ingested_bytes += self.ingested_bytes.load(Relaxed);
        sum.messages_dropped += self.messages_dropped.load(Relaxed);
        sum.messages_dropped += self.messages_refused.load(Relaxed);
        add_each(&self.refused, &mut sum.refused);
        add_each(&self.layer_changes, &mut sum.layer_changes);
        add_each(&self.ingest_refused, &mut sum.ingest_refused);
        add_each(&self.node_link_refused, &mut sum.node_link_refused);
        for (sum, count) in sum.tcp.figures().zip(&self.tcp) {
            *sum += count.load(Relaxed);
        }
    }
}

fn add_each(counts: &[(&'static str, AtomicU64)], sums: &mut Vec<(&'static str, u64)>) {
    if sums.is_empty() {
        *sums = counts.iter().map(|(name, _)| (*name, 0)).collect();
    }
    for ((_, sum), (_, count)) in sums.iter_mut().zip(counts) {
        *sum += count.load(Relaxed);
    }
}
