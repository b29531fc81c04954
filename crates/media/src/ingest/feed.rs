//! Packets from the control plane: a bounded queue on which neither side waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;
use tokio::sync::mpsc;

use super::{MAX_PACKET, Refused};
use crate::wakeup::Wakeup;

/// The maximum number of queued packets: half a second of a fast stream.
const CAPACITY: usize = 1_024;

/// The sending end, for the control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PacketFeed {
    shared: Arc<Shared>,
}

/// The receiving end, for [`super::IngestFeed::Packets`].
#[derive(Debug)]
pub struct PacketReceiver {
    shared: Arc<Shared>,
    encodings: u8,
    rtcp: Option<mpsc::Sender<Vec<u8>>>,
}

/// Why a packet was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The worker does not keep up. The packet is dropped and counted.
    #[error("{CAPACITY} packets wait already")]
    Full,
    /// The packet is too long to be relayed. It is dropped and counted.
    #[error("a packet of {0} bytes is longer than {MAX_PACKET}")]
    TooLong(usize),
    /// The ingest is gone.
    #[error("the ingest is gone")]
    Gone,
}

/// An entry of the queue.
#[derive(Debug)]
pub(crate) enum FeedEntry {
    /// A packet of an encoding.
    Packet { encoding: u8, bytes: Vec<u8> },
    /// The NTP time (32.32 bits) and timestamp of a sender report of an encoding.
    Report {
        encoding: u8,
        ntp: u64,
        timestamp: u32,
    },
}

#[derive(Debug)]
struct Shared {
    queue: ArrayQueue<FeedEntry>,
    /// Used buffers.
    spare: ArrayQueue<Vec<u8>>,
    /// Wakes the worker, once there is one.
    wakeup: OnceLock<Arc<Wakeup>>,
    /// The worker has been notified.
    told: AtomicBool,
    gone: AtomicBool,
    /// Packets dropped since the worker last looked: those that were too long, and those that found
    /// the queue full.
    too_long: AtomicU64,
    overrun: AtomicU64,
}

/// Returns both ends of a feed of RTP packets, or of messages, in `encodings` simulcast encodings
/// (1 to 3).
pub fn packet_feed(encodings: u8) -> (PacketFeed, PacketReceiver) {
    let shared = Arc::new(Shared {
        queue: ArrayQueue::new(CAPACITY),
        spare: ArrayQueue::new(CAPACITY),
        wakeup: OnceLock::new(),
        told: AtomicBool::new(false),
        gone: AtomicBool::new(false),
        too_long: AtomicU64::new(0),
        overrun: AtomicU64::new(0),
    });
    let feed = PacketFeed {
        shared: Arc::clone(&shared),
    };
    let encodings = encodings.clamp(1, 3);
    let receiver = PacketReceiver {
        shared,
        encodings,
        rtcp: None,
    };
    (feed, receiver)
}

impl PacketFeed {
    /// Sends an RTP packet of an encoding (0 is the lowest), or a message. It is relayed
    /// immediately: the caller does the pacing.
    pub fn send(&self, encoding: u8, packet: &[u8]) -> Result<(), FeedError> {
        if packet.len() > MAX_PACKET {
            self.shared.too_long.fetch_add(1, Ordering::Relaxed);
            self.wake();
            return Err(FeedError::TooLong(packet.len()));
        }
        let mut bytes = self.shared.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.push(FeedEntry::Packet { encoding, bytes })
    }

    /// Sends the NTP time (32.32 bits since 1900) of a timestamp in the packets. Viewers need it to
    /// keep audio and video in sync.
    pub fn sender_report(&self, encoding: u8, ntp: u64, timestamp: u32) -> Result<(), FeedError> {
        self.push(FeedEntry::Report {
            encoding,
            ntp,
            timestamp,
        })
    }

    fn push(&self, fed: FeedEntry) -> Result<(), FeedError> {
        let shared = &self.shared;
        if shared.gone.load(Ordering::Relaxed) {
            return Err(FeedError::Gone);
        }
        if shared.queue.push(fed).is_err() {
            shared.overrun.fetch_add(1, Ordering::Relaxed);
            return Err(FeedError::Full);
        }
        self.wake();
        Ok(())
    }

    /// Notifies the worker.
    fn wake(&self) {
        let shared = &self.shared;
        if !shared.told.swap(true, Ordering::AcqRel)
            && let Some(wakeup) = shared.wakeup.get()
        {
            wakeup.wake();
        }
    }
}

impl PacketReceiver {
    /// Sends RTCP for the source to `rtcp`, as compound packets (RFC 3550 section 6.1): keyframe
    /// requests, at most one a second for each encoding, and the bitrate that viewers can take.
    /// They are dropped if the channel is full.
    pub fn with_feedback(mut self, rtcp: mpsc::Sender<Vec<u8>>) -> Self {
        self.rtcp = Some(rtcp);
        self
    }

    /// Whether there is a channel for RTCP.
    pub(crate) fn takes_feedback(&self) -> bool {
        self.rtcp.is_some()
    }

    /// Sends RTCP to the source. Returns whether it was queued.
    pub(crate) fn send_feedback(&self, compound: &[u8]) -> bool {
        let rtcp = self.rtcp.as_ref();
        rtcp.is_some_and(|rtcp| rtcp.try_send(compound.to_vec()).is_ok())
    }

    /// Returns the number of packets dropped since the last call, by reason.
    pub(crate) fn take_refused(&self) -> [(Refused, u64); 2] {
        let take = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        [
            (Refused::TooLong, take(&self.shared.too_long)),
            (Refused::Overrun, take(&self.shared.overrun)),
        ]
    }

    /// The maximum number of encodings.
    pub(crate) fn encodings(&self) -> u8 {
        self.encodings
    }

    /// Sets how the worker is woken.
    pub(crate) fn attach(&self, wakeup: Arc<Wakeup>) {
        // Set only once: a receiver belongs to one ingest.
        let _ = self.shared.wakeup.set(wakeup);
    }

    /// Whether there are packets. Later ones are notified anew, so the caller may take any number,
    /// and calls [`PacketReceiver::postpone`] if some are left.
    pub(crate) fn begin(&self) -> bool {
        self.shared.told.load(Ordering::Relaxed) && self.shared.told.swap(false, Ordering::AcqRel)
    }

    /// Takes the next entry.
    pub(crate) fn pop(&self) -> Option<FeedEntry> {
        self.shared.queue.pop()
    }

    /// Takes the next packet, for tests.
    #[cfg(feature = "testing")]
    pub fn take_packet(&self) -> Option<Vec<u8>> {
        while let Some(fed) = self.pop() {
            if let FeedEntry::Packet { bytes, .. } = fed {
                return Some(bytes);
            }
        }
        None
    }

    /// Notes that entries are left: [`PacketReceiver::begin`] returns true the next time.
    pub(crate) fn postpone(&self) {
        self.shared.told.store(true, Ordering::Release);
    }

    /// Returns a used buffer.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // It is freed if there are enough already.
        let _ = self.shared.spare.push(buffer);
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_is_counted_once() {
        let (feed, receiver) = packet_feed(1);
        let none = [(Refused::TooLong, 0), (Refused::Overrun, 0)];
        assert_eq!(receiver.take_refused(), none);
        assert_eq!(feed.send(0, &[0; 1_801]), Err(FeedError::TooLong(1_801)));
        assert!(receiver.begin(), "the worker is to look");
        for _ in 0..CAPACITY {
            assert_eq!(feed.send(0, &[0; 1_800]), Ok(()));
        }
        for _ in 0..2 {
            assert_eq!(feed.send(0, &[0; 12]), Err(FeedError::Full));
        }
        let counts = [(Refused::TooLong, 1), (Refused::Overrun, 2)];
        assert_eq!(receiver.take_refused(), counts);
        assert_eq!(receiver.take_refused(), none);
    }
}
