//! Packets that come late, put in order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

/// So long a missing packet is waited for: as long as a sender is asked for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many packets wait for one at most.
const WAITING: usize = 256;

/// Hands packets out in the order of their numbers. What is missing is waited for, until it is given up.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    /// The number that is handed out next; none before the first packet.
    next: Option<SeqNo>,
    waiting: BTreeMap<SeqNo, (Instant, T)>,
    /// When the last packet came.
    now: Option<Instant>,
    /// Nothing more comes.
    ended: bool,
}

impl<T> InOrder<T> {
    pub(crate) fn new() -> Self {
        Self {
            next: None,
            waiting: BTreeMap::new(),
            now: None,
            ended: false,
        }
    }

    /// Takes a packet that came at `arrival`; false if it was there already, or is given up.
    pub(crate) fn push(&mut self, seq: SeqNo, arrival: Instant, packet: T) -> bool {
        self.now = self.now.max(Some(arrival));
        if seq < *self.next.get_or_insert(seq) || self.waiting.contains_key(&seq) {
            return false;
        }
        self.waiting.insert(seq, (arrival, packet));
        true
    }

    /// Nothing more comes: what is missing is given up.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The packet that is next, if it is there, or nothing before it is waited for any more.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (seq, (arrival, _)) = self.waiting.first_key_value()?;
        let waited = self.now.map(|now| now.saturating_duration_since(*arrival));
        let is_due = Some(*seq) == self.next
            || self.ended
            || self.waiting.len() > WAITING
            || waited.is_some_and(|waited| waited >= PATIENCE);
        if !is_due {
            return None;
        }
        let (seq, (_, packet)) = self.waiting.pop_first()?;
        self.next = Some(SeqNo(seq.0.saturating_add(1)));
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers with the ms at which they come; what is handed out, and how many were not taken.
    fn order(packets: &[(u64, u64)]) -> (Vec<u64>, usize) {
        let start = Instant::now();
        let mut order = InOrder::new();
        let (mut out, mut refused) = (Vec::new(), 0);
        for (seq, at) in packets {
            let taken = order.push(SeqNo(*seq), start + Duration::from_millis(*at), *seq);
            refused += usize::from(!taken);
            out.extend(std::iter::from_fn(|| order.pop()));
        }
        order.end();
        out.extend(std::iter::from_fn(|| order.pop()));
        (out, refused)
    }

    #[test]
    fn late_packets_are_put_in_order_and_doubles_are_left_out() {
        let (out, refused) = order(&[
            (7, 0),
            (9, 40),
            (9, 41),
            (10, 60),
            (8, 70),
            (7, 80),
            (11, 90),
        ]);
        assert_eq!((out, refused), (vec![7, 8, 9, 10, 11], 2));
    }

    #[test]
    fn what_is_lost_is_waited_for_a_second() {
        let lost_and_late = [
            (1, 0),
            (3, 40),
            (4, 1_039),
            (2, 1_039),
            (6, 1_100),
            (7, 2_100),
            (5, 2_101),
        ];
        assert_eq!(order(&lost_and_late), (vec![1, 2, 3, 4, 6, 7], 1));
    }

    #[test]
    fn a_burst_does_not_pile_up() {
        let mut order = InOrder::new();
        let now = Instant::now();
        for seq in (0..1).chain(2..10_000) {
            order.push(SeqNo(seq), now, ());
            while order.pop().is_some() {}
            assert!(order.waiting.len() <= WAITING);
        }
    }

    proptest! {
        #[test]
        fn what_is_handed_out_is_in_order(packets in proptest::collection::vec((0..500_u64, 0..5_000_u64), 0..600)) {
            let (out, refused) = order(&packets);
            prop_assert!(out.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(out.len() + refused, packets.len());
        }
    }
}
