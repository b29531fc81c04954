//! The disk thread's side of tracks that share a file: from their taps to the file.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_files::assembly::{
    Arrived, Assembler, Coded, Note, Plan, PlannedTrack, Report, Step, StreamKey, TrackStats,
};
use portunus_files::container::{Rotation, TrackSetup};
use portunus_files::manifest::FileEnd;
use portunus_media::{MediaPlane, RouteId, Tap, Tapped, TappedPacket, TappedReport};
use portunus_rtp::extension;
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;
use tokio::sync::watch;

use super::container::{Change, Link, NewTrack, Opening};
use super::part::{NewPart, Part, track_of};
use super::{JointSpec, note};
use crate::clock::Clock;
use crate::disk::{Job, Round, Turn, ended, guarded};
use crate::outcome::{End, State, file_end};
use crate::single::LAST_WAIT;
use crate::{RecordError, RecordedMedia, Recorder};

/// The packets that are taken from a tap at a time: more than it can hold.
const ALL: usize = 16_384;
/// The packets that are taken before their frames are written.
const STRETCH: usize = 256;
/// The limit of files of a recording. A sender could change its codec at each keyframe.
const PARTS: u32 = 1_000;
/// Packets carry the number of their track. Those of new tracks carry this number plus the track's
/// index among the new ones.
const NEW: usize = 1_000;
/// A change of a gate takes effect after this time. By then workers have handed over the packets
/// from before.
const SETTLING: Duration = Duration::from_millis(100);
/// The interval between updates of the progress in the manifest.
const PROGRESS: Duration = Duration::from_secs(1);

/// A recording of tracks that share a file.
#[derive(Debug)]
pub(super) struct Writer {
    recorder: Recorder,
    media: MediaPlane,
    spec: JointSpec,
    link: Arc<Link>,
    state: watch::Sender<State>,
    clock: Clock,
    assembler: Assembler,
    tracks: Vec<Track>,
    /// New tracks without packets.
    new: VecDeque<NewTrack>,
    /// Changes of gates, by time, while packets from before may come.
    gates: VecDeque<Gate>,
    /// `None` once it has ended.
    part: Option<Part>,
    /// The number of files so far.
    parts: u32,
    /// Since when it is ending.
    ends_since: Option<Instant>,
    /// When the manifest was last updated.
    reported: Instant,
    /// The packets that are counted already.
    counted: u64,
}

/// A change of a track's gate.
#[derive(Debug)]
struct Gate {
    track: usize,
    open: bool,
    at: Instant,
}

/// A track of the recording.
#[derive(Debug)]
pub(super) struct Track {
    media: RecordedMedia,
    codec: CodecName,
    route: RouteId,
    /// `None` once it has ended.
    tap: Option<Tap>,
    is_removed: bool,
    /// The packets dropped by the tap, and those of them before the present file.
    dropped: u64,
    dropped_before: u64,
}

impl Track {
    /// Returns the packets that were dropped in the present file.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.saturating_sub(self.dropped_before)
    }
}

impl Writer {
    /// Returns the recording with its first file.
    pub(super) fn new(opening: Opening, part: Part) -> Self {
        let Opening {
            recorder,
            media,
            spec,
            link,
            state,
        } = opening;
        let clock = Clock::now();
        let _ = state.send(State::Open);
        Self {
            recorder,
            media,
            spec,
            link,
            state,
            clock,
            assembler: Assembler::new(Plan {
                split_on_size: part.has_one_size(),
                ..Plan::default()
            }),
            tracks: Vec::new(),
            new: VecDeque::new(),
            gates: VecDeque::new(),
            part: Some(part),
            parts: 1,
            ends_since: None,
            reported: clock.start(),
            counted: 0,
        }
    }

    /// Writes waiting packets. Returns the end of the recording, if it has come.
    fn work(&mut self, round: &mut Round) -> Result<Option<End>, RecordError> {
        if let Some(part) = &self.part {
            part.target.check_room(round)?;
        }
        self.take_changes();
        let is_stopped = self.link.control.is_stopped();
        self.take_packets(round)?;
        self.pass_gates(round.now.checked_sub(SETTLING));
        // The end of a removed track does not end the recording.
        self.take_changes();
        self.assembler.tick(self.since(round.now));
        let over = self.is_over(round.now, is_stopped);
        if over.is_some() {
            self.pass_gates(Some(round.now));
            self.assembler.end();
        }
        self.write()?;
        if let Some(part) = &mut self.part {
            part.flush_due(round.now)?;
        }
        Ok(over)
    }

    fn take_changes(&mut self) {
        for change in self.link.take_changes() {
            match change {
                Change::Add(track) => self.new.push_back(*track),
                Change::Remove(number) => {
                    let new = self.new.iter_mut().rev();
                    let new = new.map(|it| (it.number, &mut it.is_removed));
                    let known = self.tracks.iter_mut().enumerate();
                    let known = known.map(|(number, it)| (number, &mut it.is_removed));
                    if let Some((_, is_removed)) = new.chain(known).find(|it| it.0 == number) {
                        *is_removed = true;
                    }
                }
                Change::Gate { track, open, at } => {
                    let mut new = self.new.iter_mut().rev();
                    match new.find(|it| it.number == track) {
                        Some(new) => new.open = open,
                        None => self.gates.push_back(Gate { track, open, at }),
                    }
                }
            }
        }
    }

    /// Starts the first of the new tracks.
    fn add_next(&mut self) {
        let Some(new) = self.new.pop_front() else {
            return;
        };
        let Some(codec) = file_codec(new.codec.codec()) else {
            return;
        };
        let planned = PlannedTrack {
            codec,
            fmtp: new.media.fmtp().map(str::to_owned),
            open: new.open,
        };
        let track = Track {
            media: new.media,
            codec: new.codec,
            route: new.route,
            tap: new.tap,
            is_removed: new.is_removed,
            dropped: 0,
            dropped_before: 0,
        };
        match self.tracks.get_mut(new.number) {
            Some(known) => {
                let counters = &self.recorder.shared.counters;
                counters.dropped.fetch_add(known.dropped, Relaxed);
                *known = track;
                self.assembler
                    .replace(new.number, &planned, new.begins_part);
            }
            None => {
                self.tracks.push(track);
                self.assembler.add(&planned);
            }
        }
    }

    /// Takes the packets of the taps in the order of their arrival.
    fn take_packets(&mut self, round: &mut Round) -> Result<(), RecordError> {
        let Round { batch, mixed, .. } = round;
        let mut lost = Vec::new();
        mixed.clear();
        for (number, track) in self.tracks.iter_mut().enumerate() {
            let Some(tap) = &mut track.tap else {
                continue;
            };
            let dropped = tap.dropped();
            if !take_from(tap, number, batch, mixed) {
                track.tap = None;
            }
            if dropped > std::mem::replace(&mut track.dropped, dropped) {
                lost.push(number);
            }
        }
        for (place, new) in self.new.iter_mut().enumerate() {
            if let Some(tap) = &mut new.tap
                && !take_from(tap, NEW + place, batch, mixed)
            {
                new.tap = None;
            }
        }
        let numbers: Vec<usize> = self.new.iter().map(|new| new.number).collect();
        mixed.sort_by_key(|(_, tapped)| tapped.arrival());
        for (count, (source, tapped)) in mixed.drain(..).enumerate() {
            self.pass_gates(Some(tapped.arrival()));
            let place = source.checked_sub(NEW);
            let number = match place {
                None => source,
                Some(place) => {
                    // A track starts with its first packet, after all tracks that were added before
                    // it.
                    while numbers.len().saturating_sub(self.new.len()) <= place {
                        self.add_next();
                    }
                    numbers.get(place).copied().unwrap_or(source)
                }
            };
            self.push(number, &tapped);
            if count % STRETCH == STRETCH - 1 {
                self.write()?;
            }
        }
        while !self.new.is_empty() {
            self.add_next();
        }
        for number in lost {
            self.overrun(number);
        }
        for (number, track) in self.tracks.iter().enumerate() {
            if track.tap.is_none() {
                self.assembler.end_track(number);
            }
        }
        Ok(())
    }

    /// Applies the changes of gates up to this time, between the packets before and after.
    fn pass_gates(&mut self, until: Option<Instant>) {
        let is_due = |gate: &Gate| until.is_some_and(|until| gate.at <= until);
        while self.gates.front().is_some_and(is_due)
            && let Some(Gate { track, open, at }) = self.gates.pop_front()
        {
            let at = self.since(at);
            self.assembler.gate(track, open, at);
        }
    }

    /// Notes that packets of a track were dropped because the disk was too slow.
    fn overrun(&mut self, number: usize) {
        self.assembler.overrun(number);
        if let (Some(track), Some(part)) = (self.tracks.get(number), &self.part) {
            let file = part.target.path().display();
            if track.dropped_before == 0 {
                tracing::warn!(%file, "the disk is too slow: packets are left out of the recording");
            }
            self.media.request_outlet_keyframe(track.route);
        }
    }

    fn push(&mut self, number: usize, tapped: &Tapped) {
        match tapped {
            Tapped::Packet(packet) => {
                let arrived = arrived(packet, self.since(packet.arrival()));
                self.assembler.push(number, &arrived);
            }
            Tapped::Report(report) => {
                let report = assembler_report(report, self.since(report.arrival));
                self.assembler.report(number, &report);
            }
            Tapped::Message(_) => {}
        }
    }

    /// Returns the end of the recording, if it has come.
    fn is_over(&mut self, now: Instant, is_stopped: bool) -> Option<End> {
        let is_empty = self.tracks.iter().all(|track| track.tap.is_none());
        if is_stopped {
            // The taps are ending already, but packets handed over before still come.
            let since = *self.ends_since.get_or_insert(now);
            return (is_empty || now >= since + LAST_WAIT).then_some(End::Stopped);
        }
        let is_left = is_empty && self.tracks.iter().any(|track| !track.is_removed);
        // Another track may have been added meanwhile.
        (is_left && self.link.close_if_idle()).then_some(End::Source)
    }

    /// Carries out the steps of the assembler.
    fn write(&mut self) -> Result<(), RecordError> {
        loop {
            let Some(part) = &mut self.part else {
                return Ok(());
            };
            match self.assembler.step() {
                None => return Ok(()),
                Some(Step::Frame(frame)) => part.frame(&frame)?,
                Some(Step::Setup { track, setup }) => self.set_track(track, setup),
                Some(Step::NewPart { why }) => {
                    tracing::debug!(file = self.spec.name, ?why, "a new part");
                    self.begin_part()?;
                }
                Some(Step::WantKeyframe { track }) => {
                    if let Some(track) = self.tracks.get(track) {
                        self.media.request_outlet_keyframe(track.route);
                    }
                }
                Some(Step::Note { track, note }) => self.note(track, &note),
            }
        }
    }

    fn set_track(&mut self, number: usize, setup: TrackSetup) {
        let started = self.assembler.started().unwrap_or_default();
        let started_us = self.clock.at(self.clock.start() + started).0;
        let before = self.stats();
        let (Some(part), Some(track)) = (&mut self.part, self.tracks.get(number)) else {
            return;
        };
        let of = self.spec.of.as_ref();
        if !part.has_begun() {
            let title = of.and_then(|of| of.display.clone());
            part.begin(title, started_us, of, before);
        }
        let codec = named(setup.setup.codec()).unwrap_or(track.codec);
        let mut described = track.media.track();
        described.codec = codec.name().to_owned();
        part.set_track(number, setup, described);
    }

    /// Returns the counts of the tracks so far. They are those before the next file.
    fn stats(&self) -> Vec<TrackStats> {
        let is_first = self.part.as_ref().is_none_or(|part| part.number == 1);
        let stats = |number| match is_first {
            true => TrackStats::default(),
            false => self.assembler.stats(number),
        };
        (0..self.tracks.len()).map(stats).collect()
    }

    fn note(&mut self, number: usize, note: &Note) {
        if matches!(note, Note::Gap { .. }) {
            let counters = &self.recorder.shared.counters;
            counters.gaps.fetch_add(1, Relaxed);
        }
        if let Note::ClockDoubt(doubt) = note {
            let file = &self.spec.name;
            tracing::warn!(file, "the clocks of picture and sound differ by {doubt:?}");
        }
        if let Some(part) = &self.part {
            let is_news = !matches!(note, Note::Talks { .. });
            part.update_manifest(is_news, |file| {
                if let Some(track) = track_of(file, number) {
                    note::note(track, note);
                }
            });
        }
    }

    fn end_file(
        &self,
        part: Part,
        end: FileEnd,
        error: Option<&RecordError>,
    ) -> Result<(), RecordError> {
        let of = self.spec.of.as_ref();
        part.end(of, &self.link.control, end, error)
    }

    /// Ends the file, and starts the next.
    fn begin_part(&mut self) -> Result<(), RecordError> {
        self.note_progress();
        let Some(mut part) = self.part.take() else {
            return Ok(());
        };
        self.parts += 1;
        if self.parts > PARTS {
            let name = self.spec.name.clone();
            self.end_file(part, FileEnd::Part, None)?;
            return Err(RecordError::Parts { name, limit: PARTS });
        }
        let number = part.number + 1;
        let flushed = part.flush();
        self.end_file(part, FileEnd::Part, None)?;
        flushed?;
        for track in &mut self.tracks {
            track.dropped_before = track.dropped;
        }
        let tracks = self.tracks.iter().enumerate();
        let tracks = tracks.filter(|(_, track)| !track.is_removed);
        // The codec of new packets may differ from that of waiting frames.
        let codecs = tracks.map(|(number, track)| {
            let setup = self.assembler.setup(number);
            setup
                .and_then(|it| named(it.setup.codec()))
                .unwrap_or(track.codec)
        });
        let codecs: Vec<_> = codecs.collect();
        let format = self.spec.format.for_codecs(&codecs);
        let new = NewPart::claimed(&self.recorder, &self.spec, number, format)?;
        let part = new.create(&self.recorder, &self.spec)?;
        self.link.set_file(part.target.path());
        self.part = Some(part);
        Ok(())
    }

    /// Updates the progress in the manifest.
    fn note_progress(&mut self) {
        let numbers = 0..self.tracks.len();
        let packets: u64 = numbers.map(|it| self.assembler.stats(it).packets).sum();
        let counters = &self.recorder.shared.counters;
        let new = packets.saturating_sub(self.counted);
        counters.frames.fetch_add(new, Relaxed);
        self.counted = packets;
        if let Some(part) = &self.part {
            part.note_progress(&self.assembler, &self.tracks);
        }
    }

    fn end(&mut self, ended: Result<End, RecordError>) {
        self.link.close();
        self.note_progress();
        let dropped: u64 = self.tracks.iter().map(|track| track.dropped).sum();
        let counters = &self.recorder.shared.counters;
        counters.dropped.fetch_add(dropped, Relaxed);
        let end = file_end(&ended);
        let error = ended.as_ref().err();
        if let Some(error) = error {
            tracing::error!(file = self.spec.name, "recording ended: {error}");
        }
        let left = match self.part.take() {
            Some(part) => self.end_file(part, end, error),
            None => Ok(()),
        };
        let outcome = ended.and_then(|end| left.map(|()| end));
        let _ = self.state.send(State::Ended(outcome.map_err(Arc::new)));
    }

    /// Returns the time since the recording started.
    fn since(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.clock.start())
    }
}

/// Takes the packets of a tap. Returns false if it has ended.
fn take_from(
    tap: &mut Tap,
    source: usize,
    batch: &mut Vec<Tapped>,
    mixed: &mut Vec<(usize, Tapped)>,
) -> bool {
    batch.clear();
    let goes_on = tap.drain(batch, ALL);
    mixed.extend(batch.drain(..).map(|tapped| (source, tapped)));
    goes_on
}

impl Job for Writer {
    fn turn(&mut self, round: &mut Round) -> Turn {
        let worked = guarded(|| self.work(round));
        let Some(ended) = ended(worked, &self.spec.name) else {
            if round.now >= self.reported + PROGRESS {
                self.reported = round.now;
                self.note_progress();
            }
            return Turn::GoesOn;
        };
        self.end(ended);
        Turn::Ended
    }

    fn is_ending(&self) -> bool {
        self.link.control.is_stopped()
    }
}

fn arrived(packet: &TappedPacket, at: Duration) -> Arrived<'_> {
    let codec = match packet.codec() {
        _ if packet.is_opaque() => Coded::Other,
        Codec::Red => Coded::Red,
        codec => file_codec(codec).map_or(Coded::Other, Coded::Codec),
    };
    Arrived {
        at,
        stream: StreamKey(packet.stream()),
        seq: packet.seq(),
        timestamp: packet.source_timestamp(),
        marker: packet.marker(),
        encoding: packet.encoding(),
        codec,
        payload: packet.payload(),
        level: packet.level(),
        rotation: packet.orientation().map(|it| match it.rotation {
            extension::Rotation::Deg0 => Rotation::R0,
            extension::Rotation::Deg90 => Rotation::R90,
            extension::Rotation::Deg180 => Rotation::R180,
            extension::Rotation::Deg270 => Rotation::R270,
        }),
        capture: packet.capture_time(),
    }
}

fn assembler_report(report: &TappedReport, at: Duration) -> Report {
    Report {
        at,
        stream: StreamKey(report.stream),
        ntp: report.ntp,
        timestamp: report.timestamp,
        rtt: report.round_trip,
    }
}

/// Returns the codec for files.
fn file_codec(codec: Codec) -> Option<portunus_files::Codec> {
    use portunus_files::Codec as File;
    Some(match codec {
        Codec::Opus => File::Opus,
        Codec::Pcmu => File::Pcmu,
        Codec::Pcma => File::Pcma,
        Codec::Vp8 => File::Vp8,
        Codec::Vp9 => File::Vp9,
        Codec::Av1 => File::Av1,
        Codec::H264 => File::H264,
        Codec::H265 => File::H265,
        Codec::MultiOpus
        | Codec::G722
        | Codec::L16
        | Codec::Isac
        | Codec::Red
        | Codec::TelephoneEvent
        | Codec::ComfortNoise => return None,
    })
}

/// Returns the name of a codec for files.
fn named(codec: portunus_files::Codec) -> Option<CodecName> {
    let mut known = CodecName::ALL.into_iter();
    known.find(|name| file_codec(name.codec()) == Some(codec))
}
