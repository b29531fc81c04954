//! Collectors: packets of many audio sources, for a thread that polls them by its own clock. No
//! packet wakes it, and silent sources cost nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;

use super::{Handed, TappedPacket};

/// The number of packets that a source may queue at once.
const BURST: u32 = 256;
/// The time between two more of them: audio has 400 packets a second at most (frames of 2.5 ms).
const PERIOD: Duration = Duration::from_millis(2);

/// Collects packets of the sources of [`crate::MediaPlane::collect`]. Dropping it ends that.
#[derive(Debug)]
pub struct Collector {
    shared: Arc<Shared>,
}

/// A packet of a source.
#[derive(Debug)]
pub struct Collected {
    /// The key that the source was given.
    pub key: u64,
    /// The packet.
    pub packet: TappedPacket,
}

#[derive(Debug)]
struct Shared {
    queue: ArrayQueue<Collected>,
    dropped: AtomicU64,
    gone: AtomicBool,
}

/// The worker's end for one source.
#[derive(Debug)]
pub(crate) struct CollectInput {
    shared: Arc<Shared>,
    key: u64,
    /// The number of packets that it may queue now, so that one source cannot fill the queue.
    left: u32,
    since: Option<Instant>,
}

impl Collector {
    /// Returns a collector for up to `capacity` packets. Further ones are dropped and counted.
    pub fn new(capacity: usize) -> Self {
        let shared = Shared {
            queue: ArrayQueue::new(capacity.max(1)),
            dropped: AtomicU64::new(0),
            gone: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Takes the next packet.
    pub fn take(&self) -> Option<Collected> {
        self.shared.queue.pop()
    }

    /// Packets dropped so far, because the queue was full or their source had sent too many.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}

impl CollectInput {
    /// Returns the input of the source `key`.
    pub(crate) fn new(into: &Collector, key: u64) -> Self {
        Self {
            shared: Arc::clone(&into.shared),
            key,
            left: BURST,
            since: None,
        }
    }

    pub(crate) fn hand(&mut self, packet: TappedPacket) -> Handed {
        if self.shared.gone.load(Ordering::Relaxed) {
            return Handed::Ended;
        }
        let key = self.key;
        if !self.may(packet.arrival()) || self.shared.queue.push(Collected { key, packet }).is_err()
        {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return Handed::Dropped;
        }
        Handed::Queued
    }

    fn may(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let periods = now.saturating_duration_since(since).as_millis() / PERIOD.as_millis();
        let periods = u32::try_from(periods).unwrap_or(BURST).min(BURST);
        if periods > 0 {
            self.left = self.left.saturating_add(periods).min(BURST);
            self.since = Some(now);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_does_not_fill_the_queue_for_all() {
        let collector = Collector::new(16);
        let mut input = CollectInput::new(&collector, 1);
        let start = Instant::now();
        let taken = |input: &mut CollectInput, at| (0..1_000).filter(|_| input.may(at)).count();
        assert_eq!(taken(&mut input, start), BURST as usize);
        assert_eq!(taken(&mut input, start + Duration::from_millis(1)), 0);
        assert_eq!(taken(&mut input, start + Duration::from_millis(20)), 10);
        let later = start + Duration::from_secs(60);
        assert_eq!(taken(&mut input, later), BURST as usize);
    }
}
