//! Makes one continuous stream of the packets of changing senders: extended sequence numbers
//! without steps back, and timestamps that follow time.

use std::time::{Duration, Instant};

use portunus_rtp::{Header, SeqNo, Ssrc};
use smallvec::SmallVec;

/// How many packets late a packet may be.
const MAX_LATE: i64 = 512;
/// The maximum number of packets missing before a packet (RFC 3550 appendix A.1: MAX_DROPOUT).
const MAX_AHEAD: i64 = 3_000;
/// A jump of sequence numbers after this silence means that the sender restarted. Without silence,
/// two consecutive packets are required (RFC 3550 appendix A.1).
const RESTART_SILENCE: Duration = Duration::from_millis(100);
/// After this silence, a step back also means a restart, and so does a step forward whose timestamp
/// does not match the time that passed.
const LONG_SILENCE: Duration = Duration::from_secs(1);
/// For this time, late packets of the previous sender are not taken for a change back to it.
const AFTERMATH: Duration = Duration::from_secs(1);
/// How far timestamps may be off before they are corrected at a jump of sequence numbers.
const TIME_TOLERANCE: Duration = Duration::from_secs(1);
/// How far behind another way of the same source may begin: with what its sender kept for new
/// viewers.
const MAX_BEHIND: Duration = Duration::from_secs(11);
/// How long another way of the same source may take to catch up.
const CATCHES_UP: Duration = Duration::from_millis(500);
/// The number of mappings that are kept for late packets.
const RUNS: usize = 8;

/// Why a packet has no place in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// It is of another sender while the present one is active.
    Foreign,
    /// It is too late, or of the previous sender.
    Late,
    /// It came before.
    Repeated,
    /// It is the first packet of what may be a restarted sender.
    Suspect,
}

/// The place of a packet in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its sequence number.
    pub(crate) seq: SeqNo,
    /// Its timestamp.
    pub(crate) timestamp: u32,
    /// It has the highest number so far.
    pub(crate) newest: bool,
    /// It is the first packet of another sender, or after a restart.
    pub(crate) restarted: bool,
}

/// Maps the numbers of senders to those of the stream.
#[derive(Debug)]
pub(crate) struct Continuity {
    clock_rate: u32,
    collision: Duration,
    ssrc: Option<Ssrc>,
    /// The highest number of the present sender, extended with our own roll-over counter.
    highest: u64,
    /// The mappings of numbers, oldest first.
    runs: SmallVec<[Run; RUNS]>,
    seen: Seen,
    highest_out: u64,
    last_timestamp: u32,
    last_at: Option<Instant>,
    /// The number that would prove that the sender restarted.
    suspect: Option<u16>,
    /// The previous sender.
    previous: Option<Previous>,
    /// The next packet continues from here, whatever its number.
    resuming: bool,
    /// All senders pass on one source with its timestamps, one after the other.
    is_relayed: bool,
    /// The next sender, and since when it repeats what is here already.
    repeats: Option<(Ssrc, Instant)>,
    /// The newest packet ended a picture.
    is_at_end: bool,
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    offset: i64,
    timestamp_offset: u32,
}

impl Continuity {
    /// Returns an empty stream. Another sender is refused until the present one was silent for
    /// `collision`.
    pub(crate) fn new(clock_rate: u32, collision: Duration) -> Self {
        Self {
            clock_rate,
            collision,
            ssrc: None,
            highest: 0,
            runs: SmallVec::new(),
            seen: Seen::default(),
            highest_out: 0,
            last_timestamp: 0,
            last_at: None,
            suspect: None,
            previous: None,
            resuming: false,
            is_relayed: false,
            repeats: None,
            is_at_end: false,
            lost: 0,
        }
    }

    /// All senders pass on one source with its timestamps: what the next one repeats is skipped, and
    /// timestamps stay those of the source.
    pub(crate) fn relayed(mut self) -> Self {
        self.is_relayed = true;
        self
    }

    /// The present sender.
    pub(crate) fn ssrc(&self) -> Option<Ssrc> {
        self.ssrc
    }

    /// Packets that never arrived.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Maps a timestamp of the present sender.
    pub(crate) fn timestamp(&self, of_sender: u32) -> u32 {
        of_sender.wrapping_add(self.timestamp_offset())
    }

    /// Notes that packets were dropped on purpose: the next one continues without a gap.
    pub(crate) fn resume(&mut self) {
        self.resuming = true;
    }

    /// Finds the place of a packet.
    pub(crate) fn accept(&mut self, header: &Header, now: Instant) -> Result<Place, Misplaced> {
        let silence = self.last_at.map(|at| now.saturating_duration_since(at));
        let Some((ssrc, silence)) = self.ssrc.zip(silence) else {
            return Ok(self.start(header, now));
        };
        let sequence = header.sequence;
        if ssrc == header.ssrc {
            let delta = i64::from(sequence.wrapping_sub(self.highest as u16) as i16);
            if std::mem::take(&mut self.resuming) {
                return Ok(self.restart(header, now));
            }
            if (-MAX_LATE..=MAX_AHEAD).contains(&delta) {
                return self.accept_near(header, delta, (silence, now));
            }
            if silence < RESTART_SILENCE && self.suspect != Some(sequence) {
                self.suspect = Some(sequence.wrapping_add(1));
                return Err(Misplaced::Suspect);
            }
            return Ok(self.restart(header, now));
        }
        if !self.collision.is_zero() && silence < self.collision {
            return Err(Misplaced::Foreign);
        }
        if let Some(Previous { ssrc, highest, at }) = self.previous
            && ssrc == header.ssrc
            && sequence.wrapping_sub(highest) as i16 <= 0
            && now.saturating_duration_since(at) < AFTERMATH
        {
            return Err(Misplaced::Late);
        }
        if self.is_relayed && self.repeats(header, now) {
            return Err(Misplaced::Repeated);
        }
        self.previous = Some(Previous {
            ssrc,
            highest: self.highest as u16,
            at: now,
        });
        self.resuming = false;
        let is_seamless =
            self.repeats.take().is_some_and(|(of, _)| of == header.ssrc) && self.is_at_end;
        let place = self.restart(header, now);
        Ok(Place {
            restarted: !is_seamless,
            ..place
        })
    }

    /// Returns whether the next sender of a relayed source repeats a packet that is here already.
    fn repeats(&mut self, header: &Header, now: Instant) -> bool {
        let behind = self
            .last_timestamp
            .wrapping_sub(self.timestamp(header.timestamp));
        if behind > self.ticks(MAX_BEHIND) {
            return false;
        }
        let begun = self.repeats.filter(|(of, _)| *of == header.ssrc);
        let (_, since) = *self.repeats.insert(begun.unwrap_or((header.ssrc, now)));
        let repeats = now.saturating_duration_since(since) < CATCHES_UP;
        if !repeats {
            self.repeats = None;
        }
        repeats
    }

    /// Finds the place of a packet of the present sender with a number near the highest one.
    fn accept_near(
        &mut self,
        header: &Header,
        delta: i64,
        (silence, now): (Duration, Instant),
    ) -> Result<Place, Misplaced> {
        let steps = delta < 0 || delta > 1 && !self.is_timely(header, now);
        if silence >= LONG_SILENCE && steps {
            return Ok(self.restart(header, now));
        }
        let is_suspect = self.suspect == Some(header.sequence);
        let placed = self.continue_with(header, delta, now);
        // Duplicates come soon after each other. Two consecutive packets that do not mean a restart
        // a little back.
        if placed.is_err() && delta < 0 && silence >= RESTART_SILENCE {
            if is_suspect {
                return Ok(self.restart(header, now));
            }
            self.suspect = Some(header.sequence.wrapping_add(1));
        }
        placed
    }

    /// Makes room for a packet of our own before the newest one. Returns its number, and moves
    /// `place`.
    pub(crate) fn insert(&mut self, place: &mut Place) -> SeqNo {
        let inserted = place.seq;
        self.remap(self.highest, 1, 0);
        self.highest_out += 1;
        place.seq = SeqNo(inserted.0 + 1);
        inserted
    }

    /// Makes room for a packet of our own after the newest one, with the present timestamp.
    pub(crate) fn append(&mut self, now: Instant) -> Option<Place> {
        let Some((_, at)) = self.ssrc.zip(self.last_at) else {
            // The first sender follows us as any other sender would.
            let mut header = Header::default();
            header.ssrc = Ssrc(rand::random());
            (header.sequence, header.timestamp) = (rand::random(), rand::random());
            return self.accept(&header, now).ok();
        };
        self.remap(self.highest + 1, 1, 0);
        self.highest_out += 1;
        let since = now.saturating_duration_since(at).as_micros();
        let ticks = since * u128::from(self.clock_rate) / 1_000_000;
        Some(Place {
            seq: SeqNo(self.highest_out),
            timestamp: self.last_timestamp.wrapping_add(ticks as u32),
            newest: true,
            restarted: false,
        })
    }

    /// Sets the clock rate of timestamps, in Hz.
    pub(crate) fn set_clock_rate(&mut self, clock_rate: u32) {
        self.clock_rate = clock_rate;
    }

    /// Drops the newest packet without a gap in the numbers.
    pub(crate) fn leave_out(&mut self) {
        self.remap(self.highest + 1, -1, 0);
        self.highest_out -= 1;
    }

    /// Shifts timestamps from the newest packet on.
    pub(crate) fn shift(&mut self, place: &mut Place, ticks: i32) {
        self.remap(self.highest, 0, ticks);
        place.timestamp = place.timestamp.wrapping_add_signed(ticks);
        self.last_timestamp = place.timestamp;
    }

    fn start(&mut self, header: &Header, now: Instant) -> Place {
        // Starts above the first roll-over, so that lower numbers are possible.
        self.begin(header, (1 << 16) | u64::from(header.sequence), 0, 0);
        self.highest_out = self.highest;
        self.place(header, self.highest_out, now, false)
    }

    fn restart(&mut self, header: &Header, now: Instant) -> Place {
        let is_same = self.ssrc == Some(header.ssrc) && self.is_timely(header, now)
            || self.is_relayed && self.is_of_source(header, now);
        let timestamp_offset = if is_same {
            self.timestamp_offset()
        } else {
            self.due(now).wrapping_sub(header.timestamp)
        };
        let raw = ((self.highest >> 16) + 2) << 16 | u64::from(header.sequence);
        let out = self.highest_out + 1;
        let offset = (out as i64).wrapping_sub(raw as i64);
        self.begin(header, raw, offset, timestamp_offset);
        self.highest_out = out;
        self.place(header, out, now, true)
    }

    /// Returns the timestamp that is due now.
    fn due(&self, now: Instant) -> u32 {
        let elapsed = self.last_at.map_or(Duration::ZERO, |at| {
            now.saturating_duration_since(at)
                .max(Duration::from_millis(1))
        });
        self.last_timestamp.wrapping_add(self.ticks(elapsed))
    }

    /// Whether a timestamp matches the time that has passed.
    fn is_timely(&self, header: &Header, now: Instant) -> bool {
        let unchanged = self.timestamp(header.timestamp);
        let off = unchanged.wrapping_sub(self.due(now)) as i32;
        let forward = unchanged.wrapping_sub(self.last_timestamp) as i32 > 0;
        off.unsigned_abs() <= self.ticks(TIME_TOLERANCE) && forward
    }

    /// Whether a timestamp of a relayed source needs no correction: it is after the last one, and
    /// about now or what was kept for new viewers.
    fn is_of_source(&self, header: &Header, now: Instant) -> bool {
        let unchanged = self.timestamp(header.timestamp);
        let off = unchanged.wrapping_sub(self.due(now)) as i32;
        let forward = unchanged.wrapping_sub(self.last_timestamp) as i32 > 0;
        let limits = (self.ticks(MAX_BEHIND), self.ticks(TIME_TOLERANCE));
        let is_near = match off < 0 {
            true => off.unsigned_abs() <= limits.0,
            false => off.unsigned_abs() <= limits.1,
        };
        forward && is_near
    }

    fn ticks(&self, time: Duration) -> u32 {
        (time.as_micros() * u128::from(self.clock_rate) / 1_000_000).max(1) as u32
    }

    fn begin(&mut self, header: &Header, raw: u64, offset: i64, timestamp_offset: u32) {
        self.ssrc = Some(header.ssrc);
        self.highest = raw;
        self.suspect = None;
        self.seen = Seen::default();
        self.seen.insert(raw);
        self.runs.clear();
        self.runs.push(Run {
            first: raw,
            offset,
            timestamp_offset,
        });
    }

    fn continue_with(
        &mut self,
        header: &Header,
        delta: i64,
        now: Instant,
    ) -> Result<Place, Misplaced> {
        self.suspect = None;
        let Some(raw) = self.highest.checked_add_signed(delta) else {
            return Err(Misplaced::Late);
        };
        if delta > 0 {
            self.seen.advance(self.highest, raw);
            self.lost += raw - self.highest - 1;
            self.highest = raw;
            let out = raw.wrapping_add_signed(self.offset());
            self.highest_out = out;
            return Ok(self.place(header, out, now, false));
        }
        let run = self.runs.iter().rev().find(|run| run.first <= raw);
        let run = *run.ok_or(Misplaced::Late)?;
        if !self.seen.insert(raw) {
            return Err(Misplaced::Repeated);
        }
        self.lost = self.lost.saturating_sub(1);
        Ok(Place {
            seq: SeqNo(raw.wrapping_add_signed(run.offset)),
            timestamp: header.timestamp.wrapping_add(run.timestamp_offset),
            newest: false,
            restarted: false,
        })
    }

    fn place(&mut self, header: &Header, out: u64, now: Instant, restarted: bool) -> Place {
        let timestamp = self.timestamp(header.timestamp);
        self.last_timestamp = timestamp;
        self.last_at = Some(now);
        self.is_at_end = header.marker;
        Place {
            seq: SeqNo(out),
            timestamp,
            newest: true,
            restarted,
        }
    }

    /// Changes the mapping of numbers and timestamps from number `first` on.
    fn remap(&mut self, first: u64, numbers: i64, ticks: i32) {
        let Some(last) = self.runs.last_mut() else {
            return;
        };
        let next = Run {
            first,
            offset: last.offset + numbers,
            timestamp_offset: last.timestamp_offset.wrapping_add_signed(ticks),
        };
        if last.first == first {
            *last = next;
            return;
        }
        if self.runs.len() >= RUNS {
            self.runs.remove(0);
        }
        self.runs.push(next);
    }

    fn offset(&self) -> i64 {
        self.runs.last().map_or(0, |run| run.offset)
    }

    fn timestamp_offset(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.timestamp_offset)
    }
}

/// A sender that was replaced.
#[derive(Debug, Clone, Copy)]
struct Previous {
    ssrc: Ssrc,
    /// Its highest sequence number.
    highest: u16,
    /// When it was replaced.
    at: Instant,
}

/// Which of the last numbers have come.
#[derive(Debug, Default)]
struct Seen {
    bits: [u64; (MAX_LATE as usize).div_ceil(64) * 2],
}

impl Seen {
    /// Notes a number. Returns whether it is new.
    fn insert(&mut self, number: u64) -> bool {
        let word = self.bits.len();
        let Some(word) = self.bits.get_mut(number as usize / 64 % word) else {
            return false;
        };
        let bit = 1 << (number % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Moves the highest number. The new one has come.
    fn advance(&mut self, from: u64, to: u64) {
        let span = self.bits.len() as u64 * 64;
        if to - from >= span {
            *self = Self::default();
        } else {
            for number in from + 1..to {
                self.remove(number);
            }
            self.remove(to);
        }
        self.insert(to);
    }

    fn remove(&mut self, number: u64) {
        let word = self.bits.len();
        if let Some(word) = self.bits.get_mut(number as usize / 64 % word) {
            *word &= !(1 << (number % 64));
        }
    }
}

#[cfg(test)]
mod tests;
