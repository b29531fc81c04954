//! A file that tracks share: a part of their recording.

use std::path::Path;
use std::time::{Duration, Instant};

use portunus_files::assembly::{Assembler, TrackStats};
use portunus_files::container::{
    self, Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, TrackSetup,
};
use portunus_files::manifest::{self, FileEnd};

use super::JointSpec;
use super::note::clock;
use super::writer::Track;
use crate::control::Control;
use crate::ending::Ending;
use crate::place::{NAMES, numbered};
use crate::session::Entry;
use crate::shared::Claim;
use crate::target::Target;
use crate::write_delay::WriteDelay;
use crate::{Format, Participant, RecordError, Recorder};

/// The tracks that a file has room for.
pub(super) const MOST_TRACKS: usize = 6;
/// Edits are written when they have so many bytes.
const MANY: usize = 4 << 20;
/// The time for which frames wait to be written by one call, twice a second. They have also waited
/// for lost packets before, and after a crash at most 2 s may be missing.
const HOLD: Duration = Duration::from_millis(200);
/// The room that is kept for the end of a file with a greatest length: a fixed number of bytes, and
/// a share of its length.
const END_ROOM: u64 = 4_096;
const END_SHARE: u64 = 256;

/// A file that is to be made.
#[derive(Debug)]
pub(super) struct NewPart {
    claim: Claim,
    number: u32,
    format: Format,
}

impl NewPart {
    /// Claims the file with this number, or, unless it is the first, with the next number that is
    /// not in use.
    pub(super) fn claimed(
        recorder: &Recorder,
        spec: &JointSpec,
        first: u32,
        format: Format,
    ) -> Result<Self, RecordError> {
        let mut number = first;
        loop {
            let name = numbered(&spec.name, number);
            let places = &recorder.places;
            let path = places.file(spec.dir.as_deref(), &name, format.extension())?;
            match recorder.claim_name(&path, &name) {
                Ok(claim) => {
                    return Ok(Self {
                        claim,
                        number,
                        format,
                    });
                }
                Err(RecordError::Busy(_)) if first > 1 && number < first + NAMES => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.claim.path()
    }

    /// Makes the file, or, unless it is the first, one with the next free number. It blocks.
    pub(super) fn create(self, recorder: &Recorder, spec: &JointSpec) -> Result<Part, RecordError> {
        let (first, format) = (self.number, self.format);
        let mut new = self;
        loop {
            let number = new.number;
            let name = numbered(&spec.name, number);
            match Target::create(new.claim, &recorder.places, &name) {
                Ok(target) => return Ok(Part::new(target, format, number)),
                Err(RecordError::Exists(_)) if first > 1 && number < first + NAMES => {
                    new = Self::claimed(recorder, spec, number + 1, format)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) target: Target,
    pub(super) format: Format,
    pub(super) number: u32,
    container: Container,
    /// `None` before the first setup.
    writer: Option<Box<dyn ContainerWriter>>,
    edits: Edits,
    /// The waiting time of the edits.
    held: WriteDelay,
    pub(super) entry: Option<Entry>,
    /// The end so far.
    duration: Duration,
    /// The bytes of frames that the writer keeps.
    kept: u64,
    /// By track: the counts of earlier parts, and of frames that this part does not hold.
    before: Vec<TrackStats>,
    refused: Vec<bool>,
}

impl Part {
    pub(super) fn new(target: Target, format: Format, number: u32) -> Self {
        tracing::info!(file = %target.path().display(), "recording");
        Self {
            target,
            format,
            number,
            container: match format {
                Format::WebM => Container::WebM,
                Format::Mp4 => Container::Mp4,
                Format::Matroska | Format::Mjr | Format::OggOpus => Container::Matroska,
            },
            writer: None,
            edits: Edits::default(),
            held: WriteDelay::new(match format {
                // Its fragments have waited already.
                Format::Mp4 => Duration::ZERO,
                Format::WebM | Format::Matroska | Format::Mjr | Format::OggOpus => HOLD,
            }),
            entry: None,
            duration: Duration::ZERO,
            kept: 0,
            before: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Whether pictures of another size need another file.
    pub(super) fn has_one_size(&self) -> bool {
        self.container.has_one_size()
    }

    /// Whether it has content.
    pub(super) fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Starts the file, whose time 0 is at `started_us`. `before` holds the counts of earlier
    /// parts.
    pub(super) fn begin(
        &mut self,
        title: Option<String>,
        started_us: u64,
        of: Option<&Participant>,
        before: Vec<TrackStats>,
    ) {
        let info = FileInfo {
            title,
            started_us,
            tracks: MOST_TRACKS,
        };
        self.before = before;
        self.writer = Some(container::writer(self.container, info));
        self.entry = of.and_then(|of| {
            let path = self.target.claimed();
            Entry::begin(of, path, self.format, self.number, |file| {
                file.started_us = Some(started_us);
            })
        });
        self.update_manifest(true, |file| file.started_us = Some(started_us));
    }

    /// Sets up a track.
    pub(super) fn set_track(&mut self, number: usize, setup: TrackSetup, track: manifest::Track) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let change = setup.picture.map(|picture| manifest::Change {
            at_ms: 0.0,
            width: Some(picture.width),
            height: Some(picture.height),
            rotation: setup.rotation.degrees(),
        });
        if let Err(error) = writer.set_track(number, setup, &mut self.edits) {
            self.refuse(number, &error);
            return;
        }
        self.update_manifest(true, |file| {
            if track_of(file, number).is_none() {
                let mut track = manifest::Track {
                    track: file_number(number),
                    ..track
                };
                change
                    .into_iter()
                    .for_each(|change| track.add_change(change));
                file.tracks.push(track);
            }
        });
    }

    /// Writes a frame.
    pub(super) fn frame(&mut self, frame: &FrameOut<'_>) -> Result<(), RecordError> {
        let is_refused = self.refused.get(frame.track).copied().unwrap_or(false);
        let Some(writer) = self.writer.as_mut().filter(|_| !is_refused) else {
            return Ok(());
        };
        let before = writer.len();
        let (bytes, limit) = (frame.data.len() as u64, self.target.limit());
        let end = END_ROOM + limit / END_SHARE;
        let needed = before.saturating_add(self.kept).saturating_add(bytes);
        if needed.saturating_add(end) > limit {
            return Err(self.target.full());
        }
        match writer.frame(frame, &mut self.edits) {
            Ok(()) => self.duration = self.duration.max(frame.at + frame.duration),
            Err(error @ ContainerError::FrameTooLong(_)) => {
                let file = self.target.path().display();
                tracing::warn!(%file, "a frame is left out: {error}");
            }
            Err(error) => {
                self.refuse(frame.track, &error);
                return Ok(());
            }
        }
        self.kept = match writer.len() > before {
            true => 0,
            false => self.kept.saturating_add(bytes),
        };
        match self.edits.append.len() > MANY {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Writes what is ready, if it is time.
    pub(super) fn flush_due(&mut self, now: Instant) -> Result<(), RecordError> {
        if let Some(writer) = &mut self.writer {
            writer.flush(&mut self.edits);
        }
        let patches = self.edits.patches.iter().map(|(_, bytes)| bytes.len());
        let bytes = self.edits.append.len() + patches.sum::<usize>();
        // A file plays once it has its header.
        let is_due = self.held.is_due(bytes, now) || self.target.len() == 0;
        if is_due { self.write() } else { Ok(()) }
    }

    /// Writes what is ready.
    pub(super) fn flush(&mut self) -> Result<(), RecordError> {
        if let Some(writer) = &mut self.writer {
            writer.flush(&mut self.edits);
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), RecordError> {
        self.held.clear();
        self.target.edit(&mut self.edits)
    }

    /// Changes the manifest. `is_news`: it is to be written soon.
    pub(super) fn update_manifest(&self, is_news: bool, change: impl FnOnce(&mut manifest::File)) {
        if let Some(entry) = &self.entry {
            entry.update(is_news, change);
        }
    }

    /// Notes the progress in the manifest.
    pub(super) fn note_progress(&self, assembler: &Assembler, tracks: &[Track]) {
        self.update_manifest(false, |file| {
            file.bytes = self.target.len();
            file.duration_ms = self.duration.as_secs_f64() * 1_000.0;
            for (number, track) in tracks.iter().enumerate() {
                let Some(entry) = track_of(file, number) else {
                    continue;
                };
                let (now, before) = (assembler.stats(number), self.before.get(number));
                let before = before.copied().unwrap_or_default();
                entry.packets = now.packets.saturating_sub(before.packets);
                entry.lost = now.lost.saturating_sub(before.lost);
                entry.late = now.late.saturating_sub(before.late);
                entry.dropped = track.dropped();
                let filled = now.filled.saturating_sub(before.filled);
                entry.filled_ms = filled.as_secs_f64() * 1_000.0;
                entry.clock = clock(now.clock);
                let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
                entry.clock_doubt_ms = now.clock_doubt.map(ms);
                entry.offset_ms = now.offset.map(ms);
            }
        });
    }

    /// Ends the file. A file without content is deleted.
    pub(super) fn end(
        mut self,
        of: Option<&Participant>,
        control: &Control,
        end: FileEnd,
        error: Option<&RecordError>,
    ) -> Result<(), RecordError> {
        let Some(writer) = self.writer.take() else {
            self.target.discard();
            return Ok(());
        };
        // If writing fails, the file is left as it is. It plays.
        let finished = match error {
            Some(RecordError::Write { .. }) => Ok(()),
            Some(error) if !error.leaves_room() => self.write(),
            _ => self.finish(writer),
        };
        let ending = Ending {
            entry: self.entry.take(),
            of,
            control,
            end,
            error,
            duration: self.duration,
        };
        ending.conclude(self.target, finished)
    }

    fn finish(&mut self, writer: Box<dyn ContainerWriter>) -> Result<(), RecordError> {
        // The content comes first, so that it is kept if the end cannot be written.
        self.write()?;
        writer.finish(&mut self.edits);
        if self.target.is_full_with(self.edits.append.len() as u64) {
            // It plays without its end.
            self.edits.clear();
        }
        self.write()
    }

    fn refuse(&mut self, number: usize, error: &ContainerError) {
        let file = self.target.path().display();
        tracing::warn!(%file, "a track is left out: {error}");
        if self.refused.len() <= number {
            self.refused.resize(number + 1, false);
        }
        if let Some(refused) = self.refused.get_mut(number) {
            *refused = true;
        }
    }
}

/// Returns a track of a file in a manifest.
pub(super) fn track_of(file: &mut manifest::File, number: usize) -> Option<&mut manifest::Track> {
    let number = file_number(number);
    file.tracks.iter_mut().find(|track| track.track == number)
}

fn file_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1)
}
