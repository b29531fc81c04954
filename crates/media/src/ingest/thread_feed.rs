//! Feeds of threads: one bounded queue with packets for many ingests of a worker, and changes of
//! their routes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use portunus_graph::{IngestId, RouteId};

use super::{FeedError, MAX_PACKET};
use crate::wakeup::Wakeup;

/// The maximum number of queued entries: those of some thousand mixes at a time.
const CAPACITY: usize = 8_192;

/// The sending end of a feed, for a thread: packets for ingests of [`super::IngestFeed::Thread`],
/// and routes that continue from another of these ingests.
///
/// Everything takes effect in order, once [`ThreadFeed::deliver`] is called, and after all commands
/// that the worker got before.
#[derive(Debug)]
pub struct ThreadFeed {
    shared: Arc<Shared>,
    wakeup: Option<Arc<Wakeup>>,
    sent: bool,
}

/// The receiving end, for the worker.
#[derive(Debug)]
pub(crate) struct ThreadFeedEnd {
    shared: Arc<Shared>,
}

/// An entry of a feed.
#[derive(Debug)]
pub(crate) enum ThreadFeedEntry {
    Packet {
        ingest: IngestId,
        bytes: Vec<u8>,
    },
    Redirect {
        route: RouteId,
        /// Only if it still comes from this ingest.
        before: Option<IngestId>,
        from: IngestId,
    },
    Remove {
        ingest: IngestId,
    },
}

#[derive(Debug)]
struct Shared {
    queue: ArrayQueue<ThreadFeedEntry>,
    /// Used buffers.
    spare: ArrayQueue<Vec<u8>>,
    /// There is something that the worker has not seen.
    told: AtomicBool,
    /// One of the ends is gone.
    gone: AtomicBool,
    overrun: AtomicU64,
}

/// Returns both ends of a feed to the worker that `wakeup` wakes.
pub(crate) fn thread_feed(wakeup: Option<Arc<Wakeup>>) -> (ThreadFeed, ThreadFeedEnd) {
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
        wakeup,
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
        self.push(ThreadFeedEntry::Packet { ingest, bytes })
    }

    /// Continues a route or an outlet from another ingest. If both share a clock, the receiver sees
    /// one stream: timestamps stay as they are, and times that it has heard already are dropped.
    pub fn redirect(&mut self, route: RouteId, from: IngestId) -> Result<(), FeedError> {
        self.push(ThreadFeedEntry::Redirect {
            route,
            before: None,
            from,
        })
    }

    /// The same, but only if the route still comes from `before`. Another thread may have
    /// redirected it.
    pub fn redirect_from(
        &mut self,
        route: RouteId,
        before: IngestId,
        from: IngestId,
    ) -> Result<(), FeedError> {
        self.push(ThreadFeedEntry::Redirect {
            route,
            before: Some(before),
            from,
        })
    }

    /// Ends an ingest like [`crate::MediaPlane::remove_ingest`], but after everything that was sent
    /// before.
    pub fn remove(&mut self, ingest: IngestId) -> Result<(), FeedError> {
        self.push(ThreadFeedEntry::Remove { ingest })
    }

    /// Makes the worker take everything that was sent.
    pub fn deliver(&mut self) {
        if std::mem::take(&mut self.sent)
            && !self.shared.told.swap(true, Ordering::AcqRel)
            && let Some(wakeup) = &self.wakeup
        {
            wakeup.wake();
        }
    }

    /// The number of entries dropped so far because the queue was full.
    pub fn overrun(&self) -> u64 {
        self.shared.overrun.load(Ordering::Relaxed)
    }

    fn push(&mut self, delivered: ThreadFeedEntry) -> Result<(), FeedError> {
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
    /// Returns the number of entries. The worker is notified anew of later ones.
    pub(crate) fn count(&self) -> usize {
        let told = &self.shared.told;
        match told.load(Ordering::Relaxed) && told.swap(false, Ordering::AcqRel) {
            true => self.shared.queue.len(),
            false => 0,
        }
    }

    /// Takes the next entry.
    pub(crate) fn pop(&self) -> Option<ThreadFeedEntry> {
        self.shared.queue.pop()
    }

    /// Returns a used buffer.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        // It is freed if there are enough already.
        let _ = self.shared.spare.push(buffer);
    }

    /// Whether no more entries can come.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.gone.load(Ordering::Acquire) && self.shared.queue.is_empty()
    }
}

impl Drop for ThreadFeedEnd {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}
