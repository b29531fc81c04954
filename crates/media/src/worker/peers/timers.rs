//! The deadlines of peers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// The deadlines of peers. A changed deadline leaves a stale entry, which is recognized when it is
/// due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Timers {
    /// Adds a deadline of the peer in `slot`.
    pub(super) fn set(&mut self, slot: usize, at: Instant) {
        self.heap.push(Reverse((at, slot)));
    }

    /// The next deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next deadline that has passed, with its peer.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, usize)> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
