//! The packets of one encoding, shared by all sinks: what retransmission is answered from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;

use super::Packet;

/// Slots that a history starts with.
const FIRST_SLOTS: usize = 32;
/// Slots that a history grows to at most: 1,024 packets of a 12 Mbit/s stream are a second.
const MAX_SLOTS: usize = 1_024;

/// A ring of packets by sequence number. It grows until it spans `window`, then reuses its buffers.
#[derive(Debug)]
pub(crate) struct History {
    slots: Vec<Option<Arc<Packet>>>,
    window: Duration,
}

impl History {
    /// An empty history of the packets of the last `window`.
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            slots: Vec::new(),
            window,
        }
    }

    /// A packet to be filled and put back by [`History::insert`]: the buffer of the one that `seq`
    /// displaces, if nobody else holds it any more, else a `spare` one.
    pub(crate) fn recycle(
        &mut self,
        seq: SeqNo,
        now: Instant,
        spare: impl FnOnce() -> Option<Arc<Packet>>,
    ) -> Arc<Packet> {
        self.make_room(seq, now);
        let displaced = self.slot(seq).and_then(Option::take);
        match displaced.map(|mut packet| (Arc::get_mut(&mut packet).is_some(), packet)) {
            Some((true, packet)) => packet,
            Some((false, _)) | None => spare().unwrap_or_else(|| Arc::new(Packet::empty(now))),
        }
    }

    /// Keeps a packet.
    pub(crate) fn insert(&mut self, packet: Arc<Packet>, now: Instant) {
        self.make_room(packet.seq, now);
        if let Some(slot) = self.slot(packet.seq) {
            *slot = Some(packet);
        }
    }

    /// The packet with this number, if it is still here.
    pub(crate) fn get(&self, seq: SeqNo) -> Option<&Arc<Packet>> {
        let mask = self.slots.len().checked_sub(1)?;
        let packet = self.slots.get(seq.0 as usize & mask)?.as_ref()?;
        (packet.seq == seq).then_some(packet)
    }

    /// Frees everything: the stream went silent.
    pub(crate) fn clear(&mut self) {
        self.slots = Vec::new();
    }

    fn slot(&mut self, seq: SeqNo) -> Option<&mut Option<Arc<Packet>>> {
        let mask = self.slots.len().checked_sub(1)?;
        self.slots.get_mut(seq.0 as usize & mask)
    }

    /// Grows when the packet that `seq` displaces is younger than the window.
    fn make_room(&mut self, seq: SeqNo, now: Instant) {
        if self.slots.is_empty() {
            self.slots.resize(FIRST_SLOTS, None);
        }
        let window = self.window;
        let young = |slot: &Option<Arc<Packet>>| {
            slot.as_ref()
                .is_some_and(|p| p.seq != seq && now.saturating_duration_since(p.arrival) < window)
        };
        while self.slots.len() < MAX_SLOTS && self.slot(seq).is_some_and(|slot| young(slot)) {
            let slots = self.slots.len() * 2;
            let old = std::mem::replace(&mut self.slots, vec![None; slots]);
            for packet in old.into_iter().flatten() {
                if let Some(slot) = self.slot(packet.seq) {
                    *slot = Some(packet);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
    fn it_is_bounded_whatever_the_rate() {
        let now = Instant::now();
        let mut history = History::new(Duration::from_secs(1));
        fill(&mut history, 0..10_000, now);
        assert_eq!(history.slots.len(), MAX_SLOTS);
    }
}
