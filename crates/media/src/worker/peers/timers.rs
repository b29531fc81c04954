//! When which peer has something to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Deadlines of peers. A deadline that moved leaves its old entry behind; it is recognised as stale
/// when its time comes.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Timers {
    /// The peer in `slot` has something to do at `at`.
    pub(super) fn set(&mut self, slot: usize, at: Instant) {
        self.heap.push(Reverse((at, slot)));
    }

    /// The next deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next peer whose deadline has come, with the deadline.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, usize)> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
