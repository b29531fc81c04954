//! Statistics of a leg, readable at any time without asking its worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use portunus_rtp::Ssrc;

use crate::IngestStatus;

/// What the far end reports on what it receives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FarReport {
    pub(crate) lost: u32,
    pub(crate) jitter: Duration,
    pub(crate) round_trip: Option<Duration>,
}

/// Statistics of a leg. Only its worker writes them, so they may be a moment old.
#[derive(Debug)]
pub struct LegStatus {
    incoming: Arc<IngestStatus>,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    errors: AtomicU64,
    strangers: AtomicU64,
    unshared: AtomicU64,
    /// In µs, as the round trip is, of which 0 means none.
    jitter: AtomicU64,
    round_trip: AtomicU64,
    far_lost: AtomicU32,
    far_jitter: AtomicU64,
    ssrc: AtomicU32,
}

impl LegStatus {
    pub(crate) fn new(incoming: Arc<IngestStatus>, ssrc: Ssrc) -> Self {
        Self {
            incoming,
            sent: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            strangers: AtomicU64::new(0),
            unshared: AtomicU64::new(0),
            jitter: AtomicU64::new(0),
            round_trip: AtomicU64::new(0),
            far_lost: AtomicU32::new(0),
            far_jitter: AtomicU64::new(0),
            ssrc: AtomicU32::new(ssrc.0),
        }
    }

    /// Statistics of what arrives from the far end.
    pub fn incoming(&self) -> &IngestStatus {
        &self.incoming
    }

    pub(crate) fn shared_incoming(&self) -> Arc<IngestStatus> {
        Arc::clone(&self.incoming)
    }

    /// The SSRC of what is sent. It changes only if a new SRTP key comes late in a call.
    pub fn ssrc(&self) -> Ssrc {
        Ssrc(self.ssrc.load(Ordering::Relaxed))
    }

    /// Packets sent to the far end.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes of RTP sent to the far end, with headers and SRTP tags.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Errors of the sockets: packets that could not be sent, or that the far end's machine refused
    /// by ICMP.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Datagrams from other addresses than the far end's, or before one was known.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// Packets of the source whose codec the far end does not take.
    pub fn unshared(&self) -> u64 {
        self.unshared.load(Ordering::Relaxed)
    }

    /// The interarrival jitter of what arrives (RFC 3550 section 6.4.1), as of our last report.
    pub fn jitter(&self) -> Duration {
        Duration::from_micros(self.jitter.load(Ordering::Relaxed))
    }

    /// The last round trip, once the far end has reported.
    pub fn round_trip(&self) -> Option<Duration> {
        let micros = self.round_trip.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    /// Packets that the far end has lost, as of its last report.
    pub fn far_lost(&self) -> u32 {
        self.far_lost.load(Ordering::Relaxed)
    }

    /// The interarrival jitter at the far end, as of its last report.
    pub fn far_jitter(&self) -> Duration {
        Duration::from_micros(self.far_jitter.load(Ordering::Relaxed))
    }

    pub(crate) fn set_ssrc(&self, ssrc: Ssrc) {
        self.ssrc.store(ssrc.0, Ordering::Relaxed);
    }

    pub(crate) fn note_sent(&self, bytes: usize) {
        add(&self.sent, 1);
        add(&self.sent_bytes, bytes as u64);
    }

    pub(crate) fn note_error(&self) {
        add(&self.errors, 1);
    }

    pub(crate) fn note_stranger(&self) {
        add(&self.strangers, 1);
    }

    pub(crate) fn note_unshared(&self) {
        add(&self.unshared, 1);
    }

    pub(crate) fn note_jitter(&self, jitter: Duration) {
        self.jitter.store(micros(jitter), Ordering::Relaxed);
    }

    pub(crate) fn note_far(&self, report: FarReport) {
        self.far_lost.store(report.lost, Ordering::Relaxed);
        self.far_jitter
            .store(micros(report.jitter), Ordering::Relaxed);
        if let Some(round_trip) = report.round_trip {
            let micros = micros(round_trip).max(1);
            self.round_trip.store(micros, Ordering::Relaxed);
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

// There is only one writer, so this needs no atomic addition.
fn add(count: &AtomicU64, more: u64) {
    let sum = count.load(Ordering::Relaxed).wrapping_add(more);
    count.store(sum, Ordering::Relaxed);
}
