//! A file of a recording that tracks share.

use std::path::Path;
use std::time::{Duration, Instant};

use portunus_files::assemble::{Assembler, TrackStats};
use portunus_files::container::{
    self, Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, TrackSetup,
};
use portunus_files::manifest::{self, FileEnd};

use super::JointSpec;
use super::note::clock;
use super::writer::Track;
use crate::control::Control;
use crate::ending::Ending;
use crate::held::Held;
use crate::manifest_file::{NAMES, numbered};
use crate::session::Entry;
use crate::shared::Claim;
use crate::target::Target;
use crate::{Format, Participant, RecordError, Recorder};

/// Tracks that a file has room for.
pub(super) const MOST_TRACKS: usize = 6;
/// Edits are done once there are so many bytes of them while frames are taken.
const MANY: usize = 4 << 20;
/// Frames wait so long for more, and are written by one call, twice a second. They have waited for those that were lost before,
/// and after a crash at most 2 s may be missing.
const HOLD: Duration = Duration::from_millis(200);
/// What is kept free for the end of a file that may not be longer: so many bytes, and one byte of so many.
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
    /// One of this number; if it is not the first, of the next number that no other recording has.
    pub(super) fn claimed(
        recorder: &Recorder,
        spec: &JointSpec,
        (first, format): (u32, Format),
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

    /// Makes it; if it is not the first, with the next number that is free. It blocks.
    pub(super) fn create(self, recorder: &Recorder, spec: &JointSpec) -> Result<Part, RecordError> {
        let (first, format) = (self.number, self.format);
        let mut new = self;
        loop {
            let number = new.number;
            let name = numbered(&spec.name, number);
            match Target::create(new.claim, &recorder.places, &name) {
                Ok(target) => return Ok(Part::new(target, format, number)),
                Err(RecordError::Exists(_)) if first > 1 && number < first + NAMES => {
                    new = Self::claimed(recorder, spec, (number + 1, format))?;
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
    /// None before the first setup.
    writer: Option<Box<dyn ContainerWriter>>,
    edits: Edits,
    /// Since when there are edits to be done.
    held: Held,
    pub(super) entry: Option<Entry>,
    /// Where it ends by now.
    duration: Duration,
    /// Bytes of frames that the writer keeps.
    kept: u64,
    /// By track: what was before this file, and what it does not take.
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
            held: Held::new(match format {
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

    /// Whether anything is in it.
    pub(super) fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Begins the file; its time 0 is at `started_us`. `before` tells what became of tracks before it.
    pub(super) fn begin(
        &mut self,
        (title, started_us): (Option<String>, u64),
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
            Entry::begin(of, &self.target, (self.format, self.number), |file| {
                file.started_us = Some(started_us);
            })
        });
        self.tell(true, |file| file.started_us = Some(started_us));
    }

    /// Says what a track is.
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
        self.tell(true, |file| {
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

    /// Writes what can be written by now, if it is time to.
    pub(super) fn flush_due(&mut self, now: Instant) -> Result<(), RecordError> {
        if let Some(writer) = &mut self.writer {
            writer.flush(&mut self.edits);
        }
        let patches = self.edits.patches.iter().map(|(_, bytes)| bytes.len());
        let bytes = self.edits.append.len() + patches.sum::<usize>();
        // A file that has its header plays.
        let is_due = self.held.is_due(bytes, now) || self.target.len() == 0;
        if is_due { self.write() } else { Ok(()) }
    }

    /// Writes what can be written by now.
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

    /// Notes something in the manifest; `is_news`: so that people want to know it soon.
    pub(super) fn tell(&self, is_news: bool, change: impl FnOnce(&mut manifest::File)) {
        if let Some(entry) = &self.entry {
            entry.update(is_news, change);
        }
    }

    /// Notes how far it is.
    pub(super) fn tell_progress(&self, assembler: &Assembler, tracks: &[Track]) {
        self.tell(false, |file| {
            file.bytes = self.target.len();
            file.duration_ms = self.duration.as_secs_f64() * 1_000.0;
            for (number, track) in tracks.iter().enumerate() {
                let Some(told) = track_of(file, number) else {
                    continue;
                };
                let (now, before) = (assembler.stats(number), self.before.get(number));
                let before = before.copied().unwrap_or_default();
                told.packets = now.packets.saturating_sub(before.packets);
                told.lost = now.lost.saturating_sub(before.lost);
                told.late = now.late.saturating_sub(before.late);
                told.dropped = track.dropped();
                let filled = now.filled.saturating_sub(before.filled);
                told.filled_ms = filled.as_secs_f64() * 1_000.0;
                told.clock = clock(now.clock);
                let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
                told.clock_doubt_ms = now.clock_doubt.map(ms);
                told.offset_ms = now.offset.map(ms);
            }
        });
    }

    /// Ends the file: nothing more is written. A file that nothing came into is deleted.
    pub(super) fn end(
        mut self,
        (of, control): (Option<&Participant>, &Control),
        end: FileEnd,
        error: Option<&RecordError>,
    ) -> Result<(), RecordError> {
        let Some(writer) = self.writer.take() else {
            self.target.discard();
            return Ok(());
        };
        // What cannot be written any more is left as it is: it plays.
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
        // What there is first: it is kept whatever becomes of the end.
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

/// A track of a file in a manifest.
pub(super) fn track_of(file: &mut manifest::File, number: usize) -> Option<&mut manifest::Track> {
    let number = file_number(number);
    file.tracks.iter_mut().find(|track| track.track == number)
}

fn file_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1)
}
