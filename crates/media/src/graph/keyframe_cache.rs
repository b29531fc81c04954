//! What a source sent from its last keyframe on, for new sinks.

use std::collections::VecDeque;
use std::sync::Arc;

use portunus_rtp::SeqNo;

use super::Packet;
use crate::KeyframeCache;

/// Whatever is asked for, no more than this is kept.
const MAX_BYTES: usize = 16 << 20;
const MAX_PACKETS: usize = 8_192;
/// Numbers so far back are not late, but of a source that began anew.
const RESTART: u64 = 3_000;

/// The packets from the last keyframe on, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct CachedFrames {
    limits: KeyframeCache,
    packets: Vec<Arc<Packet>>,
    bytes: usize,
    /// The limits were reached: what follows is not here.
    full: bool,
    /// Packets that were here before, to be written again once nobody holds them.
    spare: VecDeque<Arc<Packet>>,
}

impl CachedFrames {
    pub(crate) fn new(limits: KeyframeCache) -> Self {
        Self {
            limits,
            packets: Vec::new(),
            bytes: 0,
            full: false,
            spare: VecDeque::new(),
        }
    }

    pub(crate) fn set_limits(&mut self, limits: KeyframeCache) {
        self.limits = limits;
    }

    /// The packets, from the start of the keyframe on.
    pub(crate) fn packets(&self) -> &[Arc<Packet>] {
        &self.packets
    }

    /// Whether a sink that gets them misses nothing of what comes next.
    pub(crate) fn is_whole(&self) -> bool {
        !self.packets.is_empty() && !self.full
    }

    /// The packet with this number.
    pub(crate) fn get(&self, seq: SeqNo) -> Option<&Arc<Packet>> {
        let at = self.packets.binary_search_by_key(&seq, |p| p.seq).ok()?;
        self.packets.get(at)
    }

    /// A packet that nobody holds any more.
    pub(crate) fn take_spare(&mut self) -> Option<Arc<Packet>> {
        let mut oldest = self.spare.pop_front()?;
        if Arc::get_mut(&mut oldest).is_none() {
            self.spare.push_front(oldest);
            return None;
        }
        Some(oldest)
    }

    /// Takes a packet of the source.
    pub(crate) fn push(&mut self, packet: &Arc<Packet>) {
        let time = packet.header.timestamp;
        let Some(first) = self.packets.first() else {
            if packet.layers.keyframe {
                self.keep(packet);
            }
            return;
        };
        let of_keyframe = first.header.timestamp == time;
        let (start, arrival) = (first.seq, first.arrival);
        if packet.layers.keyframe && !of_keyframe {
            if packet.seq > start || packet.seq.0 + RESTART < start.0 {
                self.begin(packet);
            }
            return;
        }
        if packet.seq < start || self.full && !of_keyframe {
            return;
        }
        let KeyframeCache { max_age, max_bytes } = self.limits;
        let bytes = self.bytes + packet.data.len();
        let age = packet.arrival.saturating_duration_since(arrival);
        let beyond = !max_age.is_zero() && age > max_age || max_bytes > 0 && bytes > max_bytes;
        if beyond && !of_keyframe || bytes > MAX_BYTES || self.packets.len() >= MAX_PACKETS {
            self.full = true;
            return;
        }
        self.keep(packet);
    }

    /// A new keyframe. Packets of it may have come before its first.
    fn begin(&mut self, packet: &Arc<Packet>) {
        let time = packet.header.timestamp;
        let (spare, bytes) = (&mut self.spare, &mut self.bytes);
        self.packets.retain(|kept| {
            let stays = kept.header.timestamp == time && kept.seq > packet.seq;
            if !stays {
                *bytes -= kept.data.len();
                // What the history has still, or keeps for its buffer, it uses again itself.
                if Arc::strong_count(kept) == 1 && spare.len() < MAX_PACKETS {
                    spare.push_back(Arc::clone(kept));
                }
            }
            stays
        });
        self.full = false;
        self.keep(packet);
    }

    fn keep(&mut self, packet: &Arc<Packet>) {
        let after = self.packets.iter().rev().take_while(|p| p.seq > packet.seq);
        let at = self.packets.len() - after.count();
        let before = at
            .checked_sub(1)
            .and_then(|before| self.packets.get(before));
        if before.is_some_and(|before| before.seq == packet.seq) {
            return;
        }
        self.bytes += packet.data.len();
        self.packets.insert(at, Arc::clone(packet));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use super::*;

    struct Rig {
        cache: CachedFrames,
        start: Instant,
    }

    impl Rig {
        fn new(max_ms: u64, max_bytes: usize) -> Self {
            let limits = KeyframeCache {
                max_age: Duration::from_millis(max_ms),
                max_bytes,
            };
            Self {
                cache: CachedFrames::new(limits),
                start: Instant::now(),
            }
        }

        /// A packet of 100 bytes of the frame that was taken at `ms`.
        fn push(&mut self, seq: u64, ms: u64, keyframe: bool) {
            let mut packet = Packet::empty(self.start + Duration::from_millis(ms));
            packet.fill(&[0; 100]);
            packet.seq = SeqNo(seq);
            packet.header.timestamp = ms as u32 * 90;
            packet.layers.keyframe = keyframe;
            self.cache.push(&Arc::new(packet));
        }

        fn seqs(&self) -> Vec<u64> {
            self.cache.packets().iter().map(|p| p.seq.0).collect()
        }
    }

    #[test]
    fn it_begins_anew_with_each_keyframe() {
        let mut rig = Rig::new(1_000, 0);
        rig.push(1, 0, false);
        assert!(rig.seqs().is_empty());
        rig.push(2, 33, true);
        rig.push(3, 33, false);
        rig.push(4, 66, false);
        assert_eq!(rig.seqs(), [2, 3, 4]);
        assert!(rig.cache.is_whole());
        rig.push(5, 99, true);
        assert_eq!(rig.seqs(), [5]);
        assert_eq!(rig.cache.bytes, 100);
        // What was displaced is used again.
        assert_eq!(rig.cache.take_spare().unwrap().seq.0, 2);
    }

    #[test]
    fn the_keyframe_is_kept_whole_and_the_rest_up_to_the_limits() {
        let mut rig = Rig::new(100, 0);
        rig.push(1, 0, true);
        rig.push(2, 100, false);
        rig.push(3, 133, false);
        rig.push(4, 50, false);
        assert_eq!(rig.seqs(), [1, 2]);
        assert!(!rig.cache.is_whole());
        let mut rig = Rig::new(0, 250);
        for seq in 1..=4 {
            rig.push(seq, 0, seq == 1);
        }
        rig.push(5, 33, false);
        assert_eq!(rig.seqs(), [1, 2, 3, 4]);
    }

    #[test]
    fn order_is_by_number() {
        let mut rig = Rig::new(1_000, 0);
        rig.push(10, 0, true);
        rig.push(12, 33, false);
        rig.push(11, 33, false);
        rig.push(11, 33, false);
        assert_eq!(rig.seqs(), [10, 11, 12]);
        // The keyframe's second packet comes before its first, and its parameter sets have one time.
        rig.push(14, 66, false);
        rig.push(13, 66, true);
        rig.push(15, 66, true);
        assert_eq!(rig.seqs(), [13, 14, 15]);
        // A late keyframe is not the last one.
        rig.push(9, 0, true);
        assert_eq!(rig.seqs(), [13, 14, 15]);
        assert_eq!(rig.cache.get(SeqNo(14)).unwrap().seq.0, 14);
        assert!(rig.cache.get(SeqNo(16)).is_none());
    }
}
