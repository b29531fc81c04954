//! Recordings that are read together.

use std::io::{Read, Seek};
use std::time::Duration;

use super::ConvertError;
use crate::FileError;
use crate::demux::Input;
use crate::mjr::{FrameReader, Info, Medium, MjrError, UnixMicros};

/// Recordings whose beginnings are further apart than this were not made together.
const APART: Duration = Duration::from_secs(24 * 3_600);
/// How much of a file is read at once, in bytes.
const PIECE: usize = 64 << 10;

/// What was recorded together, frame by frame in the order in which it came.
#[derive(Debug)]
pub struct Recordings {
    files: Vec<Recorded>,
    started: UnixMicros,
    /// The file whose frame was taken last.
    current: Option<usize>,
}

/// Where and why a recording ends before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its index among those that were given.
    pub index: usize,
    /// What is wrong there.
    pub why: String,
}

/// A frame of one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedFrame<'a> {
    /// The index of its recording.
    pub index: usize,
    /// When it came, since the beginning of the first of all.
    pub at: Duration,
    pub bytes: &'a [u8],
}

#[derive(Debug)]
struct Recorded {
    input: Input,
    reader: FrameReader,
    info: Info,
    /// When its first frame came after the beginning of all.
    begins: Duration,
    /// The frame that is next.
    next: Option<Duration>,
    bytes: Vec<u8>,
    piece: Vec<u8>,
    damage: Option<String>,
}

impl Recordings {
    /// Opens them and reads what they say of themselves.
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

    /// What they say of themselves.
    pub fn infos(&self) -> impl Iterator<Item = &Info> {
        self.files.iter().map(|file| &file.info)
    }

    /// When the first frame of all came.
    pub fn started(&self) -> UnixMicros {
        self.started
    }

    /// How much is read, from 0 to 1.
    pub fn progress(&self) -> f32 {
        let read: u64 = self.files.iter().map(|file| file.input.position()).sum();
        let len: u64 = self.files.iter().map(|file| file.input.len()).sum();
        read as f32 / len.max(1) as f32
    }

    /// Where recordings ended before their end, as far as they are read.
    pub fn damage(&self) -> impl Iterator<Item = Damage> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(index, file)| {
            let why = file.damage.clone()?;
            Some(Damage { index, why })
        })
    }

    /// The next frame of all.
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

    /// Reads the next frame. Where the file is cut off or corrupt, it ends.
    fn read(&mut self) -> Result<(), FileError> {
        self.next = None;
        loop {
            match self.reader.next() {
                Ok(Some(frame)) => {
                    self.bytes.clear();
                    self.bytes.extend_from_slice(frame.bytes);
                    let at = match frame.clock {
                        // The beginning of a recording without a first frame is when it was made.
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
