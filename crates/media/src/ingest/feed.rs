//! Packets from the control plane: a bounded queue that never makes either side wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;

use super::MAX_PACKET;
use crate::plane::Inbox;

/// Packets on their way: half a second of a fast stream.
const CAPACITY: usize = 1_024;

/// The control plane's end: packets go in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PacketFeed {
    shared: Arc<Shared>,
}

/// The ingest's end, for [`super::IngestFeed::Packets`].
#[derive(Debug)]
pub struct PacketReceiver {
    shared: Arc<Shared>,
    encodings: u8,
}

/// Why a packet was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The worker does not keep up; the packet is dropped and counted.
    #[error("{CAPACITY} packets wait already")]
    Full,
    /// The packet is longer than what is relayed.
    #[error("a packet of {0} bytes is longer than {MAX_PACKET}")]
    TooLong(usize),
    /// The ingest is gone.
    #[error("the ingest is gone")]
    Gone,
}

/// What waits in the queue.
#[derive(Debug)]
pub(crate) enum Fed {
    /// A packet of an encoding.
    Packet { encoding: u8, bytes: Vec<u8> },
    /// What a sender report of an encoding said: NTP time (32.32 bits) and timestamp.
    Report {
        encoding: u8,
        ntp: u64,
        timestamp: u32,
    },
}

#[derive(Debug)]
struct Shared {
    queue: ArrayQueue<Fed>,
    /// Buffers that were used.
    spare: ArrayQueue<Vec<u8>>,
    /// The worker, once there is one.
    inbox: OnceLock<Arc<Inbox>>,
    /// The worker has been told that there is something.
    told: AtomicBool,
    gone: AtomicBool,
    dropped: AtomicU64,
}

/// A feed of RTP packets, or of messages, in up to `encodings` simulcast encodings (1 to 3).
pub fn packet_feed(encodings: u8) -> (PacketFeed, PacketReceiver) {
    let shared = Arc::new(Shared {
        queue: ArrayQueue::new(CAPACITY),
        spare: ArrayQueue::new(CAPACITY),
        inbox: OnceLock::new(),
        told: AtomicBool::new(false),
        gone: AtomicBool::new(false),
        dropped: AtomicU64::new(0),
    });
    let feed = PacketFeed {
        shared: Arc::clone(&shared),
    };
    let encodings = encodings.clamp(1, 3);
    (feed, PacketReceiver { shared, encodings })
}

impl PacketFeed {
    /// Hands over an RTP packet (of a data ingest, a message) of an encoding, 0 the lowest. It is relayed
    /// at once: pacing is the caller's.
    pub fn send(&self, encoding: u8, packet: &[u8]) -> Result<(), FeedError> {
        if packet.len() > MAX_PACKET {
            return Err(FeedError::TooLong(packet.len()));
        }
        let mut bytes = self.shared.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.push(Fed::Packet { encoding, bytes })
    }

    /// Hands over what a sender report says: NTP time (32.32 bits since 1900) and the timestamp, as it is
    /// in the packets, at that time. It keeps audio and video in step at the viewers.
    pub fn sender_report(&self, encoding: u8, ntp: u64, timestamp: u32) -> Result<(), FeedError> {
        self.push(Fed::Report {
            encoding,
            ntp,
            timestamp,
        })
    }

    /// Packets that found the queue full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    fn push(&self, fed: Fed) -> Result<(), FeedError> {
        let shared = &self.shared;
        if shared.gone.load(Ordering::Relaxed) {
            return Err(FeedError::Gone);
        }
        if shared.queue.push(fed).is_err() {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            return Err(FeedError::Full);
        }
        if !shared.told.swap(true, Ordering::AcqRel)
            && let Some(inbox) = shared.inbox.get()
        {
            inbox.wake();
        }
        Ok(())
    }
}

impl PacketReceiver {
    /// How many encodings it may bring.
    pub(crate) fn encodings(&self) -> u8 {
        self.encodings
    }

    /// The worker to wake.
    pub(crate) fn attach(&self, inbox: Arc<Inbox>) {
        // It is set once: a receiver belongs to one ingest.
        let _ = self.shared.inbox.set(inbox);
    }

    /// Whether something is there. What comes after this call is told anew, so that the caller may pop
    /// as much as it likes, and call [`PacketReceiver::postpone`] if it leaves something.
    pub(crate) fn begin(&self) -> bool {
        self.shared.told.load(Ordering::Relaxed) && self.shared.told.swap(false, Ordering::AcqRel)
    }

    /// The next packet.
    pub(crate) fn pop(&self) -> Option<Fed> {
        self.shared.queue.pop()
    }

    /// The next packet, for tests of what feeds.
    #[cfg(feature = "testing")]
    pub fn take_packet(&self) -> Option<Vec<u8>> {
        while let Some(fed) = self.pop() {
            if let Fed::Packet { bytes, .. } = fed {
                return Some(bytes);
            }
        }
        None
    }

    /// Something was left: [`PacketReceiver::begin`] says so the next time.
    pub(crate) fn postpone(&self) {
        self.shared.told.store(true, Ordering::Release);
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // Beyond the capacity it is freed.
        let _ = self.shared.spare.push(buffer);
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}
