//! The assembler: from packets to steps.

use std::collections::VecDeque;
use std::time::Duration;

use crate::bitstream::setup_of_fmtp;
use crate::container::{FrameOut, TrackSetup};

use super::lipsync::Lipsync;
use super::merge::Queued;
use super::track::Track;
use super::{
    Arrived, ClockKind, MS, Nanos, Note, PartReason, Plan, PlannedTrack, Report, SECOND, Step,
    TrackStats, duration, nanos,
};

/// The interval at which tracks are told that time passes.
const TICK: Nanos = SECOND / 10;
/// The longest time for which a frame waits for others.
const LONGEST_WAIT: Nanos = 3 * SECOND;
/// The most by which a frame may be earlier than one that was returned before.
const BACK: Nanos = SECOND;
/// The length after which a part ends at the next keyframe,
const LONG: Nanos = 24 * 86_400 * SECOND;
/// and that after which it ends at any frame: times in files have 31 bits of ms.
const LONGEST: Nanos = ((1 << 31) - 60_000) * MS;

/// Makes files, one after the other, of the packets of a participant's tracks.
///
/// After each call that takes something, [`Assembler::step`] must be called until it returns
/// `None`.
#[derive(Debug)]
pub struct Assembler {
    plan: Plan,
    tracks: Vec<Track>,
    parts: Vec<TrackPart>,
    lipsync: Lipsync,
    /// The steps before the next frame.
    steps: VecDeque<Ready>,
    /// The frame that was returned last.
    current: Option<Queued>,
    now: Nanos,
    /// When the tracks were last told that time passes.
    ticked: Nanos,
    /// When the first packet came.
    first: Option<Nanos>,
    /// The start of the part.
    started: Option<Nanos>,
    /// The latest time that was returned.
    front: Nanos,
    /// Whether the part has a frame.
    has_frames: bool,
    has_ended: bool,
    /// Whether the last step was returned.
    is_over: bool,
}

/// A track in the current part.
#[derive(Debug, Default)]
struct TrackPart {
    setup: Option<TrackSetup>,
    /// Whether its setup was returned in this part.
    is_announced: bool,
    /// The pixels of its largest picture so far, which the file's header has.
    pixels: u64,
    /// Whether it has had a keyframe.
    has_begun: bool,
    clock: ClockKind,
    doubt: Option<Duration>,
}

/// Returns the pixels of a track's pictures, or 0 if they are unknown.
fn pixels(setup: &TrackSetup) -> u64 {
    let picture = setup.picture;
    picture.map_or(0, |it| u64::from(it.width) * u64::from(it.height))
}

/// A step without data of a frame.
#[derive(Debug)]
enum Ready {
    Setup(usize),
    NewPart(PartReason),
    WantKeyframe(usize),
    Note(usize, Note),
}

impl Assembler {
    /// Returns an assembler without packets.
    pub fn new(plan: Plan) -> Self {
        let tracks = plan.tracks.clone();
        let mut this = Self {
            plan,
            tracks: Vec::new(),
            parts: Vec::new(),
            lipsync: Lipsync::default(),
            steps: VecDeque::new(),
            current: None,
            now: 0,
            ticked: 0,
            first: None,
            started: None,
            front: 0,
            has_frames: false,
            has_ended: false,
            is_over: false,
        };
        for track in &tracks {
            this.add(track);
        }
        this
    }

    /// Adds a track, and returns its number.
    pub fn add(&mut self, track: &PlannedTrack) -> usize {
        let number = self.tracks.len();
        self.lipsync.add_track(track.codec);
        let fmtp = track.fmtp.as_deref();
        let setup = fmtp.and_then(|fmtp| setup_of_fmtp(track.codec, fmtp));
        self.tracks.push(Track::new(
            number,
            track.codec,
            setup,
            self.plan.split_on_size,
            track.open,
        ));
        self.parts.push(TrackPart::default());
        number
    }

    /// Connects another source to a track whose source has ended. `begins_part`: it does not
    /// continue the old content, so the next part starts with it.
    pub fn replace(&mut self, number: usize, planned: &PlannedTrack, begins_part: bool) {
        let Some(track) = self.tracks.get_mut(number) else {
            return;
        };
        track.end(&mut self.lipsync);
        self.lipsync.renew_track(number, planned.codec);
        let fmtp = planned.fmtp.as_deref();
        let setup = fmtp.and_then(|fmtp| setup_of_fmtp(planned.codec, fmtp));
        track.replace(planned.codec, setup, planned.open, begins_part);
    }

    /// Takes a packet of a track. Packets of all tracks should come in the order of their arrival.
    pub fn push(&mut self, track: usize, arrived: &Arrived<'_>) {
        let Some(track) = self.tracks.get_mut(track) else {
            return;
        };
        let at = nanos(arrived.at);
        self.first.get_or_insert(at);
        track.push(arrived, &mut self.lipsync);
        self.pass(at);
    }

    /// Takes a sender report about a stream of a track.
    pub fn report(&mut self, track: usize, report: &Report) {
        self.lipsync.report(track, report);
        self.pass(nanos(report.at));
    }

    /// Opens or closes a track. A closed track sends nothing, and nobody waits for it.
    pub fn gate(&mut self, track: usize, open: bool, at: Duration) {
        let at = nanos(at);
        if let Some(track) = self.tracks.get_mut(track) {
            track.gate(open, at, &mut self.lipsync);
        }
        self.pass(at);
    }

    /// Notes that packets of a track were dropped since its last packet.
    pub fn overrun(&mut self, track: usize) {
        if let Some(track) = self.tracks.get_mut(track) {
            track.overrun();
        }
    }

    /// Ends a track.
    pub fn end_track(&mut self, track: usize) {
        if let Some(track) = self.tracks.get_mut(track) {
            track.end(&mut self.lipsync);
        }
    }

    /// Notes that time passes. Several calls a second are enough; recordings that are read need
    /// none.
    pub fn tick(&mut self, now: Duration) {
        self.pass_by(nanos(now));
    }

    /// Ends all tracks, so that waiting frames are returned.
    pub fn end(&mut self) {
        for track in &mut self.tracks {
            track.end(&mut self.lipsync);
        }
        self.has_ended = true;
    }

    /// Returns the start of the current part on the timeline of the arrivals. Times in the part
    /// count from it. Returns `None` before the first setup.
    pub fn started(&self) -> Option<Duration> {
        self.started.map(duration)
    }

    /// Returns the setup of a track in the current part.
    pub fn setup(&self, track: usize) -> Option<&TrackSetup> {
        self.parts.get(track)?.setup.as_ref()
    }

    /// Returns the counts of a track so far.
    pub fn stats(&self, track: usize) -> TrackStats {
        let Some(of) = self.tracks.get(track) else {
            return TrackStats::default();
        };
        let doubt = self.lipsync.doubt(track);
        TrackStats {
            clock: self.lipsync.kind(track),
            clock_doubt: (doubt > 0).then(|| duration(doubt)),
            ..of.out.stats
        }
    }

    /// Advances the time to at least `now`, and tells the tracks now and then.
    fn pass(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.now.saturating_sub(self.ticked) >= TICK {
            self.pass_by(now);
        }
    }

    fn pass_by(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.ticked = self.now;
        for track in &mut self.tracks {
            track.tick(self.now, &mut self.lipsync);
            if self.started.is_some() && !track.has_ended() && !track.is_awaited() {
                track.fill(self.now.saturating_sub(BACK));
            }
        }
    }
}

/// The steps of the file.
impl Assembler {
    /// Returns the next step, if there is one by now.
    pub fn step(&mut self) -> Option<Step<'_>> {
        self.ask();
        loop {
            if let Some(ready) = self.steps.pop_front() {
                if let Some(step) = self.ready(ready) {
                    return Some(step);
                }
                continue;
            }
            if self.started.is_none() {
                self.begin()?;
                continue;
            }
            let Some(track) = self.next() else {
                return self.last_step();
            };
            if self.take(track) {
                return self.frame(track);
            }
        }
    }

    fn ask(&mut self) {
        for (number, track) in self.tracks.iter_mut().enumerate() {
            if track.out.asks() {
                self.steps.push_back(Ready::WantKeyframe(number));
            }
        }
    }

    fn ready(&mut self, ready: Ready) -> Option<Step<'static>> {
        Some(match ready {
            Ready::Setup(track) => Step::Setup {
                track,
                setup: self.parts.get(track)?.setup.clone()?,
            },
            Ready::NewPart(why) => Step::NewPart { why },
            Ready::WantKeyframe(track) => Step::WantKeyframe { track },
            Ready::Note(track, note) => Step::Note { track, note },
        })
    }

    /// Starts the part once each open track has content, or was waited for long enough.
    fn begin(&mut self) -> Option<()> {
        let waited = self.now.saturating_sub(self.first?);
        let is_due = self.has_ended || waited >= nanos(self.plan.hold) || {
            let lacks = |track: &Track| track.is_expected() && track.out.queue.first().is_none();
            !self.tracks.iter().any(lacks)
        };
        let is_full = self.tracks.iter().any(|track| track.out.queue.is_full());
        if !is_due && !is_full {
            return None;
        }
        let firsts = self.tracks.iter().map(|track| track.out.queue.first());
        let firsts: Vec<Option<Nanos>> = firsts.map(|frame| Some(frame?.at)).collect();
        let started = firsts.iter().flatten().copied().min()?;
        self.started = Some(started);
        self.front = started;
        for (number, first) in firsts.iter().enumerate() {
            if first.is_some() {
                self.announce(number);
            }
        }
        Some(())
    }

    /// Queues a track's setup, unless this part has it. Returns false if the track has none.
    fn announce(&mut self, track: usize) -> bool {
        let (Some(of), Some(part)) = (self.tracks.get(track), self.parts.get_mut(track)) else {
            return false;
        };
        if let Some(opening) = of
            .out
            .queue
            .first()
            .and_then(|frame| frame.opening.as_ref())
        {
            part.setup = Some(opening.setup.clone());
        }
        let is_new = part.setup.is_some() && !part.is_announced;
        if is_new {
            part.is_announced = true;
            part.pixels = part.setup.as_ref().map_or(0, pixels);
            self.steps.push_back(Ready::Setup(track));
        }
        is_new
    }

    /// Returns the track with the next frame, if its turn has come.
    fn next(&mut self) -> Option<usize> {
        loop {
            let (number, at) = self.earliest()?;
            let is_full = self.tracks.iter().any(|track| track.out.queue.is_full());
            let is_late = self.now.saturating_sub(at) >= LONGEST_WAIT;
            if self.has_ended || is_full || is_late {
                return Some(number);
            }
            let mut is_filled = false;
            for track in &mut self.tracks {
                if track.out.queue.first().is_some() || track.out.progress > at {
                    continue;
                }
                if track.is_awaited() {
                    return None;
                }
                is_filled |= !track.has_ended() && track.fill(at);
            }
            if !is_filled {
                return Some(number);
            }
        }
    }

    fn earliest(&self) -> Option<(usize, Nanos)> {
        let firsts = self.tracks.iter().enumerate();
        firsts
            .filter_map(|(number, track)| Some((number, track.out.queue.first()?.at)))
            .min_by_key(|(_, at)| *at)
    }

    /// Takes the first frame of a track. Returns false if another step comes before it, or it is
    /// left out.
    fn take(&mut self, number: usize) -> bool {
        let is_sound_only = self.tracks.iter().all(|track| !track.is_video());
        let started = self.started.unwrap_or(0);
        let (Some(track), Some(part)) = (self.tracks.get_mut(number), self.parts.get_mut(number))
        else {
            return false;
        };
        let Some(first) = track.out.queue.first() else {
            return false;
        };
        let length = first.at.saturating_sub(started);
        let is_long = length >= LONGEST
            || length >= LONG && first.keyframe && (track.is_video() || is_sound_only);
        let asked = (first.opening.as_ref()).and_then(|opening| opening.part);
        let why = asked.or(is_long.then_some(PartReason::Length));
        if let Some(why) = why.filter(|_| self.has_frames) {
            self.begin_part(why, number);
            return false;
        }
        let is_announced = part.is_announced;
        if !is_announced && self.announce(number) {
            return false;
        }
        let (Some(track), Some(part)) = (self.tracks.get_mut(number), self.parts.get_mut(number))
        else {
            return false;
        };
        let Some(frame) = track.out.queue.pop() else {
            return false;
        };
        if let Some(opening) = &frame.opening {
            part.setup = Some(opening.setup.clone());
            let pixels = pixels(&opening.setup);
            if is_announced && pixels > part.pixels {
                // The size of a film is that of its largest picture.
                part.pixels = pixels;
                self.steps.push_back(Ready::Setup(number));
            }
        }
        part.has_begun |= frame.keyframe;
        if !is_announced || !part.has_begun {
            track.out.want_keyframe();
            let stats = &mut track.out.stats;
            stats.left_out = stats.left_out.saturating_add(1);
            return false;
        }
        let at = frame.at.max(self.front.saturating_sub(BACK)).max(started);
        self.front = self.front.max(at);
        self.has_frames = true;
        let stats = &mut track.out.stats;
        stats.frames = stats.frames.saturating_add(1);
        let offset = duration(at.saturating_sub(started));
        stats.offset.get_or_insert(offset);
        self.report_clock(number);
        for note in &frame.notes {
            self.steps
                .push_back(Ready::Note(number, note.since(started)));
        }
        self.current = Some(Queued { at, ..frame });
        true
    }

    fn frame(&self, track: usize) -> Option<Step<'_>> {
        let frame = self.current.as_ref()?;
        let since = frame.at.saturating_sub(self.started.unwrap_or(0));
        Some(Step::Frame(FrameOut {
            track,
            at: duration(since),
            duration: duration(frame.duration),
            keyframe: frame.keyframe,
            data: &frame.data,
        }))
    }

    /// Ends the part before a frame that needs another part.
    fn begin_part(&mut self, why: PartReason, number: usize) {
        let first = self
            .tracks
            .get(number)
            .and_then(|track| track.out.queue.first());
        self.started = first.map(|frame| frame.at).or(self.started);
        self.has_frames = false;
        for part in &mut self.parts {
            part.is_announced = false;
            part.has_begun = false;
        }
        for track in &mut self.tracks {
            track.out.stats.offset = None;
        }
        self.steps.push_back(Ready::NewPart(why));
        self.announce(number);
    }

    fn report_clock(&mut self, number: usize) {
        let kind = self.lipsync.kind(number);
        let doubt = self.lipsync.doubt(number);
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        if part.clock != kind {
            part.clock = kind;
            self.steps.push_back(Ready::Note(number, Note::Clock(kind)));
        }
        if doubt > 0 && part.doubt.is_none() {
            let doubt = duration(doubt);
            part.doubt = Some(doubt);
            self.steps
                .push_back(Ready::Note(number, Note::ClockDoubt(doubt)));
        }
    }

    /// Returns the last steps, when all tracks have ended.
    fn last_step(&mut self) -> Option<Step<'static>> {
        if !self.has_ended || std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let (now, started) = (self.now, self.started.unwrap_or(0));
        for (number, track) in self.tracks.iter_mut().enumerate() {
            for note in track.last_notes(now) {
                self.steps
                    .push_back(Ready::Note(number, note.since(started)));
            }
        }
        let ready = self.steps.pop_front()?;
        self.ready(ready)
    }
}
