//! Feeds of threads: packets for many ingests of a worker by one bounded queue, and what they change for routes.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;

use super::{FeedError, IngestId, MAX_PACKET};
use crate::command::Command;
use crate::inbox::Inbox;
use crate::{MediaPlane, RouteId};

/// Packets and changes on their way: those of some thousand mixes in a moment.
const CAPACITY: usize = 8_192;

/// A clock that ingests have in common ([`super::RtpIngest::clock`]): their timestamps stand for the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedClock(NonZeroU64);

/// A thread's end of its way to a worker: packets of ingests of [`super::IngestFeed::Thread`], and routes that go on from another of
/// them. What was asked of the worker before something is sent here is done before that.
///
/// Everything takes effect in the order in which it was sent, once [`ThreadFeed::deliver`] is called.
#[derive(Debug)]
pub struct ThreadFeed {
    shared: Arc<Shared>,
    inbox: Option<Arc<Inbox>>,
    sent: bool,
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct ThreadFeedEnd {
    shared: Arc<Shared>,
}

/// What comes by a feed.
#[derive(Debug)]
pub(crate) enum Delivered {
    Packet {
        ingest: IngestId,
        bytes: Vec<u8>,
    },
    Redirect {
        route: RouteId,
        /// Only if it is from this.
        before: Option<IngestId>,
        from: IngestId,
    },
    Remove {
        ingest: IngestId,
    },
}

#[derive(Debug)]
struct Shared {
    queue: ArrayQueue<Delivered>,
    /// Buffers that were used.
    spare: ArrayQueue<Vec<u8>>,
    /// There is something that the worker has not seen.
    told: AtomicBool,
    /// Either end is gone.
    gone: AtomicBool,
    overrun: AtomicU64,
}

impl SharedClock {
    /// The one of this number.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn of(number: NonZeroU64) -> Self {
        Self(number)
    }
}

impl MediaPlane {
    /// A clock of its own, for ingests that are to share it.
    pub fn shared_clock(&self) -> SharedClock {
        SharedClock(NonZeroU64::new(self.next_id()).unwrap_or(NonZeroU64::MIN))
    }

    /// A way to feed ingests of a worker; there may be as many as threads feed it. It ends when it is dropped.
    pub fn thread_feed(&self, worker: usize) -> ThreadFeed {
        let port = self.ports().get(worker);
        let (feed, end) = thread_feed(port.map(|port| Arc::clone(&port.inbox)));
        if let Ok(worker) = u16::try_from(worker) {
            self.send_to(worker, Command::AddThreadFeed(end));
        }
        feed
    }
}

/// Both ends of a feed of the worker with this inbox.
pub(crate) fn thread_feed(inbox: Option<Arc<Inbox>>) -> (ThreadFeed, ThreadFeedEnd) {
    let shared = Arc::new(Shared {
        queue: ArrayQueue::new(CAPACITY),
        spare: ArrayQueue::new(CAPACITY),
        told: AtomicBool::new(false),
        gone: AtomicBool::new(false),
        overrun: AtomicU64::new(0),
    });
    let end = ThreadFeedEnd {
        shared: Arc::clone(&shared),
    };
    let feed = ThreadFeed {
        shared,
        inbox,
        sent: false,
    };
    (feed, end)
}

impl ThreadFeed {
    /// Sends an RTP packet to an ingest of the worker.
    pub fn send(&mut self, ingest: IngestId, packet: &[u8]) -> Result<(), FeedError> {
        if packet.len() > MAX_PACKET {
            return Err(FeedError::TooLong(packet.len()));
        }
        let mut bytes = self.shared.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.push(Delivered::Packet { ingest, bytes })
    }

    /// Has a route, or an outlet, of the worker go on from another ingest of it. If both share a clock, the receiver sees
    /// one stream: timestamps go on as they are, and what it has heard the time of already is left out.
    pub fn redirect(&mut self, route: RouteId, from: IngestId) -> Result<(), FeedError> {
        self.push(Delivered::Redirect {
            route,
            before: None,
            from,
        })
    }

    /// The same, unless the route is from another ingest than `before` by then: another thread has had it go on from there.
    pub fn redirect_from(
        &mut self,
        route: RouteId,
        before: IngestId,
        from: IngestId,
    ) -> Result<(), FeedError> {
        self.push(Delivered::Redirect {
            route,
            before: Some(before),
            from,
        })
    }

    /// Ends an ingest, as [`MediaPlane::remove_ingest`] does, but after all that was sent before.
    pub fn remove(&mut self, ingest: IngestId) -> Result<(), FeedError> {
        self.push(Delivered::Remove { ingest })
    }

    /// Has the worker take what was sent.
    pub fn deliver(&mut self) {
        if std::mem::take(&mut self.sent)
            && !self.shared.told.swap(true, Ordering::AcqRel)
            && let Some(inbox) = &self.inbox
        {
            inbox.wake();
        }
    }

    /// How much found no room so far.
    pub fn overrun(&self) -> u64 {
        self.shared.overrun.load(Ordering::Relaxed)
    }

    fn push(&mut self, delivered: Delivered) -> Result<(), FeedError> {
        if self.shared.gone.load(Ordering::Relaxed) {
            return Err(FeedError::Gone);
        }
        self.sent = true;
        if self.shared.queue.push(delivered).is_err() {
            self.shared.overrun.fetch_add(1, Ordering::Relaxed);
            return Err(FeedError::Full);
        }
        Ok(())
    }
}

impl Drop for ThreadFeed {
    fn drop(&mut self) {
        self.deliver();
        self.shared.gone.store(true, Ordering::Release);
    }
}

impl ThreadFeedEnd {
    /// How much there is to be taken. What comes after this call is told anew.
    pub(crate) fn count(&self) -> usize {
        let told = &self.shared.told;
        match told.load(Ordering::Relaxed) && told.swap(false, Ordering::AcqRel) {
            true => self.shared.queue.len(),
            false => 0,
        }
    }

    /// The next of it.
    pub(crate) fn pop(&self) -> Option<Delivered> {
        self.shared.queue.pop()
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // Beyond the capacity it is freed.
        let _ = self.shared.spare.push(buffer);
    }

    /// Whether nothing can come any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.gone.load(Ordering::Acquire) && self.shared.queue.is_empty()
    }
}

impl Drop for ThreadFeedEnd {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}
