//! Recordings that are read together.

use std::io::{Read, Seek};
use std::time::Duration;

use super::ConvertError;
use crate::FileError;
use crate::demux::Input;
use crate::mjr::{FrameReader, Info, Medium, MjrError, UnixMicros};

/// Recordings with starts further apart were not made together.
const APART: Duration = Duration::from_secs(24 * 3_600);
/// The bytes of a file that are read at once.
const PIECE: usize = 64 << 10;

/// Recordings that were made together, read frame by frame in the order of arrival.
#[derive(Debug)]
pub struct Recordings {
    files: Vec<Recorded>,
    started: UnixMicros,
    /// The file of the last frame.
    current: Option<usize>,
}

/// The damage of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The index of the recording.
    pub index: usize,
    /// The problem.
    pub why: String,
}

/// A frame of a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedFrame<'a> {
    /// The index of its recording.
    pub index: usize,
    /// Its arrival since the first frame of all recordings.
    pub at: Duration,
    pub bytes: &'a [u8],
}

#[derive(Debug)]
struct Recorded {
    input: Input,
    reader: FrameReader,
    info: Info,
    /// The arrival of its first frame since that of all recordings.
    begins: Duration,
    /// The arrival of the next frame.
    next: Option<Duration>,
    bytes: Vec<u8>,
    piece: Vec<u8>,
    damage: Option<String>,
}

impl Recordings {
    /// Opens recordings, and reads their headers.
    pub fn open(
        readers: impl IntoIterator<Item = impl Read + Seek + Send + 'static>,
    ) -> Result<Self, ConvertError> {
        let mut files = Vec::new();
        for (index, reader) in readers.into_iter().enumerate() {
            let opened = Input::new(Box::new(reader)).and_then(Recorded::open);
            files.push(opened.map_err(|error| ConvertError::Input { index, error })?);
        }
        let starts = || files.iter().map(|file: &Recorded| file.info.first_frame);
        let started = starts().min().unwrap_or_default();
        let apart = starts().max().unwrap_or_default().since(started);
        if apart > APART {
            return Err(ConvertError::Apart(apart));
        }
        for (index, file) in files.iter_mut().enumerate() {
            file.begins = file.info.first_frame.since(started);
            let read = file.read();
            read.map_err(|error| ConvertError::Input { index, error })?;
        }
        Ok(Self {
            files,
            started,
            current: None,
        })
    }

    /// Returns the headers.
    pub fn infos(&self) -> impl Iterator<Item = &Info> {
        self.files.iter().map(|file| &file.info)
    }

    /// Returns the time of day of the first frame.
    pub fn started(&self) -> UnixMicros {
        self.started
    }

    /// Returns the read part, 0 to 1.
    pub fn progress(&self) -> f32 {
        let read: u64 = self.files.iter().map(|file| file.input.position()).sum();
        let len: u64 = self.files.iter().map(|file| file.input.len()).sum();
        read as f32 / len.max(1) as f32
    }

    /// Returns the damages that were found so far.
    pub fn damage(&self) -> impl Iterator<Item = Damage> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(index, file)| {
            let why = file.damage.clone()?;
            Some(Damage { index, why })
        })
    }

    /// Returns the next frame of all recordings.
    pub(super) fn next(&mut self) -> Result<Option<RecordedFrame<'_>>, ConvertError> {
        if let Some((index, file)) = self.current.take().and_then(|index| {
            let file = self.files.get_mut(index)?;
            Some((index, file))
        }) {
            let read = file.read();
            read.map_err(|error| ConvertError::Input { index, error })?;
        }
        let files = self.files.iter().enumerate();
        let due = files.filter_map(|(index, file)| Some((index, file, file.next?)));
        let Some((index, file, at)) = due.min_by_key(|(_, _, at)| *at) else {
            return Ok(None);
        };
        self.current = Some(index);
        let bytes = file.bytes.as_slice();
        Ok(Some(RecordedFrame { index, at, bytes }))
    }
}

impl Recorded {
    fn open(input: Input) -> Result<Self, FileError> {
        let mut this = Self {
            input,
            reader: FrameReader::new(),
            info: Info::new(Medium::Audio, "", UnixMicros::default()),
            begins: Duration::ZERO,
            next: None,
            bytes: Vec::new(),
            piece: vec![0; PIECE],
            damage: None,
        };
        loop {
            if let Some(info) = this.reader.read_head()? {
                this.info = info.clone();
                return Ok(this);
            }
            if !this.more()? {
                return Err(match this.reader.finish() {
                    Err(error) => error.into(),
                    Ok(()) => FileError::Empty,
                });
            }
        }
    }

    /// Reads the next frame. Damage ends the recording.
    fn read(&mut self) -> Result<(), FileError> {
        self.next = None;
        loop {
            match self.reader.next() {
                Ok(Some(frame)) => {
                    self.bytes.clear();
                    self.bytes.extend_from_slice(frame.bytes);
                    let at = match frame.clock {
                        // A recording without a first frame starts at its creation.
                        Some(clock) if self.info.first_frame != UnixMicros::default() => {
                            let since = clock.since(self.info.first_frame);
                            if since.abs_diff(frame.at) < APART {
                                since
                            } else {
                                frame.at
                            }
                        }
                        _ => frame.at,
                    };
                    self.next = Some(self.begins.saturating_add(at));
                    return Ok(());
                }
                Ok(None) => {}
                Err(error) => return self.ends(&error),
            }
            if !self.more()? {
                return match self.reader.finish() {
                    Ok(()) => Ok(()),
                    Err(error) => self.ends(&error),
                };
            }
        }
    }

    fn ends(&mut self, error: &MjrError) -> Result<(), FileError> {
        self.damage = Some(error.to_string());
        Ok(())
    }

    fn more(&mut self) -> Result<bool, FileError> {
        let read = self.input.read_up_to(&mut self.piece)?;
        self.reader.push(self.piece.get(..read).unwrap_or_default());
        Ok(read > 0)
    }
}
