//! One time line for all tracks of a participant, by the clocks of the sender.
//!
//! Reports tell where timestamps are on the sender's clock, and one offset for all tracks leads from there to the server's:
//! whatever happens to it, picture and sound stay together. A stream of which nothing was told goes by the lowest delay of
//! its packets.
//!
//! Files are written while reports come, so that what was written stays as it is, and what is off comes right by and by. Sound is
//! not hurried: the offset begins where the sound is when its clock is first told, pictures come to it within 2 to 3 s, and then all go
//! together to where the server's clock says.

use std::collections::VecDeque;

use crate::track::{Codec, Kind};

use super::line::{Added, Line, Point};
use super::lows::Lows;
use super::step::ClockKind;
use super::{MS, Nanos, Report, SECOND, StreamKey};

/// Streams of a track that are remembered.
const MAX_STREAMS: usize = 8;
/// Timestamps that are further ahead of the time that passes began anew.
const AHEAD: Nanos = 5 * SECOND;
/// Timestamps that go back further began anew.
const BACK: Nanos = 3 * SECOND;
/// After a pause of that length a count that did not go on began anew.
const PAUSE: Nanos = 10 * SECOND;
/// What a place differs from where it should be goes away at a 50th of the time that passes, 20 ms a second: for each 10 ms of it
/// sound is left out or put in.
const SLEW: Nanos = 50;
/// Of a picture, at a 10th: nobody sees that.
const PICTURE_SLEW: Nanos = 10;
/// As long as it is off by more than this.
const PICTURE_OFF: Nanos = 10 * MS;
/// More than that is made up for at once, where nobody notices.
const STEP: Nanos = 500 * MS;
/// The offset moves by a thousandth of the time that passes, once it is settled.
const OFFSET_SLEW: Nanos = 1_000;
/// So long it is not, nor before it is where it should be.
const SETTLING: Nanos = 10 * SECOND;
/// Lowest delays that differ by more make the clocks doubtful,
const DOUBT: Nanos = 250 * MS;
/// more than this makes them be left alone,
const DISBELIEF: Nanos = 2 * SECOND;
/// and less than this lets them count again.
const BELIEF: Nanos = 1_500 * MS;
/// So long delays are looked at before there is doubt.
const SEEN: Nanos = 5 * SECOND;
/// Lowest delays that nothing was added to for longer say nothing about others.
const FRESH: Nanos = 10 * SECOND;
/// The offset is looked at so often.
const LOOKS: Nanos = 100 * MS;
/// So many places where it was are remembered: some three seconds.
const MAX_BEFORE: usize = 32;
/// The longest time from a sender that counts.
const LONGEST_TRIP: Nanos = SECOND;
/// No clock leads further away from when packets arrive.
const STRAY: Nanos = 5 * SECOND;

/// The clocks of a participant's tracks.
#[derive(Debug, Default)]
pub(super) struct Lipsync {
    tracks: Vec<TrackClock>,
    /// The NTP time that all others are counted from.
    epoch: Option<u64>,
    /// Half of the shortest round trip.
    half_trip: Nanos,
    /// From the sender's clock to the server's.
    offset: Option<Offset>,
    /// When that was last looked at.
    looked: Nanos,
    /// The offset began where a track of sound was.
    is_anchored: bool,
    /// The clocks of the tracks contradict each other too much.
    is_disbelieved: bool,
}

/// It moves by and by. What was captured at the same time has the same offset, however long it was under way or waited for others.
#[derive(Debug)]
struct Offset {
    value: Nanos,
    since: Nanos,
    moved: Nanos,
    is_settled: bool,
    /// Where it was, and when.
    before: VecDeque<(Nanos, Nanos)>,
}

impl Offset {
    fn new(value: Nanos, now: Nanos) -> Self {
        Self {
            value,
            since: now,
            moved: now,
            is_settled: false,
            before: VecDeque::new(),
        }
    }

    /// Moves to `target`, as fast as it may.
    fn approach(&mut self, target: Nanos, now: Nanos) {
        let passed = now.saturating_sub(self.moved).max(0);
        let error = target.saturating_sub(self.value);
        let slew = match !self.is_settled || error.saturating_abs() > STEP {
            true => SLEW,
            false => OFFSET_SLEW,
        };
        let most = passed / slew;
        let is_there = error.saturating_abs() <= most;
        self.is_settled |= is_there && now.saturating_sub(self.since) >= SETTLING;
        let last = self.before.back().map_or(Nanos::MIN, |(at, _)| *at);
        if self.moved.saturating_sub(last) >= LOOKS {
            if self.before.len() >= MAX_BEFORE {
                self.before.pop_front();
            }
            self.before.push_back((self.moved, self.value));
        }
        self.value = (self.value).saturating_add(error.clamp(-most, most));
        self.moved = now;
    }

    /// Where it was at a time.
    fn at(&self, at: Nanos) -> Nanos {
        let mut later = (self.moved, self.value);
        for earlier in self.before.iter().rev() {
            if at >= earlier.0 {
                let passed = at.min(later.0).saturating_sub(earlier.0);
                let steps = i128::from(later.1.saturating_sub(earlier.1)) * i128::from(passed);
                let moved = steps / i128::from(later.0.saturating_sub(earlier.0).max(1));
                return (earlier.1).saturating_add(Nanos::try_from(moved).unwrap_or(0));
            }
            later = *earlier;
        }
        later.1
    }
}

#[derive(Debug)]
struct TrackClock {
    kind: Kind,
    rate: u32,
    streams: Vec<StreamClock>,
    /// The stream of which something came last.
    current: Option<StreamKey>,
    /// How much later than the participant's fastest packets those of this track come, once that is known.
    excess: Option<Nanos>,
    /// What is to be added to the track's NTP times, since its sender's clock was set.
    domain: Nanos,
    doubt: Nanos,
    last: Option<Placed>,
}

/// Where the last frame was put.
#[derive(Debug, Clone, Copy)]
struct Placed {
    stream: StreamKey,
    ticks: i64,
    at: Nanos,
}

/// A frame's stream, and its timestamp without wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) stream: StreamKey,
    pub(super) ticks: i64,
}

#[derive(Debug)]
struct StreamClock {
    key: StreamKey,
    /// The highest timestamp.
    timestamp: u32,
    ticks: i64,
    /// When it came.
    at: Option<Nanos>,
    line: Line,
    kind: ClockKind,
    /// What is to be added to the line's NTP times.
    domain: Nanos,
    /// Of its packets, when they came less what their timestamps say.
    lows: Lows,
}

impl StreamClock {
    /// The timestamp nearest to the last one.
    fn extend(&self, timestamp: u32) -> i64 {
        let step = timestamp.wrapping_sub(self.timestamp).cast_signed();
        self.ticks.saturating_add(step.into())
    }

    /// The lowest delay by the sender's clock.
    fn low(&self, rate: u32) -> Option<Nanos> {
        let ntp = self.line.at(self.ticks)?.saturating_add(self.domain);
        let apart = nominal(self.ticks, rate).saturating_sub(ntp);
        Some(self.lows.low()?.saturating_add(apart))
    }
}

/// Timestamps as time, from whatever beginning.
fn nominal(ticks: i64, rate: u32) -> Nanos {
    let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(rate.max(1));
    Nanos::try_from(nanos).unwrap_or(Nanos::MAX)
}

impl TrackClock {
    fn new(codec: Codec) -> Self {
        Self {
            kind: codec.kind(),
            rate: codec.clock_rate(),
            streams: Vec::new(),
            current: None,
            excess: None,
            domain: 0,
            doubt: 0,
            last: None,
        }
    }

    fn stream(&self, key: StreamKey) -> Option<&StreamClock> {
        self.streams.iter().find(|stream| stream.key == key)
    }

    /// The clock of a stream; a new one has this timestamp.
    fn stream_mut(&mut self, key: StreamKey, timestamp: u32) -> Option<&mut StreamClock> {
        let found = self.streams.iter().position(|stream| stream.key == key);
        let index = match found {
            Some(index) => index,
            None => {
                if self.streams.len() >= MAX_STREAMS {
                    let current = self.current;
                    let oldest = (self.streams.iter().enumerate())
                        .filter(|(_, stream)| Some(stream.key) != current)
                        .min_by_key(|(_, stream)| stream.at)
                        .map(|(index, _)| index);
                    self.streams.remove(oldest.unwrap_or(0));
                }
                self.streams.push(StreamClock {
                    key,
                    timestamp,
                    ticks: timestamp.into(),
                    at: None,
                    line: Line::new(self.rate),
                    kind: ClockKind::Arrival,
                    domain: self.domain,
                    lows: Lows::default(),
                });
                self.streams.len().saturating_sub(1)
            }
        };
        self.streams.get_mut(index)
    }

    /// The lowest delay of the current stream by its sender's clock, if that was told and packets came lately.
    fn low(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let stream = self.stream(self.current?)?;
        let is_fresh = now.saturating_sub(stream.lows.last()?) <= FRESH;
        let low = stream.low(self.rate)?;
        is_fresh.then_some((low, stream.lows.span()))
    }
}

impl Lipsync {
    /// One more track.
    pub(super) fn add_track(&mut self, codec: Codec) {
        self.tracks.push(TrackClock::new(codec));
    }

    /// Another source comes by the track.
    pub(super) fn renew_track(&mut self, track: usize, codec: Codec) {
        if let Some(track) = self.tracks.get_mut(track) {
            *track = TrackClock::new(codec);
        }
    }

    /// The track's packets are of this codec from now on; another unit of timestamps begins anew.
    pub(super) fn set_codec(&mut self, track: usize, codec: Codec) {
        if let Some(track) = self.tracks.get_mut(track)
            && track.rate != codec.clock_rate()
        {
            *track = TrackClock::new(codec);
        }
    }

    /// A packet arrived: what its timestamp is without wraps.
    pub(super) fn arrive(
        &mut self,
        track: usize,
        at: Nanos,
        key: StreamKey,
        timestamp: u32,
        capture: Option<u64>,
    ) -> Stamp {
        let ticks = self.observe(track, at, key, timestamp).unwrap_or(0);
        if let Some(ntp) = capture {
            let ntp = self.since_epoch(ntp);
            self.tell(track, key, Point { ticks, ntp }, ClockKind::Capture, at);
        }
        if at.saturating_sub(self.looked) >= LOOKS {
            self.look(at);
        }
        Stamp { stream: key, ticks }
    }

    fn observe(&mut self, track: usize, at: Nanos, key: StreamKey, timestamp: u32) -> Option<i64> {
        let track = self.tracks.get_mut(track)?;
        let rate = track.rate;
        track.current = Some(key);
        let stream = track.stream_mut(key, timestamp)?;
        let mut ticks = stream.extend(timestamp);
        if let Some(before) = stream.at {
            let passed = at.saturating_sub(before);
            let counted = nominal(ticks.saturating_sub(stream.ticks), rate);
            let is_anew = counted.saturating_sub(passed) > AHEAD
                || counted < -BACK
                || passed > PAUSE && counted < passed / 2;
            if is_anew {
                let passed = i128::from(passed.max(0)) * i128::from(rate) / i128::from(SECOND);
                ticks = (stream.ticks).saturating_add(i64::try_from(passed).unwrap_or(0));
                stream.line.loosen();
                stream.timestamp = timestamp;
                stream.ticks = ticks;
            }
        }
        if ticks >= stream.ticks {
            stream.timestamp = timestamp;
            stream.ticks = ticks;
            stream.at = Some(at.max(stream.at.unwrap_or(at)));
        }
        (stream.lows).add(at, at.saturating_sub(nominal(ticks, rate)));
        Some(ticks)
    }

    /// A report arrived.
    pub(super) fn report(&mut self, track: usize, report: &Report) {
        let at = super::nanos(report.at);
        if let Some(rtt) = report.rtt {
            let half = super::nanos(rtt) / 2;
            self.half_trip = match self.half_trip {
                0 => half.min(LONGEST_TRIP),
                shortest => shortest.min(half),
            };
        }
        let ntp = self.since_epoch(report.ntp);
        let Some(clock) = self.tracks.get_mut(track) else {
            return;
        };
        let Some(stream) = clock.stream_mut(report.stream, report.timestamp) else {
            return;
        };
        let ticks = stream.extend(report.timestamp);
        let point = Point { ticks, ntp };
        self.tell(track, report.stream, point, ClockKind::Reports, at);
    }

    /// NTP time as time since the first that was told.
    fn since_epoch(&mut self, ntp: u64) -> Nanos {
        let epoch = *self.epoch.get_or_insert(ntp);
        let apart = i128::from(ntp.wrapping_sub(epoch).cast_signed());
        Nanos::try_from((apart * i128::from(SECOND)) >> 32).unwrap_or(0)
    }

    /// The sender tells where a stream's timestamps are on its clock.
    fn tell(&mut self, track: usize, key: StreamKey, point: Point, kind: ClockKind, now: Nanos) {
        let others = self.low_of_others(track, now);
        let known = self.offset.as_ref().map(|offset| offset.value);
        let Some(clock) = self.tracks.get_mut(track) else {
            return;
        };
        let (rate, domain) = (clock.rate, clock.domain);
        let Some(stream) = clock.streams.iter_mut().find(|stream| stream.key == key) else {
            return;
        };
        match (stream.kind, kind) {
            // Reports are asked when capture times are not there.
            (ClockKind::Reports, ClockKind::Capture) => return,
            (ClockKind::Capture, ClockKind::Reports) => stream.line.loosen(),
            _ => {}
        }
        let added = stream.line.add(point);
        if added == Added::PassedOver {
            return;
        }
        stream.kind = kind;
        // A clock that was set, or that another stream did not have: of what it may be said to be off by, the likeliest.
        let candidates = match added {
            Added::First => [0, domain],
            Added::Anew(step) => [stream.domain, stream.domain.saturating_sub(step)],
            Added::Fits | Added::PassedOver => [stream.domain; 2],
        };
        let reference = others.or(known);
        let mut off = |domain: Nanos| {
            stream.domain = domain;
            let low = stream.low(rate)?;
            Some(low.saturating_sub(reference?).saturating_abs())
        };
        let [first, second] = candidates;
        let chosen = match (off(first), off(second), added) {
            (Some(one), Some(two), Added::Anew(_)) if others.is_some() => {
                // That it was wrong before is believed only if the others say so, too.
                if one.saturating_add(50 * MS) < two {
                    first
                } else {
                    second
                }
            }
            (_, _, Added::Anew(_)) => second,
            (Some(one), Some(two), _) if two < one => second,
            _ => first,
        };
        stream.domain = chosen;
        clock.domain = chosen;
        if added == Added::First && !self.is_anchored {
            self.anchor(track, key, now);
        }
        self.look(now);
    }

    /// Begins the offset where the last sound of a stream is, whose clock is known now.
    fn anchor(&mut self, track: usize, key: StreamKey, now: Nanos) {
        let sound = (self.tracks.get(track)).filter(|track| track.kind == Kind::Audio);
        let value = sound.and_then(|track| {
            let last = track.last.filter(|last| last.stream == key)?;
            let stream = track.stream(key)?;
            let ntp = stream.line.at(last.ticks)?.saturating_add(stream.domain);
            Some(last.at.saturating_sub(ntp))
        });
        if let Some(value) = value {
            self.offset = Some(Offset::new(value, now));
            self.is_anchored = true;
        }
    }

    fn low_of_others(&self, track: usize, now: Nanos) -> Option<Nanos> {
        let others = (self.tracks.iter().enumerate()).filter(|(index, _)| *index != track);
        others
            .filter_map(|(_, other)| other.low(now))
            .map(|(low, _)| low)
            .min()
    }

    /// Compares the clocks of the tracks, and moves the offset to where it should be.
    fn look(&mut self, now: Nanos) {
        self.looked = now;
        let (mut lowest, mut highest) = (Nanos::MAX, Nanos::MIN);
        // The lowest as tracks tell that were compared before, should the fastest one be silent now.
        let mut lowest_known = Nanos::MAX;
        let mut is_complete = true;
        for track in &self.tracks {
            let Some((low, _)) = track.low(now) else {
                is_complete &= track.excess.is_none();
                continue;
            };
            lowest = lowest.min(low);
            highest = highest.max(low);
            if let Some(excess) = track.excess {
                lowest_known = lowest_known.min(low.saturating_sub(excess));
            }
        }
        if lowest == Nanos::MAX {
            return;
        }
        let apart = highest.saturating_sub(lowest);
        let bound = if self.is_disbelieved {
            BELIEF
        } else {
            DISBELIEF
        };
        self.is_disbelieved = apart > bound;
        if !is_complete {
            lowest = lowest.min(lowest_known);
        }
        for track in &mut self.tracks {
            let Some((low, span)) = track.low(now) else {
                continue;
            };
            let excess = low.saturating_sub(lowest);
            if !self.is_disbelieved && (is_complete || track.excess.is_none()) {
                track.excess = Some(excess);
            }
            if excess > DOUBT && span >= SEEN {
                track.doubt = track.doubt.max(excess);
            }
        }
        if self.is_disbelieved {
            return;
        }
        let target = lowest.saturating_sub(self.half_trip);
        let offset = (self.offset).get_or_insert_with(|| Offset::new(target, now));
        offset.approach(target, now);
    }

    /// Where a frame is on the server's clock. At `may_step` a large error is made up for at once.
    pub(super) fn place(
        &mut self,
        track: usize,
        stamp: Stamp,
        arrival: Nanos,
        may_step: bool,
    ) -> Nanos {
        let is_believed = !self.is_disbelieved;
        let (offset, half_trip) = (self.offset.as_ref(), self.half_trip);
        let Some(track) = self.tracks.get_mut(track) else {
            return arrival;
        };
        let by_arrival = track.by_arrival(stamp, half_trip, is_believed);
        let by_arrival = by_arrival.unwrap_or(arrival);
        let by_clock = (track.by_clock(stamp, offset))
            .filter(|at| is_believed && (at.saturating_sub(by_arrival)).saturating_abs() < STRAY);
        let target = by_clock.unwrap_or(by_arrival);
        let at = match &track.last {
            Some(last) if last.stream == stamp.stream => {
                let passed = nominal(stamp.ticks.saturating_sub(last.ticks), track.rate);
                let expected = last.at.saturating_add(passed);
                let error = target.saturating_sub(expected);
                let is_hurried = track.kind == Kind::Video && error.saturating_abs() > PICTURE_OFF;
                let slew = if is_hurried { PICTURE_SLEW } else { SLEW };
                let most = passed.max(0) / slew;
                let steps = may_step && error.saturating_abs() > STEP;
                match steps || error.saturating_abs() > STRAY {
                    true => target,
                    false => expected.saturating_add(error.clamp(-most, most)),
                }
            }
            _ => target,
        };
        track.last = Some(Placed {
            stream: stamp.stream,
            ticks: stamp.ticks,
            at,
        });
        at
    }

    /// What the track's times go by.
    pub(super) fn kind(&self, track: usize) -> ClockKind {
        let told = self.tracks.get(track).and_then(|track| {
            let stream = track.stream(track.current?)?;
            stream.line.at(0).map(|_| stream.kind)
        });
        told.filter(|_| !self.is_disbelieved).unwrap_or_default()
    }

    /// The most by which the track's clock was in doubt; zero if it was not.
    pub(super) fn doubt(&self, track: usize) -> Nanos {
        self.tracks.get(track).map_or(0, |track| track.doubt)
    }
}

impl TrackClock {
    fn by_clock(&self, stamp: Stamp, offset: Option<&Offset>) -> Option<Nanos> {
        let stream = self.stream(stamp.stream)?;
        let ntp = stream.line.at(stamp.ticks)?.saturating_add(stream.domain);
        let offset = offset?;
        let captured = ntp.saturating_add(offset.value);
        Some(ntp.saturating_add(offset.at(captured)))
    }

    fn by_arrival(&self, stamp: Stamp, half_trip: Nanos, with_excess: bool) -> Option<Nanos> {
        let low = self.stream(stamp.stream)?.lows.low()?;
        let at = nominal(stamp.ticks, self.rate).saturating_add(low);
        let excess = self.excess.filter(|_| with_excess).unwrap_or(0);
        Some(at.saturating_sub(half_trip).saturating_sub(excess))
    }
}
