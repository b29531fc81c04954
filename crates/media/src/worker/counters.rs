//! Counts what a worker refuses and drops, by kind, and logs it at most once a second.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_rtc::DropReason;
use portunus_rtc::connection::Refusal;

use super::load::Passed;
use crate::LayerReason;
use crate::ingest::Refused;
use crate::node_link::LinkRefusal;
use crate::sys::SendCounters;
use crate::totals::{TcpTotals, WorkerTotals};

/// The minimum time between two log entries.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Our own kinds of refusals, in addition to those of a transport.
const OWN: [&str; 3] = ["unknown_stream", "unknown_peer", "handshake_queue_full"];
/// The name for datagrams to ingests that are disabled.
const DISABLED: &str = "disabled";
const KINDS: usize = DropReason::COUNT + OWN.len();

/// Counts since the start, and how much of them has been logged.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Where other threads read them.
    totals: Arc<WorkerTotals>,
    received_datagrams: u64,
    received_bytes: u64,
    refused: [u64; KINDS],
    logged: [u64; KINDS],
    /// Packets for another worker whose ring was full.
    ring_full: u64,
    logged_ring_full: u64,
    /// Datagrams handed over to the worker of their peer, and those for which there was no room.
    handed_over: (u64, u64),
    logged_not_handed: u64,
    /// Packets dropped because too many waited for their viewer.
    pacer_full: u64,
    logged_pacer_full: u64,
    /// Events dropped because the control plane did not take them in time.
    events_dropped: u64,
    logged_events: u64,
    ingested_packets: u64,
    ingested_bytes: u64,
    /// By reason. The last one counts datagrams to disabled ingests.
    ingest_refused: [u64; Refused::COUNT + 1],
    /// Datagrams of other nodes that were refused, by reason.
    node_link_refused: [u64; LinkRefusal::COUNT],
    /// Messages that a data channel did not take.
    messages_dropped: u64,
    /// Changes of layers, by reason.
    layer_changes: [u64; LayerReason::COUNT],
    logged_sending: SendCounters,
    last_log: Option<Instant>,
    changed: bool,
}

impl Counters {
    /// Returns zero counts, to be published in `totals`.
    pub(super) fn new(totals: Arc<WorkerTotals>) -> Self {
        Self {
            totals,
            received_datagrams: 0,
            received_bytes: 0,
            refused: [0; KINDS],
            logged: [0; KINDS],
            ring_full: 0,
            logged_ring_full: 0,
            handed_over: (0, 0),
            logged_not_handed: 0,
            pacer_full: 0,
            logged_pacer_full: 0,
            events_dropped: 0,
            logged_events: 0,
            ingested_packets: 0,
            ingested_bytes: 0,
            ingest_refused: [0; Refused::COUNT + 1],
            node_link_refused: [0; LinkRefusal::COUNT],
            messages_dropped: 0,
            layer_changes: [0; LayerReason::COUNT],
            logged_sending: SendCounters::default(),
            last_log: None,
            changed: false,
        }
    }

    /// Returns the totals of a worker, to be shared.
    pub(crate) fn totals() -> WorkerTotals {
        WorkerTotals::new(
            DropReason::NAMES.into_iter().chain(OWN),
            LayerReason::names(),
            Refused::ALL
                .map(Refused::name)
                .into_iter()
                .chain([DISABLED]),
            LinkRefusal::ALL.map(LinkRefusal::name).into_iter(),
        )
    }

    /// Counts received datagrams, possibly joined by the kernel.
    pub(super) fn received(&mut self, datagrams: usize, bytes: usize) {
        self.received_datagrams += datagrams as u64;
        self.received_bytes += bytes as u64;
    }

    /// Publishes the counts.
    pub(super) fn publish(&self, sending: SendCounters) {
        let totals = &self.totals;
        let datagrams = [
            (&totals.received_datagrams, self.received_datagrams),
            (&totals.received_bytes, self.received_bytes),
            (&totals.sent_datagrams, sending.datagrams),
            (&totals.sent_bytes, sending.bytes),
            (&totals.send_calls, sending.calls),
            (&totals.send_dropped, sending.dropped),
            (&totals.send_refused, sending.refused),
            (&totals.ring_dropped, self.ring_full),
            (&totals.handed_over, self.handed_over.0),
            (&totals.handover_dropped, self.handed_over.1),
            (&totals.pacer_dropped, self.pacer_full),
            (&totals.events_dropped, self.events_dropped),
            (&totals.ingested_packets, self.ingested_packets),
            (&totals.ingested_bytes, self.ingested_bytes),
            (&totals.messages_dropped, self.messages_dropped),
        ];
        let refused = totals.refused.iter().map(|(_, total)| total);
        let layers = totals.layer_changes.iter().map(|(_, total)| total);
        let ingests = totals.ingest_refused.iter().map(|(_, total)| total);
        let links = totals.node_link_refused.iter().map(|(_, total)| total);
        let by_kind = refused
            .zip(self.refused)
            .chain(layers.zip(self.layer_changes))
            .chain(ingests.zip(self.ingest_refused))
            .chain(links.zip(self.node_link_refused));
        for (total, count) in datagrams.into_iter().chain(by_kind) {
            total.store(count, Relaxed);
        }
    }

    /// Returns what was received and sent by UDP since the start.
    pub(super) fn passed(&self, sending: SendCounters) -> Passed {
        let (datagrams, bytes) = (self.received_datagrams, self.received_bytes);
        [datagrams, bytes, sending.datagrams, sending.bytes]
    }

    /// Publishes the counts of TCP.
    pub(super) fn publish_tcp(&self, counted: TcpTotals) {
        self.totals.publish_tcp(counted);
    }

    /// Counts a refused datagram.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        let index = match refusal {
            Refusal::Transport(reason) => reason.index(),
            Refusal::MalformedRtp => DropReason::MalformedRtp.index(),
            Refusal::UnknownStream => DropReason::COUNT,
        };
        self.count(index);
    }

    /// Counts a datagram of an unknown peer.
    pub(super) fn unknown_peer(&mut self) {
        self.count(DropReason::COUNT + 1);
    }

    /// Counts a datagram of a handshake that was dropped because too many waited.
    pub(super) fn handshake_dropped(&mut self) {
        self.count(DropReason::COUNT + 2);
    }

    /// Counts a packet or a message of an ingest.
    pub(super) fn ingested(&mut self, bytes: usize) {
        self.ingested_packets += 1;
        self.ingested_bytes += bytes as u64;
    }

    /// Counts datagrams that an ingest refused.
    pub(super) fn ingest_refused(&mut self, why: Refused, datagrams: u64) {
        if let Some(count) = self.ingest_refused.get_mut(why.index()) {
            *count += datagrams;
        }
    }

    /// Counts a refused datagram of another node.
    pub(super) fn node_link_refused(&mut self, why: LinkRefusal) {
        if let Some(count) = self.node_link_refused.get_mut(why as usize) {
            *count += 1;
        }
    }

    /// Counts a datagram for a disabled ingest.
    pub(super) fn ingest_ignored(&mut self) {
        let [.., count] = &mut self.ingest_refused;
        *count += 1;
    }

    /// Counts a packet for another worker whose ring was full.
    pub(super) fn ring_full(&mut self) {
        self.ring_full += 1;
        self.changed = true;
    }

    /// Sets how many datagrams were handed over since the start, and how many found no room.
    pub(super) fn handed_over(&mut self, counted: (u64, u64)) {
        self.changed |= self.handed_over.1 != counted.1;
        self.handed_over = counted;
    }

    /// Counts a packet that was dropped because too many waited for its viewer.
    pub(super) fn pacer_full(&mut self) {
        self.pacer_full += 1;
        self.changed = true;
    }

    /// Sets how many events were dropped since the start.
    pub(super) fn events_dropped(&mut self, total: u64) {
        self.changed |= self.events_dropped != total;
        self.events_dropped = total;
    }

    /// Counts a message that was dropped because its receiver does not keep up or cannot take it.
    pub(super) fn message_dropped(&mut self) {
        self.messages_dropped += 1;
    }

    /// Counts a change of a route's layers.
    pub(super) fn layer_changed(&mut self, reason: LayerReason) {
        if let Some(count) = self.layer_changes.get_mut(reason.index()) {
            *count += 1;
        }
    }

    /// Logs new counts, if the last log entry is long enough ago.
    pub(super) fn report(&mut self, worker: u16, sending: SendCounters, now: Instant) {
        let recent = |last: Instant| now.saturating_duration_since(last) < LOG_INTERVAL;
        let logged = self.logged_sending;
        self.changed |= (sending.dropped, sending.refused) != (logged.dropped, logged.refused);
        if !self.changed || self.last_log.is_some_and(recent) {
            return;
        }
        self.changed = false;
        self.last_log = Some(now);
        let names = DropReason::NAMES.iter().chain(&OWN);
        for ((name, count), logged) in names.zip(&self.refused).zip(&mut self.logged) {
            if count > logged {
                let new = count - *logged;
                tracing::debug!(worker, kind = name, new, total = count, "datagrams refused");
                *logged = *count;
            }
        }
        let (dropped, refused) = (
            sending.dropped - logged.dropped,
            sending.refused - logged.refused,
        );
        if dropped > 0 {
            tracing::warn!(
                worker,
                dropped,
                "datagrams dropped: the network does not take them fast enough"
            );
        }
        if refused > 0 {
            tracing::debug!(worker, refused, "datagrams that the kernel would not send");
        }
        self.logged_sending = sending;
        if self.events_dropped > self.logged_events {
            let new = self.events_dropped - self.logged_events;
            tracing::warn!(
                worker,
                new,
                "events dropped: the control plane does not keep up"
            );
            self.logged_events = self.events_dropped;
        }
        if self.pacer_full > self.logged_pacer_full {
            let new = self.pacer_full - self.logged_pacer_full;
            tracing::debug!(
                worker,
                new,
                "packets left out: too many wait for their viewer"
            );
            self.logged_pacer_full = self.pacer_full;
        }
        if self.handed_over.1 > self.logged_not_handed {
            let new = self.handed_over.1 - self.logged_not_handed;
            tracing::warn!(
                worker,
                new,
                "datagrams of another worker's peers dropped: it does not keep up"
            );
            self.logged_not_handed = self.handed_over.1;
        }
        if self.ring_full > self.logged_ring_full {
            let new = self.ring_full - self.logged_ring_full;
            tracing::warn!(
                worker,
                new,
                "packets for another worker dropped: it does not keep up"
            );
            self.logged_ring_full = self.ring_full;
        }
    }

    fn count(&mut self, index: usize) {
        if let Some(count) = self.refused.get_mut(index) {
            *count += 1;
            self.changed = true;
        }
    }
}
