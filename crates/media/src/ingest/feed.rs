//! Packets from the control plane: a bounded queue that never makes either side wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;
use tokio::sync::mpsc;

use super::{MAX_PACKET, Refused};
use crate::inbox::Inbox;

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
    rtcp: Option<mpsc::Sender<Vec<u8>>>,
}

/// Why a packet was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The worker does not keep up; the packet is dropped and counted.
    #[error("{CAPACITY} packets wait already")]
    Full,
    /// The packet is longer than what is relayed; it is dropped and counted.
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
    /// Packets that were not taken since the worker looked last: too long ones, and those that found the queue full.
    too_long: AtomicU64,
    overrun: AtomicU64,
}

/// A feed of RTP packets, or of messages, in up to `encodings` simulcast encodings (1 to 3).
pub fn packet_feed(encodings: u8) -> (PacketFeed, PacketReceiver) {
    let shared = Arc::new(Shared {
        queue: ArrayQueue::new(CAPACITY),
        spare: ArrayQueue::new(CAPACITY),
        inbox: OnceLock::new(),
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
    /// Hands over an RTP packet (of a data ingest, a message) of an encoding, 0 the lowest. It is relayed
    /// at once: pacing is the caller's.
    pub fn send(&self, encoding: u8, packet: &[u8]) -> Result<(), FeedError> {
        if packet.len() > MAX_PACKET {
            self.shared.too_long.fetch_add(1, Ordering::Relaxed);
            self.tell();
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

    fn push(&self, fed: Fed) -> Result<(), FeedError> {
        let shared = &self.shared;
        if shared.gone.load(Ordering::Relaxed) {
            return Err(FeedError::Gone);
        }
        if shared.queue.push(fed).is_err() {
            shared.overrun.fetch_add(1, Ordering::Relaxed);
            return Err(FeedError::Full);
        }
        self.tell();
        Ok(())
    }

    /// The worker is to look.
    fn tell(&self) {
        let shared = &self.shared;
        if !shared.told.swap(true, Ordering::AcqRel)
            && let Some(inbox) = shared.inbox.get()
        {
            inbox.wake();
        }
    }
}

impl PacketReceiver {
    /// What the source is to be told by RTCP goes to `rtcp` as compound packets (RFC 3550 section 6.1): keyframe requests, at most
    /// one a second for each encoding, and the bitrate that viewers can take. What finds no room there is dropped. Without
    /// this the source is told nothing.
    pub fn telling(mut self, rtcp: mpsc::Sender<Vec<u8>>) -> Self {
        self.rtcp = Some(rtcp);
        self
    }

    /// Whether the source can be told anything.
    pub(crate) fn can_tell(&self) -> bool {
        self.rtcp.is_some()
    }

    /// Tells the source; says whether that is on its way.
    pub(crate) fn tell(&self, compound: &[u8]) -> bool {
        let rtcp = self.rtcp.as_ref();
        rtcp.is_some_and(|rtcp| rtcp.try_send(compound.to_vec()).is_ok())
    }

    /// How many packets were not taken since the last call, and why.
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
