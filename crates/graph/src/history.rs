//! The last packets of one encoding, shared by all sinks, to answer NACKs from.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;
use portunus_srtp::fetch;

use super::Packet;

/// The initial number of slots.
const FIRST_SLOTS: usize = 32;
/// The maximum number of slots: 1,024 packets of a 12 Mbit/s stream are a second.
const MAX_SLOTS: usize = 1_024;
/// When a history shrinks: if displaced packets are 11/5 times older than needed, for the time
/// below. A burst, such as after a stall of reading, makes a history grow. Each shrink doubles the
/// time up to the maximum, so that a source with regular bursts does not allocate each time.
const ROOMY: (u32, u32) = (11, 5);
const ROOMY_FOR: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// The maximum number of displaced packets that others still hold and whose buffers are used again
/// later, and how many of them are checked for a free buffer at a time.
const MAX_HELD: usize = 128;
const LOOKED_AT: usize = 4;

/// A ring of packets by sequence number. It grows until it spans `window`, then reuses its buffers.
/// It shrinks when it has spanned more than twice `window` for some time.
#[derive(Debug)]
pub struct History {
    slots: Vec<Option<Arc<Packet>>>,
    window: Duration,
    /// Packets that were displaced while a pacer, another worker or an outlet held them.
    held: VecDeque<Arc<Packet>>,
    /// Since when half of the slots would suffice, and how long that must last before it shrinks.
    roomy_since: Option<Instant>,
    roomy_for: Duration,
}

impl History {
    /// Returns an empty history for the packets of the last `window`.
    pub fn new(window: Duration) -> Self {
        Self {
            slots: Vec::new(),
            window,
            held: VecDeque::new(),
            roomy_since: None,
            roomy_for: ROOMY_FOR.0,
        }
    }

    /// Changes the time that it spans.
    pub fn set_window(&mut self, window: Duration) {
        self.window = window;
    }

    /// Returns a packet to fill and [insert](History::insert). Reuses the buffer of the packet that
    /// `seq` displaces if nobody else holds it, else one displaced earlier, else `spare`.
    #[inline]
    pub fn recycle(
        &mut self,
        seq: SeqNo,
        now: Instant,
        spare: impl FnOnce() -> Option<Arc<Packet>>,
    ) -> Arc<Packet> {
        self.make_room(seq, now);
        if let Some(mut displaced) = self.slot(seq).and_then(Option::take) {
            if Arc::get_mut(&mut displaced).is_some() {
                return displaced;
            }
            if self.held.len() < MAX_HELD {
                self.held.push_back(displaced);
            }
        }
        self.released()
            .or_else(spare)
            .unwrap_or_else(|| Arc::new(Packet::empty(now)))
    }

    /// Returns a displaced packet that nobody holds any more.
    fn released(&mut self) -> Option<Arc<Packet>> {
        for _ in 0..self.held.len().min(LOOKED_AT) {
            let mut packet = self.held.pop_front()?;
            if Arc::get_mut(&mut packet).is_some() {
                return Some(packet);
            }
            self.held.push_back(packet);
        }
        None
    }

    /// Prefetches the slot of an expected packet. `sequence` is the low half of its number.
    #[inline]
    pub fn fetch_slot(&self, sequence: u16) {
        if let Some(place) = self.place(sequence) {
            fetch(place);
        }
    }

    /// Prefetches the buffer that an expected packet displaces. Its slot should be in the cache
    /// already.
    #[inline]
    pub fn fetch_buffer(&self, sequence: u16) {
        if let Some(packet) = self.place(sequence).and_then(Option::as_deref) {
            fetch(packet);
        }
    }

    fn place(&self, sequence: u16) -> Option<&Option<Arc<Packet>>> {
        let mask = self.slots.len().checked_sub(1)?;
        self.slots.get(usize::from(sequence) & mask)
    }

    /// Stores a packet.
    #[inline]
    pub fn insert(&mut self, packet: Arc<Packet>, now: Instant) {
        self.make_room(packet.seq, now);
        if let Some(slot) = self.slot(packet.seq) {
            *slot = Some(packet);
        }
    }

    /// Returns the packet with this number, if it is still stored.
    #[inline]
    pub fn get(&self, seq: SeqNo) -> Option<&Arc<Packet>> {
        let mask = self.slots.len().checked_sub(1)?;
        let packet = self.slots.get(seq.0 as usize & mask)?.as_ref()?;
        (packet.seq == seq).then_some(packet)
    }

    /// Frees all packets, for a stream that went silent.
    pub fn clear(&mut self) {
        self.slots = Vec::new();
        self.held = VecDeque::new();
        self.roomy_since = None;
    }

    fn slot(&mut self, seq: SeqNo) -> Option<&mut Option<Arc<Packet>>> {
        let mask = self.slots.len().checked_sub(1)?;
        self.slots.get_mut(seq.0 as usize & mask)
    }

    /// Grows if the packet that `seq` displaces is younger than the window. Shrinks if displaced
    /// packets have been much older for some time.
    fn make_room(&mut self, seq: SeqNo, now: Instant) {
        if self.slots.is_empty() {
            self.slots.resize(FIRST_SLOTS, None);
        }
        let window = self.window;
        while self.slots.len() < MAX_SLOTS
            && self.displaced_age(seq, now).is_some_and(|age| age < window)
        {
            self.resize(self.slots.len() * 2);
            self.roomy_since = None;
        }
        let Some(age) = self.displaced_age(seq, now) else {
            return;
        };
        let (times, parts) = ROOMY;
        if age * parts < window * times || self.slots.len() <= FIRST_SLOTS {
            self.roomy_since = None;
            return;
        }
        let since = *self.roomy_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= self.roomy_for {
            self.resize(self.slots.len() / 2);
            self.roomy_since = None;
            self.roomy_for = (self.roomy_for * 2).min(ROOMY_FOR.1);
        }
    }

    /// Returns the age of the packet that `seq` displaces, or `None` if it displaces no other
    /// packet.
    fn displaced_age(&self, seq: SeqNo, now: Instant) -> Option<Duration> {
        let mask = self.slots.len().checked_sub(1)?;
        let packet = self.slots.get(seq.0 as usize & mask)?.as_ref()?;
        (packet.seq != seq).then(|| now.saturating_duration_since(packet.arrival))
    }

    /// Moves all packets to a ring of `slots` slots, a power of two. Of two for one slot, keeps the
    /// newer one.
    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![None; slots]);
        for packet in old.into_iter().flatten() {
            if let Some(slot) = self.slot(packet.seq)
                && slot.as_ref().is_none_or(|there| there.seq < packet.seq)
            {
                *slot = Some(packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn fill(history: &mut History, seqs: std::ops::Range<u64>, now: Instant) {
        for seq in seqs {
            let mut packet = history.recycle(SeqNo(seq), now, || None);
            let inner = Arc::get_mut(&mut packet).unwrap();
            inner.seq = SeqNo(seq);
            inner.arrival = now;
            history.insert(packet, now);
        }
    }

    #[test]
    fn it_grows_to_the_window_and_then_reuses_its_buffers() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        fill(&mut history, 0..100, start);
        assert_eq!(history.slots.len(), 128);
        assert!((0..100).all(|seq| history.get(SeqNo(seq)).is_some()));
        let oldest = Arc::as_ptr(history.get(SeqNo(0)).unwrap());
        fill(&mut history, 100..129, start + Duration::from_secs(2));
        assert_eq!(history.slots.len(), 128);
        assert!(history.get(SeqNo(0)).is_none());
        assert_eq!(Arc::as_ptr(history.get(SeqNo(128)).unwrap()), oldest);
    }

    #[test]
    fn a_buffer_that_was_held_when_it_was_displaced_is_used_again() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        fill(&mut history, 0..32, start);
        let held: Vec<_> = (0..32)
            .map(|seq| Arc::clone(history.get(SeqNo(seq)).unwrap()))
            .collect();
        fill(&mut history, 32..64, start + Duration::from_secs(2));
        assert_eq!(history.held.len(), 32);
        let held_by_us: Vec<_> = held.iter().map(Arc::as_ptr).collect();
        drop(held);
        // Those of the slots are held now.
        let others: Vec<_> = (32..64)
            .map(|seq| Arc::clone(history.get(SeqNo(seq)).unwrap()))
            .collect();
        fill(&mut history, 64..96, start + Duration::from_secs(4));
        let packets = (64..96).map(|seq| Arc::as_ptr(history.get(SeqNo(seq)).unwrap()));
        assert_eq!(packets.filter(|p| held_by_us.contains(p)).count(), 32);
        drop(others);
    }

    #[test]
    fn no_more_is_kept_of_what_is_held_than_a_few_packets() {
        let (mut now, mut held) = (Instant::now(), Vec::new());
        let mut history = History::new(Duration::from_secs(1));
        for round in 0..20 {
            fill(&mut history, round * 32..(round + 1) * 32, now);
            held.extend(history.slots.iter().cloned());
            now += Duration::from_secs(2);
        }
        assert_eq!(history.held.len(), MAX_HELD);
        history.clear();
        assert!(history.held.is_empty());
    }

    #[test]
    fn what_a_burst_made_it_grow_to_is_given_back() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        // 200 packets a second; once nothing is read for a second.
        let at = |seq: u64| {
            let ms = seq * 5;
            let read_ms = if (3_000..4_000).contains(&ms) {
                4_000
            } else {
                ms
            };
            start + Duration::from_millis(read_ms)
        };
        let mut slots = Vec::new();
        for seq in 0..6_000 {
            fill(&mut history, seq..seq + 1, at(seq));
            if slots.last() != Some(&history.slots.len()) {
                slots.push(history.slots.len());
            }
            let kept = (seq.saturating_sub(199)..=seq).all(|seq| history.get(SeqNo(seq)).is_some());
            assert!(kept, "the last second, at {seq}");
        }
        assert_eq!(slots, [32, 64, 128, 256, 512, 256]);
    }

    #[test]
    fn bursts_that_come_again_and_again_change_it_less_and_less() {
        let (start, mut seq, mut changes) = (Instant::now(), 0, 0);
        let mut history = History::new(Duration::from_secs(1));
        // For half an hour 100 packets a second, and each minute 400 at once.
        for tick in 0..180_000 {
            let now = start + Duration::from_millis(tick * 10);
            let before = history.slots.len();
            let packets = if tick % 6_000 == 5_999 { 400 } else { 1 };
            fill(&mut history, seq..seq + packets, now);
            seq += packets;
            changes += u32::from(history.slots.len() != before);
        }
        assert!((8..24).contains(&changes), "{changes}");
    }

    #[test]
    fn a_stream_that_falls_silent_for_a_while_does_not_shrink_it_at_once() {
        let start = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        fill(&mut history, 0..200, start);
        let later = start + Duration::from_secs(60);
        fill(&mut history, 200..260, later);
        assert_eq!(history.slots.len(), 256);
    }

    #[test]
    fn it_is_bounded_whatever_the_rate() {
        let now = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        fill(&mut history, 0..10_000, now);
        assert_eq!(history.slots.len(), MAX_SLOTS);
    }
}
