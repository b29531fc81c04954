//! The parts of a recording: files that follow one another.

use std::path::{Path, PathBuf};

use super::{ClockPlace, Demux, Frame, Nanos, open_path};
use crate::track::TrackSource;
use crate::{FileError, OpenOptions};

/// A file with its later parts. It has the tracks of the first one; other tracks, and other codecs,
/// are left out. No time passes between files.
#[derive(Debug)]
pub(crate) struct InParts {
    options: OpenOptions,
    parts: Vec<Part>,
    tracks: Vec<TrackSource>,
    /// The present part, and its number.
    demux: Box<dyn Demux>,
    current: usize,
    /// For each track of the part, the number in the first one.
    places: Vec<Option<usize>>,
    /// The start of the part, and the end of everything read.
    begins: Nanos,
    end: Nanos,
    /// For each track of the first part, whether the frames' format may have changed.
    is_new: Vec<bool>,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    duration: Nanos,
    clock: Vec<ClockPlace>,
}

impl Part {
    fn new(path: &Path, demux: &dyn Demux) -> Self {
        Self {
            path: path.to_owned(),
            duration: demux.duration().unwrap_or(0),
            clock: demux.clock(),
        }
    }
}

impl InParts {
    pub(crate) fn new(path: &Path, options: &OpenOptions) -> Result<Self, FileError> {
        let demux = open_path(path, options)?;
        let tracks: Vec<TrackSource> = demux.tracks().to_vec();
        Ok(Self {
            options: *options,
            parts: vec![Part::new(path, &*demux)],
            places: (0..tracks.len()).map(Some).collect(),
            is_new: vec![false; tracks.len()],
            tracks,
            demux,
            current: 0,
            begins: 0,
            end: 0,
        })
    }

    /// Adds the next file. Fails if it has none of the first one's tracks.
    pub(crate) fn add(&mut self, path: &Path) -> Result<(), FileError> {
        let demux = open_path(path, &self.options)?;
        if self.places_of(&*demux).iter().all(Option::is_none) {
            let why = "it does not go on with the file before";
            return Err(FileError::Unsupported(why));
        }
        self.parts.push(Part::new(path, &*demux));
        Ok(())
    }

    fn places_of(&self, demux: &dyn Demux) -> Vec<Option<usize>> {
        let place = |track: &TrackSource| {
            let codec = track.track.codec;
            self.tracks.iter().position(|it| it.track.codec == codec)
        };
        demux.tracks().iter().map(place).collect()
    }

    /// Opens this part at its start.
    fn go_to(&mut self, number: usize) -> Result<(), FileError> {
        let part = self.parts.get(number).ok_or(FileError::Empty)?;
        let demux = open_path(&part.path, &self.options)?;
        self.places = self.places_of(&*demux);
        self.demux = demux;
        self.current = number;
        self.is_new.fill(true);
        Ok(())
    }

    /// Goes to the next readable part. Returns false if there is none.
    fn go_on(&mut self) -> bool {
        let mut next = self.current + 1;
        while next < self.parts.len() {
            if self.go_to(next).is_ok() {
                // A part may be longer than its duration says.
                self.begins = self.begin_of(next).max(self.end);
                return true;
            }
            next += 1;
        }
        false
    }

    fn begin_of(&self, number: usize) -> Nanos {
        let before = self.parts.iter().take(number);
        before.fold(0, |sum, part| sum.saturating_add(part.duration))
    }
}

impl Demux for InParts {
    fn tracks(&self) -> &[TrackSource] {
        &self.tracks
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        loop {
            match self.demux.read(frame) {
                Ok(true) => {}
                Ok(false) if self.go_on() => continue,
                Ok(false) => return Ok(false),
                // A torn part is followed by the next one.
                Err(error) => match self.go_on() {
                    true => continue,
                    false => return Err(error),
                },
            }
            let Some(place) = self.places.get(frame.track).copied().flatten() else {
                continue;
            };
            let is_new = self.is_new.get_mut(place).is_some_and(std::mem::take);
            let format = self.demux.tracks().get(frame.track).filter(|_| is_new);
            frame.format = format.map(|track| track.format.clone());
            frame.track = place;
            frame.at = frame.at.saturating_add(self.begins);
            frame.presented = frame.presented.saturating_add(self.begins);
            self.end = self.end.max(frame.at.saturating_add(frame.duration));
            return Ok(true);
        }
    }

    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        let numbers = (0..self.parts.len()).rev();
        let number = numbers.into_iter().find(|it| self.begin_of(*it) <= to);
        let number = number.unwrap_or(0);
        if number != self.current {
            self.go_to(number)?;
        }
        self.begins = self.begin_of(number);
        self.end = self.begins;
        self.demux.seek(to.saturating_sub(self.begins))
    }

    fn duration(&self) -> Option<Nanos> {
        Some(self.begin_of(self.parts.len()))
    }

    fn clock(&self) -> Vec<ClockPlace> {
        let parts = self.parts.iter().enumerate();
        let places = parts.flat_map(|(number, part)| {
            let begins = self.begin_of(number);
            part.clock.iter().map(move |place| ClockPlace {
                at: place.at.saturating_add(begins),
                clock: place.clock,
            })
        });
        places.collect()
    }
}
