//! Reordering of late packets.

use std::collections::BTreeMap;
use std::time::Duration;

use portunus_rtp::SeqNo;

/// The time for which a missing packet is awaited: as long as senders are asked for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The limit of packets that wait for a missing one.
pub(super) const MAX_WAITING: usize = 2_048;
/// The limit of their bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Returns packets in the order of their numbers. A missing packet is awaited for a second, and
/// while at most 2,048 packets or 4 MiB wait after it.
#[derive(Debug)]
pub struct InOrder<T> {
    /// The next number, or `None` before the first packet.
    next: Option<SeqNo>,
    waiting: BTreeMap<SeqNo, Waiting<T>>,
    /// The bytes of the waiting packets.
    bytes: usize,
    /// The time, as far as it is known.
    now: Duration,
    /// Whether no more packets come.
    ended: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    since: Duration,
    bytes: usize,
    packet: T,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self {
            next: None,
            waiting: BTreeMap::new(),
            bytes: 0,
            now: Duration::ZERO,
            ended: false,
        }
    }
}

impl<T> InOrder<T> {
    /// Returns an order without packets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a packet of so many bytes that came at `arrival`, from any origin. Returns false if it
    /// is a duplicate, or too late.
    pub fn push(&mut self, seq: SeqNo, arrival: Duration, bytes: usize, packet: T) -> bool {
        self.now = self.now.max(arrival);
        if seq < *self.next.get_or_insert(seq) || self.waiting.contains_key(&seq) {
            return false;
        }
        let since = arrival;
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.insert(
            seq,
            Waiting {
                since,
                bytes,
                packet,
            },
        );
        true
    }

    /// Whether a packet that came at `arrival` is the next one, and none waits. It counts as
    /// returned then, and must not be pushed.
    pub fn passes(&mut self, seq: SeqNo, arrival: Duration) -> bool {
        let passes = self.waiting.is_empty() && seq == *self.next.get_or_insert(seq);
        if passes {
            self.now = self.now.max(arrival);
            self.next = Some(after(seq));
        }
        passes
    }

    /// Notes that time passes.
    pub fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Ends the order: missing packets are not awaited any more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether packets wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the next packet, if it is there, or the missing ones before it are not awaited any
    /// more.
    pub fn pop(&mut self) -> Option<T> {
        let (seq, first) = self.waiting.first_key_value()?;
        let is_due = Some(*seq) == self.next
            || self.ended
            || self.waiting.len() > MAX_WAITING
            || self.bytes > MAX_BYTES
            || self.now.saturating_sub(first.since) >= PATIENCE;
        match is_due {
            true => self.take_first(),
            false => None,
        }
    }

    /// Returns the first waiting packet. Missing ones before it are not awaited any more.
    pub fn take_first(&mut self) -> Option<T> {
        let (seq, first) = self.waiting.pop_first()?;
        self.next = Some(after(seq));
        self.bytes = self.bytes.saturating_sub(first.bytes);
        Some(first.packet)
    }
}

fn after(seq: SeqNo) -> SeqNo {
    SeqNo(seq.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes numbers with their arrivals in ms, and returns the output and the number of refused
    /// packets.
    fn order(packets: &[(u64, u64)]) -> (Vec<u64>, usize) {
        let mut order = InOrder::new();
        let (mut out, mut refused) = (Vec::new(), 0);
        for (seq, at) in packets {
            let at = Duration::from_millis(*at);
            if order.passes(SeqNo(*seq), at) {
                out.push(*seq);
                continue;
            }
            refused += usize::from(!order.push(SeqNo(*seq), at, 1_000, *seq));
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
    fn time_that_passes_gives_up_what_is_lost() {
        let mut order = InOrder::new();
        let at = Duration::from_millis;
        assert!(order.passes(SeqNo(1), at(0)));
        assert!(order.push(SeqNo(3), at(40), 1, 3));
        order.tick(at(1_039));
        assert_eq!(order.pop(), None);
        order.tick(at(1_040));
        assert_eq!(order.pop(), Some(3));
        assert!(!order.is_waiting());
    }

    #[test]
    fn a_burst_does_not_pile_up() {
        for bytes in [1, 1_000, 100_000] {
            let mut order = InOrder::new();
            for seq in (0..1).chain(2..10_000) {
                order.push(SeqNo(seq), Duration::ZERO, bytes, ());
                while order.pop().is_some() {}
                assert!(order.waiting.len() <= MAX_WAITING);
                assert!(order.waiting.len() * bytes <= MAX_BYTES);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_handed_out_is_in_order(packets in proptest::collection::vec((0..500_u64, 0..5_000_u64), 0..600)) {
            let (out, refused) = order(&packets);
            prop_assert!(out.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(out.len() + refused, packets.len());
        }

        /// Packets that are displaced by less than the patience, some duplicated and some lost.
        #[test]
        fn each_that_comes_in_time_comes_out_once(
            sent in proptest::collection::vec((0..900_u64, 0..10_u8), 1..400),
        ) {
            // Every 20 ms, with these delays. Of ten packets one is lost and one is duplicated. The
            // first one comes first.
            let mut arrivals = vec![(0, 0)];
            for (seq, (delay, fate)) in (1..).zip(&sent) {
                let times = match fate { 0 => 0, 1 => 2, _ => 1 };
                arrivals.extend((0..times).map(|again| (seq * 20 + delay + again, seq)));
            }
            arrivals.sort_unstable();
            let packets: Vec<_> = arrivals.iter().map(|(at, seq)| (*seq, *at)).collect();
            let mut expected: Vec<_> = packets.iter().map(|(seq, _)| *seq).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(order(&packets).0, expected);
        }
    }
}
