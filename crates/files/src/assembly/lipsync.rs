//! One timeline for all tracks of a participant, by the sender's clocks.
//!
//! Reports relate timestamps to the sender's clock, and one offset for all tracks relates that
//! clock to the server's. So audio and video stay synchronous, whatever happens to the offset. A
//! stream without reports follows the lowest delay of its packets.
//!
//! Files are written while reports come. So the past stays as it is, and errors are corrected
//! gradually. Audio is not hurried: the offset starts where the audio is when its clock becomes
//! known. Video reaches it within 2 to 3 s, and then both move together to the server's clock.

use std::collections::VecDeque;

use crate::track::{Codec, Kind};

use super::line::{Added, Line, Point};
use super::lows::Lows;
use super::step::ClockKind;
use super::{MS, Nanos, Report, SECOND, StreamKey};

/// The limit of streams that are remembered per track.
const MAX_STREAMS: usize = 8;
/// Timestamps that are further ahead of the elapsed time mean a restart.
const AHEAD: Nanos = 5 * SECOND;
/// Timestamps that jump back further mean a restart.
const BACK: Nanos = 3 * SECOND;
/// If timestamps stand still for a pause of this length, the stream has restarted.
const PAUSE: Nanos = 10 * SECOND;
/// A wrong position is corrected by a 50th of the elapsed time, 20 ms per second. For each 10 ms,
/// audio is left out or concealed.
const SLEW: Nanos = 50;
/// A picture is corrected by a 10th, which nobody notices,
const PICTURE_SLEW: Nanos = 10;
/// as long as it is off by more than this.
const PICTURE_OFF: Nanos = 10 * MS;
/// A greater error is corrected at once, where nobody notices.
const STEP: Nanos = 500 * MS;
/// The offset moves by a thousandth of the elapsed time, once it is settled.
const OFFSET_SLEW: Nanos = 1_000;
/// It settles after this time, but not before it has reached its target.
const SETTLING: Nanos = 10 * SECOND;
/// If the lowest delays differ by more, the clocks are doubtful;
const DOUBT: Nanos = 250 * MS;
/// if they differ by more than this, the clocks are ignored;
const DISBELIEF: Nanos = 2 * SECOND;
/// and below this, they count again.
const BELIEF: Nanos = 1_500 * MS;
/// The time for which delays are observed before there is doubt.
const SEEN: Nanos = 5 * SECOND;
/// After this time without packets, the lowest delay of a track says nothing about others.
const FRESH: Nanos = 10 * SECOND;
/// The interval between comparisons of the clocks.
const LOOKS: Nanos = 100 * MS;
/// The limit of past offsets that are remembered: some three seconds.
const MAX_BEFORE: usize = 32;
/// The longest plausible delay from a sender.
const LONGEST_TRIP: Nanos = SECOND;
/// The greatest distance between a clock and the arrivals.
const STRAY: Nanos = 5 * SECOND;

/// The clocks of a participant's tracks.
#[derive(Debug, Default)]
pub(super) struct Lipsync {
    tracks: Vec<TrackClock>,
    /// The NTP time that all others count from.
    epoch: Option<u64>,
    /// Half of the shortest round trip.
    half_trip: Nanos,
    /// The offset from the sender's clock to the server's.
    offset: Option<Offset>,
    /// When the clocks were last compared.
    looked: Nanos,
    /// Whether the offset started at an audio track.
    is_anchored: bool,
    /// Whether the clocks of the tracks contradict each other too much.
    is_disbelieved: bool,
}

/// It moves gradually. Frames captured at the same time have the same offset, however long they
/// were delayed.
#[derive(Debug)]
struct Offset {
    value: Nanos,
    since: Nanos,
    moved: Nanos,
    is_settled: bool,
    /// Past times and offsets.
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

    /// Moves to `target` as fast as allowed.
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

    /// Returns the offset at a time.
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
    /// The stream of the last packet.
    current: Option<StreamKey>,
    /// The delay of this track's packets relative to the participant's fastest ones, once it is
    /// known.
    excess: Option<Nanos>,
    /// The correction of the track's NTP times, since its sender's clock was set.
    domain: Nanos,
    doubt: Nanos,
    last: Option<Placed>,
}

/// The place of the last frame.
#[derive(Debug, Clone, Copy)]
struct Placed {
    stream: StreamKey,
    ticks: i64,
    at: Nanos,
}

/// The stream of a frame, and its timestamp without wraps.
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
    /// Its arrival.
    at: Option<Nanos>,
    line: Line,
    kind: ClockKind,
    /// The correction of the line's NTP times.
    domain: Nanos,
    /// The lowest difference between the arrivals and the timestamps of its packets.
    lows: Lows,
}

impl StreamClock {
    /// Returns the timestamp nearest to the last one.
    fn extend(&self, timestamp: u32) -> i64 {
        let step = timestamp.wrapping_sub(self.timestamp).cast_signed();
        self.ticks.saturating_add(step.into())
    }

    /// Returns the lowest delay by the sender's clock.
    fn low(&self, rate: u32) -> Option<Nanos> {
        let ntp = self.line.at(self.ticks)?.saturating_add(self.domain);
        let apart = nominal(self.ticks, rate).saturating_sub(ntp);
        Some(self.lows.low()?.saturating_add(apart))
    }
}

/// Converts timestamps to time, from any origin.
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

    /// Returns the clock of a stream. A new one starts with this timestamp.
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

    /// Returns the lowest delay of the current stream by its sender's clock, if that is known and
    /// packets came recently.
    fn low(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let stream = self.stream(self.current?)?;
        let is_fresh = now.saturating_sub(stream.lows.last()?) <= FRESH;
        let low = stream.low(self.rate)?;
        is_fresh.then_some((low, stream.lows.span()))
    }
}

impl Lipsync {
    /// Adds a track.
    pub(super) fn add_track(&mut self, codec: Codec) {
        self.tracks.push(TrackClock::new(codec));
    }

    /// Restarts a track with another source.
    pub(super) fn renew_track(&mut self, track: usize, codec: Codec) {
        if let Some(track) = self.tracks.get_mut(track) {
            *track = TrackClock::new(codec);
        }
    }

    /// Changes the codec of a track. Another clock rate restarts it.
    pub(super) fn set_codec(&mut self, track: usize, codec: Codec) {
        if let Some(track) = self.tracks.get_mut(track)
            && track.rate != codec.clock_rate()
        {
            *track = TrackClock::new(codec);
        }
    }

    /// Notes the arrival of a packet, and returns its timestamp without wraps.
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
            self.take_point(track, key, Point { ticks, ntp }, ClockKind::Capture, at);
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

    /// Takes a report.
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
        self.take_point(track, report.stream, point, ClockKind::Reports, at);
    }

    /// Returns an NTP time relative to the first one.
    fn since_epoch(&mut self, ntp: u64) -> Nanos {
        let epoch = *self.epoch.get_or_insert(ntp);
        let apart = i128::from(ntp.wrapping_sub(epoch).cast_signed());
        Nanos::try_from((apart * i128::from(SECOND)) >> 32).unwrap_or(0)
    }

    /// Takes a point of a stream on its sender's clock.
    fn take_point(
        &mut self,
        track: usize,
        key: StreamKey,
        point: Point,
        kind: ClockKind,
        now: Nanos,
    ) {
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
            // Reports count only without capture times.
            (ClockKind::Reports, ClockKind::Capture) => return,
            (ClockKind::Capture, ClockKind::Reports) => stream.line.loosen(),
            _ => {}
        }
        let added = stream.line.add(point);
        if added == Added::PassedOver {
            return;
        }
        stream.kind = kind;
        // The sender's clock was set, or the stream has another one: the likeliest correction is
        // chosen.
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
                // A correction of the past is accepted only if the other tracks confirm it.
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

    /// Starts the offset at the last audio of a stream whose clock has become known.
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

    /// Compares the clocks of the tracks, and moves the offset to its target.
    fn look(&mut self, now: Nanos) {
        self.looked = now;
        let (mut lowest, mut highest) = (Nanos::MAX, Nanos::MIN);
        // The lowest delay by tracks that were compared before, in case the fastest one is silent
        // now.
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

    /// Returns the place of a frame on the server's clock. With `may_step`, a great error is
    /// corrected at once.
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

    /// Returns what the track's times are based on.
    pub(super) fn kind(&self, track: usize) -> ClockKind {
        let doubt = self.tracks.get(track).and_then(|track| {
            let stream = track.stream(track.current?)?;
            stream.line.at(0).map(|_| stream.kind)
        });
        doubt.filter(|_| !self.is_disbelieved).unwrap_or_default()
    }

    /// Returns the greatest doubt about the track's clock, or zero.
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
