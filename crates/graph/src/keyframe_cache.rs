//! The packets of a source from its last keyframe on, for new sinks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::DataRate;
use portunus_rtp::SeqNo;

use super::Packet;
use crate::KeyframeCache;

/// The maximum number of bytes, whatever limit is configured.
const MAX_BYTES: usize = 16 << 20;
const MAX_PACKETS: usize = 8_192;
/// Numbers that go back further are not late: the source has restarted.
const RESTART: u64 = 3_000;
/// The bitrate is measured over one to two periods, so that a keyframe changes it little.
const PERIOD: Duration = Duration::from_secs(2);
/// The minimum time over which bytes are averaged.
const LEAST_PERIOD: Duration = Duration::from_secs(1);
/// How long packets before a keyframe stay available for retransmission, which is as long as in a
/// history.
const ASKED_FOR: Duration = Duration::from_secs(1);

/// The packets from the last keyframe on, in the order of their numbers.
#[derive(Debug)]
pub struct CachedFrames {
    limits: KeyframeCache,
    packets: Vec<Arc<Packet>>,
    bytes: usize,
    /// The bytes of the keyframe.
    keyframe_bytes: usize,
    /// The limits were reached: later packets are not kept.
    full: bool,
    /// The limits were reached: later packets are kept only for sinks that started before.
    beyond: bool,
    /// Until when later packets are kept for such sinks.
    held_until: Option<Instant>,
    /// The packets before the keyframe, in the order of their numbers, if sinks were still catching
    /// up.
    before: Vec<Arc<Packet>>,
    inflow: Option<Inflow>,
    /// Packets whose buffers can be used again once nobody holds them.
    spare: VecDeque<Arc<Packet>>,
}

impl CachedFrames {
    /// Returns an empty cache with these limits.
    pub fn new(limits: KeyframeCache) -> Self {
        Self {
            limits,
            packets: Vec::new(),
            bytes: 0,
            keyframe_bytes: 0,
            full: false,
            beyond: false,
            held_until: None,
            before: Vec::new(),
            inflow: None,
            spare: VecDeque::new(),
        }
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: KeyframeCache) {
        self.limits = limits;
    }

    /// The packets, from the start of the keyframe on.
    #[inline]
    pub fn packets(&self) -> &[Arc<Packet>] {
        &self.packets
    }

    /// Whether a sink that gets these packets misses nothing before the next ones.
    #[inline]
    pub fn is_whole(&self) -> bool {
        !self.packets.is_empty() && !self.full && !self.beyond
    }

    /// Returns the packets from number `seq` on.
    #[inline]
    pub fn packets_from(&self, seq: SeqNo) -> &[Arc<Packet>] {
        let at = self.packets.partition_point(|packet| packet.seq < seq);
        self.packets.get(at..).unwrap_or_default()
    }

    /// Returns the size of the keyframe in bytes if `packet` belongs to it.
    #[inline]
    pub fn keyframe_with(&self, packet: &Packet) -> Option<usize> {
        let first = self.packets.first()?;
        (first.header.timestamp == packet.header.timestamp).then_some(self.keyframe_bytes)
    }

    /// Returns the present bitrate of the source.
    pub fn rate(&self) -> DataRate {
        self.inflow.as_ref().map_or(DataRate::ZERO, Inflow::rate)
    }

    /// Whether the keyframe is older than the time limit.
    pub fn is_old(&self, now: Instant) -> bool {
        let max_age = self.limits.max_age;
        let first = self.packets.first();
        let age = first.map(|first| now.saturating_duration_since(first.arrival));
        !max_age.is_zero() && age.is_some_and(|age| age > max_age)
    }

    /// Drops all packets: new sinks get nothing before the next keyframe.
    fn clear(&mut self) {
        self.forget_before();
        for packet in self.packets.drain(..) {
            set_aside(&packet, &mut self.spare);
        }
        (self.full, self.beyond) = (false, false);
        (self.bytes, self.keyframe_bytes) = (0, 0);
    }

    /// Keeps later packets until `until` whatever the limits, for sinks that are still catching up.
    /// If a keyframe comes before that, the packets before it stay available for a while, as some
    /// may have been lost.
    pub fn hold(&mut self, until: Instant) {
        self.held_until = self.held_until.max(Some(until));
    }

    /// Returns the packet with this number, which may be before the keyframe.
    #[inline]
    pub fn get(&self, seq: SeqNo) -> Option<&Arc<Packet>> {
        let packets = match self.packets.first() {
            Some(first) if seq < first.seq => &self.before,
            _ => &self.packets,
        };
        let at = packets.binary_search_by_key(&seq, |p| p.seq).ok()?;
        packets.get(at)
    }

    /// Returns a packet whose buffer can be used again.
    pub fn take_spare(&mut self) -> Option<Arc<Packet>> {
        let mut oldest = self.spare.pop_front()?;
        if Arc::get_mut(&mut oldest).is_none() {
            self.spare.push_front(oldest);
            return None;
        }
        Some(oldest)
    }

    /// Takes a packet of the source.
    #[inline]
    pub fn push(&mut self, packet: &Arc<Packet>) {
        let time = packet.header.timestamp;
        let inflow = self.inflow.get_or_insert(Inflow::new(packet.arrival));
        inflow.record(packet.data.len(), packet.arrival);
        if self
            .packets
            .first()
            .is_some_and(|first| first.stretch != packet.stretch)
        {
            self.clear();
        }
        let Some(first) = self.packets.first() else {
            if packet.layers.keyframe {
                self.keep(packet);
            }
            return;
        };
        let of_keyframe = first.header.timestamp == time;
        let (start, arrival) = (first.seq, first.arrival);
        let age = packet.arrival.saturating_duration_since(arrival);
        if age >= ASKED_FOR {
            self.forget_before();
        }
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
        let beyond = !max_age.is_zero() && age > max_age || max_bytes > 0 && bytes > max_bytes;
        let is_held = self.held_until.is_some_and(|at| packet.arrival < at);
        self.beyond |= beyond && !of_keyframe;
        if beyond && !of_keyframe && !is_held
            || bytes > MAX_BYTES
            || self.packets.len() >= MAX_PACKETS
        {
            self.full = true;
            return;
        }
        self.keep(packet);
    }

    /// Starts over at a new keyframe. Some packets of it may have arrived before its first.
    fn begin(&mut self, packet: &Arc<Packet>) {
        let time = packet.header.timestamp;
        self.forget_before();
        let is_held = self.held_until.is_some_and(|at| packet.arrival < at);
        // After a restart of the source, old numbers mean other packets.
        let goes_on = self
            .packets
            .first()
            .is_some_and(|first| first.seq < packet.seq);
        let (before, spare) = (&mut self.before, &mut self.spare);
        let bytes = &mut self.bytes;
        self.packets.retain(|kept| {
            let stays = kept.header.timestamp == time && kept.seq > packet.seq;
            if !stays {
                *bytes -= kept.data.len();
                if is_held && goes_on {
                    before.push(Arc::clone(kept));
                } else {
                    set_aside(kept, spare);
                }
            }
            stays
        });
        (self.full, self.beyond) = (false, false);
        self.keyframe_bytes = self.bytes;
        self.keep(packet);
    }

    /// Drops the packets before the keyframe.
    fn forget_before(&mut self) {
        for packet in self.before.drain(..) {
            set_aside(&packet, &mut self.spare);
        }
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
        if self.keyframe_with(packet).is_some() {
            self.keyframe_bytes += packet.data.len();
        }
    }
}

/// Keeps a dropped packet for its buffer, unless the history still uses that itself.
fn set_aside(packet: &Arc<Packet>, spare: &mut VecDeque<Arc<Packet>>) {
    if Arc::strong_count(packet) == 1 && spare.len() < MAX_PACKETS {
        spare.push_back(Arc::clone(packet));
    }
}

/// Measures the bitrate.
#[derive(Debug)]
struct Inflow {
    /// When this period began, and its bytes.
    since: Instant,
    bytes: usize,
    /// The length of the period before and its bytes.
    before: (Duration, usize),
    last: Instant,
}

impl Inflow {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            bytes: 0,
            before: (Duration::ZERO, 0),
            last: now,
        }
    }

    fn record(&mut self, bytes: usize, now: Instant) {
        let length = now.saturating_duration_since(self.since);
        if length >= PERIOD {
            self.before = (length, self.bytes);
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = now;
    }

    fn rate(&self) -> DataRate {
        let (length, bytes) = self.before;
        let length = length + self.last.saturating_duration_since(self.since);
        let bytes = self.bytes.saturating_add(bytes) as u64;
        DataRate::of(bytes, length.max(LEAST_PERIOD)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::time::{Duration, Instant};

    use super::*;

    struct Rig {
        cache: CachedFrames,
        start: Instant,
        stretch: u8,
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
                stretch: 0,
            }
        }

        /// A packet of 100 bytes of the frame that was taken at `ms`.
        fn push(&mut self, seq: u64, ms: u64, keyframe: bool) {
            let mut packet = Packet::empty(self.start + Duration::from_millis(ms));
            packet.fill(&[0; 100]);
            packet.seq = SeqNo(seq);
            packet.stretch = self.stretch;
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
    fn what_sinks_still_need_is_kept_beyond_the_limits() {
        let mut rig = Rig::new(100, 0);
        rig.push(1, 0, true);
        rig.cache.hold(rig.start + Duration::from_millis(300));
        rig.push(2, 250, false);
        assert!(!rig.cache.is_whole(), "for others");
        rig.push(3, 300, false);
        assert_eq!(rig.seqs(), [1, 2]);
        assert!(!rig.cache.is_whole());
        let from = |seq| rig.cache.packets_from(SeqNo(seq)).len();
        assert_eq!([0, 1, 2, 3].map(from), [2, 2, 1, 0]);
    }

    #[test]
    fn what_sinks_were_getting_before_a_keyframe_is_here_for_a_second() {
        let mut rig = Rig::new(0, 0);
        let ms = |rig: &Rig, ms| rig.start + Duration::from_millis(ms);
        let has = |rig: &Rig, seq| rig.cache.get(SeqNo(seq)).is_some();
        rig.push(11, 0, true);
        rig.push(12, 33, false);
        rig.cache.hold(ms(&rig, 5_000));
        // The second packet of the keyframe comes first.
        rig.push(14, 4_500, false);
        rig.push(13, 4_500, true);
        assert_eq!(rig.seqs(), [13, 14]);
        assert!(has(&rig, 11) && has(&rig, 12) && has(&rig, 13) && has(&rig, 14));
        assert_eq!(rig.cache.bytes, 200);
        rig.push(15, 5_499, false);
        assert!(has(&rig, 12));
        rig.push(16, 5_500, false);
        assert!(!has(&rig, 11) && !has(&rig, 12) && has(&rig, 15));
        assert_eq!(rig.cache.take_spare().unwrap().seq.0, 11);
        rig.push(17, 6_000, true);
        assert!(!has(&rig, 16), "nobody was getting it");
        rig.cache.hold(ms(&rig, 9_000));
        rig.push(18, 6_100, true);
        assert!(has(&rig, 17));
        rig.push(19, 6_200, true);
        assert!(!has(&rig, 17) && has(&rig, 18), "one group");
    }

    #[test]
    fn what_a_source_sent_before_it_began_anew_is_forgotten() {
        let mut rig = Rig::new(0, 0);
        rig.push(10_000, 0, true);
        rig.cache.hold(rig.start + Duration::from_secs(5));
        rig.push(5, 100, true);
        assert!(rig.cache.get(SeqNo(5)).is_some());
        assert!(rig.cache.get(SeqNo(10_000)).is_none() && rig.cache.before.is_empty());
    }

    #[test]
    fn what_another_sender_goes_on_with_does_not_follow_what_is_here() {
        let mut rig = Rig::new(0, 0);
        rig.push(1, 0, true);
        rig.push(2, 33, false);
        rig.stretch = 1;
        rig.push(3, 66, false);
        assert!(rig.seqs().is_empty() && !rig.cache.is_whole());
        assert_eq!((rig.cache.bytes, rig.cache.keyframe_bytes), (0, 0));
        rig.push(4, 99, true);
        rig.push(5, 132, false);
        assert_eq!(rig.seqs(), [4, 5]);
        rig.stretch = 2;
        rig.push(6, 165, true);
        assert_eq!(rig.seqs(), [6]);
        assert!(rig.cache.is_whole());
    }

    #[test]
    fn what_is_here_grows_old_while_nothing_comes() {
        let mut rig = Rig::new(100, 0);
        let at = |rig: &Rig, ms| rig.start + Duration::from_millis(ms);
        assert!(!rig.cache.is_old(at(&rig, 1_000)));
        rig.push(1, 50, true);
        assert!(!rig.cache.is_old(at(&rig, 150)));
        assert!(rig.cache.is_old(at(&rig, 151)));
        rig.push(2, 200, true);
        assert!(!rig.cache.is_old(at(&rig, 200)));
        let mut rig = Rig::new(0, 100);
        rig.push(1, 0, true);
        assert!(!rig.cache.is_old(at(&rig, 1_000_000)), "no bound in time");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rig = Rig::new(0, 0);
        assert_eq!(rig.cache.rate(), DataRate::ZERO);
        for n in 0..400 {
            rig.push(n, n * 10, n == 0);
        }
        assert_eq!(rig.cache.rate().as_bps() / 1_000, 80);
        for n in 400..1_000 {
            rig.push(n, 4_000 + (n - 400) * 5, n == 700);
        }
        assert_eq!(rig.cache.rate().as_bps() / 1_000, 160);
        assert_eq!(rig.cache.keyframe_bytes, 100);
        rig.push(1_000, 8_000, true);
        rig.push(1_001, 8_000, true);
        assert_eq!(rig.cache.keyframe_bytes, 200);
    }

    #[test]
    fn order_is_by_number() {
        let mut rig = Rig::new(1_000, 0);
        rig.push(10, 0, true);
        rig.push(12, 33, false);
        rig.push(11, 33, false);
        rig.push(11, 33, false);
        assert_eq!(rig.seqs(), [10, 11, 12]);
        // The keyframe's second packet comes before its first, and its parameter sets have one
        // time.
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
