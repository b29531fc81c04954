//! The queue of messages to post for a room.

use std::collections::VecDeque;

use bytes::Bytes;

/// Messages that wait at most.
const MAX_MESSAGES: usize = 1_000;
/// Their bytes at most.
const MAX_BYTES: usize = 1 << 20;

/// Messages in order. A full queue drops the oldest.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    /// A task posts what waits.
    is_emptied: bool,
}

impl Queue {
    /// Adds a message. Returns the number of dropped ones.
    pub(super) fn push(&mut self, message: Bytes) -> u64 {
        self.bytes = self.bytes.saturating_add(message.len());
        self.waiting.push_back(message);
        let mut lost = 0;
        while self.waiting.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            if self.take().is_none() {
                break;
            }
            lost += 1;
        }
        lost
    }

    /// Returns whether no task empties the queue. The caller has to start one then.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_emptied, true)
    }

    /// Returns the next message. The task that empties the queue ends without one.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let next = self.take();
        self.is_emptied = next.is_some();
        next
    }

    fn take(&mut self) -> Option<Bytes> {
        let message = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(message.len());
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_lost_where_there_are_too_many() {
        let mut queue = Queue::default();
        let message = |n: usize| Bytes::from(format!("{n}"));
        let lost: u64 = (0..MAX_MESSAGES + 2).map(|n| queue.push(message(n))).sum();
        assert_eq!(lost, 2);
        assert_eq!(queue.next(), Some(message(2)));
    }

    #[test]
    fn their_bytes_are_bounded_too() {
        let mut queue = Queue::default();
        let message = Bytes::from(vec![b'x'; MAX_BYTES / 4]);
        let lost: u64 = (0..10).map(|_| queue.push(message.clone())).sum();
        assert_eq!((lost, queue.waiting.len(), queue.bytes), (6, 4, MAX_BYTES));
    }

    #[test]
    fn one_empties_it_at_a_time() {
        let mut queue = Queue::default();
        queue.push(Bytes::from_static(b"a"));
        assert!(queue.begin());
        assert!(!queue.begin());
        assert!(queue.next().is_some());
        assert!(!queue.begin());
        assert_eq!(queue.next(), None);
        assert!(queue.begin());
    }
}
