//! Statistics of an ingest, readable at any time without asking its worker.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portunus_rtp::Ssrc;

use super::Refused;

/// Statistics of an ingest. Only its worker writes them, so they may be a moment old.
#[derive(Debug)]
pub struct IngestStatus {
    created: Instant,
    /// In milliseconds since `created`, as all times here.
    last: AtomicU64,
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    refused: [AtomicU64; Refused::COUNT],
    /// The time and the index of the last fault. Meaningless before the first one.
    last_fault: AtomicU64,
    fault: AtomicUsize,
    ignored: AtomicU64,
    /// The bits above 32 say whether there is one.
    ssrc: AtomicU64,
    latched: AtomicBool,
    keyframes_asked: AtomicU64,
}

const HAS_SSRC: u64 = 1 << 32;

impl IngestStatus {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            created: now,
            last: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            refused: Default::default(),
            last_fault: AtomicU64::new(0),
            fault: AtomicUsize::new(0),
            ignored: AtomicU64::new(0),
            ssrc: AtomicU64::new(0),
            latched: AtomicBool::new(false),
            keyframes_asked: AtomicU64::new(0),
        }
    }

    /// The time since the last packet, accepted or ignored, or since the ingest was added.
    pub fn age(&self) -> Duration {
        self.since(&self.last)
    }

    fn since(&self, time: &AtomicU64) -> Duration {
        let time = Duration::from_millis(time.load(Ordering::Relaxed));
        self.created.elapsed().saturating_sub(time)
    }

    /// Whether any packet has come, accepted or ignored.
    pub fn has_come(&self) -> bool {
        self.packets() > 0 || self.ignored() > 0
    }

    /// Accepted packets or messages.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Their bytes, with RTP headers.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Packets that never arrived.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Datagrams that were refused, for any reason.
    pub fn refused(&self) -> u64 {
        Refused::ALL.map(|why| self.refused_as(why)).iter().sum()
    }

    /// Datagrams that were refused for this reason.
    pub fn refused_as(&self, why: Refused) -> u64 {
        let count = self.refused.get(why.index());
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// The fault in what arrives, if there ever was one. Late packets do not count.
    pub fn refusal(&self) -> Option<Refusal> {
        let faults = Refused::ALL.into_iter().filter(|why| why.is_fault());
        let datagrams: u64 = faults.map(|why| self.refused_as(why)).sum();
        let why = *Refused::ALL.get(self.fault.load(Ordering::Relaxed))?;
        (datagrams > 0).then(|| Refusal {
            why,
            datagrams,
            age: self.since(&self.last_fault),
        })
    }

    /// Datagrams that arrived while the ingest was disabled.
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// The SSRC of the present sender. With simulcast, that of any encoding.
    pub fn ssrc(&self) -> Option<Ssrc> {
        let ssrc = self.ssrc.load(Ordering::Relaxed);
        (ssrc & HAS_SSRC != 0).then_some(Ssrc(ssrc as u32))
    }

    /// Whether the address for RTCP to the sender is known, so that keyframes can be requested.
    pub fn rtcp_latched(&self) -> bool {
        self.latched.load(Ordering::Relaxed)
    }

    /// Keyframe requests that were sent to the source.
    pub fn keyframes_asked(&self) -> u64 {
        self.keyframes_asked.load(Ordering::Relaxed)
    }

    fn note(&self, time: &AtomicU64, now: Instant) {
        let since = now.saturating_duration_since(self.created);
        time.store(since.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn accepted(&self, bytes: usize, now: Instant) {
        self.note(&self.last, now);
        add(&self.packets, 1);
        add(&self.bytes, bytes as u64);
    }

    pub(crate) fn refuse(&self, why: Refused, datagrams: u64, now: Instant) {
        if why.is_fault() {
            self.note(&self.last_fault, now);
            self.fault.store(why.index(), Ordering::Relaxed);
        }
        if let Some(count) = self.refused.get(why.index()) {
            add(count, datagrams);
        }
    }

    pub(crate) fn ignore(&self, now: Instant) {
        self.note(&self.last, now);
        add(&self.ignored, 1);
    }

    /// Updates the losses of one of its streams.
    pub(crate) fn change_lost(&self, before: u64, now: u64) {
        if before != now {
            add(&self.lost, now.wrapping_sub(before));
        }
    }

    pub(crate) fn set_ssrc(&self, ssrc: Ssrc) {
        let ssrc = HAS_SSRC | u64::from(ssrc.0);
        self.ssrc.store(ssrc, Ordering::Relaxed);
    }

    pub(crate) fn latch(&self) {
        self.latched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn asked_for_keyframe(&self) {
        add(&self.keyframes_asked, 1);
    }

    /// Acts as if a packet had arrived, for tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn pretend_packet(&self, bytes: usize) {
        self.accepted(bytes, Instant::now());
    }

    /// Acts as if a datagram had been refused, for tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn pretend_refusal(&self, why: Refused) {
        self.refuse(why, 1, Instant::now());
    }
}

/// A fault in what arrives for an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The reason of the last such datagram.
    pub why: Refused,
    /// The number of faulty datagrams, for any reason.
    pub datagrams: u64,
    /// The time since the last one.
    pub age: Duration,
}

// There is only one writer, so this needs no atomic addition.
fn add(count: &AtomicU64, more: u64) {
    count.store(
        count.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}
