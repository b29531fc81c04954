//! The log of sent packets, until transport-wide feedback reports on them.

use std::time::{Duration, Instant};

use portunus_rtp::SeqNo;
use portunus_srtp::fetch;

/// The slots of a new log, a power of two: a second of 2 Mbit/s.
const FIRST_SLOTS: usize = 256;
/// The most slots (64 KiB). Packets sent while all of them are awaited are forgotten.
const MAX_SLOTS: usize = 8_192;
/// A packet without a report for this long is not worth more memory. Queues of some seconds exist,
/// and while they are full all depends on the reports.
const AWAITED: Duration = Duration::from_secs(4);
/// Later reports are ignored, since the number has been reused meanwhile.
const FORGOTTEN: Duration = Duration::from_secs(20);
/// Times are kept in units of 2^12 ns with 32 bits: 4.9 h.
const TICK_SHIFT: u32 = 12;

/// The sent packets of a transport that carried a transport-wide number.
///
/// Recording one costs a store of eight bytes. The log grows while more packets are awaited than it
/// holds, up to a bound, and never shrinks.
#[derive(Debug)]
pub struct SentLog {
    epoch: Instant,
    /// Indexed by the low bits of the number.
    slots: Vec<Slot>,
    last: Option<SeqNo>,
    bytes: u64,
    packets: u64,
}

/// A packet on which feedback reports for the first time, or again because it arrived after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// The transport-wide sequence number.
    pub seq: SeqNo,
    /// The time of sending, on a clock that starts with the log.
    pub sent: Duration,
    /// The size in bytes.
    pub bytes: u32,
    /// Whether it was reported lost before.
    pub late: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The time of sending, in ticks.
    at: u32,
    seq: u16,
    /// The size and the report. 0 if the slot is empty.
    size: u16,
}

const ARRIVED: u16 = 0x8000;
const LOST: u16 = 0x4000;
const SIZE: u16 = 0x3fff;

impl SentLog {
    /// Makes an empty log, which has no memory yet.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            slots: Vec::new(),
            last: None,
            bytes: 0,
            packets: 0,
        }
    }

    /// [`fetch`]es the slot for the packet with number `seq`, once the log itself is in the cache.
    #[inline]
    pub fn fetch_slot(&self, seq: u16) {
        let index = usize::from(seq) & self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get(index) {
            fetch(slot);
        }
    }

    /// Records a sent packet of `bytes` with the transport-wide number `seq`. Skipped numbers do
    /// not count as lost.
    #[inline]
    pub fn record(&mut self, seq: u16, bytes: usize, now: Instant) {
        let slot = Slot {
            at: self.ticks(now) as u32,
            seq,
            size: bytes.clamp(1, usize::from(SIZE)) as u16,
        };
        let index = usize::from(seq) & self.slots.len().wrapping_sub(1);
        match self.slots.get_mut(index) {
            Some(place) if !place.is_awaited(slot.at) => *place = slot,
            _ => self.grow(slot),
        }
        self.last = Some(self.last.map_or(SeqNo(seq.into()), |l| l.nearest(seq)));
        self.bytes += u64::from(slot.size);
        self.packets += 1;
    }

    /// Counts sent packets without transport-wide numbers, with `bytes` together.
    #[inline]
    pub fn count(&mut self, packets: u64, bytes: u64) {
        self.bytes += bytes;
        self.packets += packets;
    }

    /// Takes a report that the packet with number `seq` arrived or was lost. Returns `None` if that
    /// is not new, or the packet is unknown.
    pub fn report(&mut self, seq: u16, arrived: bool, now: Instant) -> Option<Reported> {
        let (now, last) = (self.ticks(now), self.last?);
        let index = usize::from(seq) & self.slots.len().wrapping_sub(1);
        let slot = self.slots.get_mut(index)?;
        let age = u64::from((now as u32).wrapping_sub(slot.at));
        let known = slot.seq == seq && slot.size != 0 && age < ticks(FORGOTTEN);
        let told = slot.size & (ARRIVED | LOST);
        if !known || told == ARRIVED || (told == LOST && !arrived) {
            return None;
        }
        let bytes = slot.size & SIZE;
        slot.size = bytes | if arrived { ARRIVED } else { LOST };
        Some(Reported {
            seq: last.nearest(seq),
            sent: duration(now.saturating_sub(age)),
            bytes: bytes.into(),
            late: told == LOST,
        })
    }

    /// Returns the number of the last packet.
    pub fn last(&self) -> Option<SeqNo> {
        self.last
    }

    /// Returns the bytes of all packets so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of packets so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Converts an instant to the clock of [`Reported::sent`].
    pub fn clock(&self, instant: Instant) -> Duration {
        duration(self.ticks(instant))
    }

    fn ticks(&self, instant: Instant) -> u64 {
        ticks(instant.saturating_duration_since(self.epoch))
    }

    /// Makes room for `slot`, whose place is empty, missing or awaited.
    #[cold]
    fn grow(&mut self, slot: Slot) {
        let slots = self.slots.len();
        if slots < MAX_SLOTS {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![Slot::default(); (slots * 2).max(FIRST_SLOTS)];
            for slot in old.into_iter().filter(|slot| slot.size != 0) {
                self.put(slot);
            }
        }
        self.put(slot);
    }

    fn put(&mut self, slot: Slot) {
        let index = usize::from(slot.seq) & self.slots.len().wrapping_sub(1);
        if let Some(place) = self.slots.get_mut(index) {
            *place = slot;
        }
    }
}

impl Slot {
    /// Returns whether a report on the packet is still expected.
    fn is_awaited(self, now: u32) -> bool {
        self.size != 0
            && self.size & (ARRIVED | LOST) == 0
            && u64::from(now.wrapping_sub(self.at)) < ticks(AWAITED)
    }
}

const fn ticks(duration: Duration) -> u64 {
    (duration.as_secs() * 1_000_000_000 + duration.subsec_nanos() as u64) >> TICK_SHIFT
}

const fn duration(ticks: u64) -> Duration {
    Duration::from_nanos(ticks << TICK_SHIFT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_packet_is_reported_once_and_once_more_if_it_came_late() {
        let now = Instant::now();
        let mut log = SentLog::new(now);
        log.record(65_535, 1_200, now + MS);
        log.record(0, 300, now + 2 * MS);
        let later = now + 50 * MS;
        let first = log.report(65_535, true, later).unwrap();
        assert_eq!((first.seq, first.bytes), (SeqNo(65_535), 1_200));
        assert!(first.sent.abs_diff(MS) < Duration::from_micros(5));
        assert_eq!(log.report(65_535, true, later), None);
        assert!(!log.report(0, false, later).unwrap().late);
        assert_eq!(log.report(0, false, later), None);
        let late = log.report(0, true, later).unwrap();
        assert_eq!((late.seq, late.late), (SeqNo(65_536), true));
        assert_eq!(log.report(1, true, later), None, "never sent");
        assert_eq!((log.bytes(), log.packets()), (1_500, 2));
    }

    #[test]
    fn it_grows_while_reports_are_awaited_and_no_further() {
        let now = Instant::now();
        let mut log = SentLog::new(now);
        let seqs = || (0..20_000_u32).map(|seq| seq as u16);
        for seq in seqs() {
            log.record(seq, 100, now);
        }
        assert_eq!(log.slots.len(), MAX_SLOTS);
        let known = seqs().filter(|seq| log.report(*seq, true, now).is_some());
        assert_eq!(known.count(), MAX_SLOTS);

        let mut log = SentLog::new(now);
        for seq in seqs() {
            let at = now + MS * u32::from(seq);
            log.record(seq, 100, at);
            log.report(seq.wrapping_sub(100), true, at);
        }
        assert_eq!(log.slots.len(), FIRST_SLOTS);
    }

    #[test]
    fn a_number_that_was_used_again_is_not_mistaken() {
        let now = Instant::now();
        let mut log = SentLog::new(now);
        log.record(7, 100, now);
        assert_eq!(log.report(7, true, now + FORGOTTEN), None);
        assert_eq!(log.report(7 + 256, true, now), None);
    }
}
