//! A recording that is read frame by frame, and the positions at which it can start.

use std::collections::VecDeque;
use std::time::Duration;

use portunus_rtp::Header;
use portunus_rtp::codec::{VideoCodec, is_keyframe};

use crate::demux::Input;
use crate::mjr::{FrameReader, Info, Medium};
use crate::{FileError, MAX_INDEX};

/// The bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The frames before a keyframe among which later packets of it may be.
const BEFORE: usize = 32;

/// The shortest distances of start positions, with and without keyframes.
const KEYFRAMES_APART: Duration = Duration::from_millis(250);
const OTHERS_APART: Duration = Duration::from_secs(1);

/// The limit of start positions in a file.
const MAX_MARKS: usize = MAX_INDEX as usize / size_of::<Mark>();

/// A recording that is being read.
#[derive(Debug)]
pub(super) struct Source {
    input: Input,
    reader: FrameReader,
    info: Info,
    /// The position of its first frame.
    start: u64,
    /// The codec, if its keyframes can be recognized.
    keyframes: Option<VideoCodec>,
    marks: Vec<Mark>,
    /// The positions of the last frames.
    recent: VecDeque<u64>,
    seen: Seen,
    chunk: Vec<u8>,
}

/// A position at which playing can start.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// The arrival of its frame, in ms since the first frame.
    at: u32,
    /// The sequence number of its keyframe, if it is one.
    keyframe: Option<u16>,
    /// The position to read from.
    position: u64,
}

/// How far a recording was ever read.
#[derive(Debug, Default)]
struct Seen {
    /// The position after the last frame.
    position: u64,
    /// The arrival of that frame.
    at: Duration,
    /// Whether it is the last one.
    all: bool,
    /// The timestamp of the last keyframe.
    keyframe: Option<u32>,
}

/// The result of [`Source::go_to`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The arrival of its first frame.
    pub at: Duration,
    /// The sequence number of its keyframe, if it is one. Packets before it must not be played.
    pub keyframe: Option<u16>,
}

impl Source {
    pub(super) fn open(mut input: Input) -> Result<Self, FileError> {
        let mut reader = FrameReader::new();
        let mut chunk = vec![0; CHUNK];
        let info = loop {
            if let Some(info) = reader.read_head()? {
                break info.clone();
            }
            match input.read_up_to(&mut chunk)? {
                0 => return Err(no_head(&reader)),
                read => reader.push(chunk.get(..read).unwrap_or_default()),
            }
        };
        let start = reader.position();
        let codec = VideoCodec::from_name(&info.codec);
        let keyframes = codec.filter(|_| info.medium == Medium::Video && !info.encrypted);
        Ok(Self {
            input,
            reader,
            start,
            keyframes,
            info,
            marks: Vec::new(),
            recent: VecDeque::with_capacity(BEFORE),
            seen: Seen {
                position: start,
                ..Seen::default()
            },
            chunk,
        })
    }

    pub(super) fn info(&self) -> &Info {
        &self.info
    }

    /// Whether playing has to start with a keyframe.
    pub(super) fn has_keyframes(&self) -> bool {
        self.keyframes.is_some()
    }

    /// Reads the next frame into `bytes`, and returns its arrival after the first one. Returns
    /// `None` at the end, also of a torn file.
    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Duration>, FileError> {
        loop {
            let position = self.reader.position();
            if let Some(frame) = self.reader.next()? {
                bytes.clear();
                bytes.extend_from_slice(frame.bytes);
                let at = frame.at;
                self.note(position, at, bytes);
                return Ok(Some(at));
            }
            let read = self.input.read_up_to(&mut self.chunk)?;
            if read == 0 {
                self.seen.all |= position >= self.seen.position;
                return Ok(None);
            }
            self.reader.push(self.chunk.get(..read).unwrap_or_default());
        }
    }

    /// Seeks to the last start position at or before `at`, or else to the first one.
    pub(super) fn go_to(&mut self, at: Duration) -> Result<Place, FileError> {
        self.see_until(at)?;
        let millis = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
        let behind = self.marks.partition_point(|mark| mark.at <= millis);
        let mark = self.marks.get(behind.saturating_sub(1)).copied();
        let mark = mark.unwrap_or(Mark {
            at: 0,
            keyframe: None,
            position: self.start,
        });
        self.jump(mark.position)?;
        Ok(Place {
            at: Duration::from_millis(mark.at.into()),
            keyframe: mark.keyframe,
        })
    }

    /// Reads on until the start positions before `at` are known. Damage ends the file.
    fn see_until(&mut self, at: Duration) -> Result<(), FileError> {
        if self.seen.all || self.seen.at > at {
            return Ok(());
        }
        self.jump(self.seen.position)?;
        let mut bytes = Vec::new();
        loop {
            match self.read(&mut bytes) {
                Ok(Some(come)) if come <= at => {}
                Ok(_) => return Ok(()),
                Err(error @ FileError::Io(_)) => return Err(error),
                Err(_) => {
                    self.seen.all = true;
                    return Ok(());
                }
            }
        }
    }

    fn jump(&mut self, position: u64) -> Result<(), FileError> {
        self.input.seek(position)?;
        self.reader = FrameReader::resume(self.info.clone(), position);
        self.recent.clear();
        Ok(())
    }

    /// Notes a frame that was not read before.
    fn note(&mut self, position: u64, at: Duration, bytes: &[u8]) {
        if self.recent.len() >= BEFORE {
            self.recent.pop_front();
        }
        self.recent.push_back(position);
        if position < self.seen.position {
            return;
        }
        self.seen.position = self.reader.position();
        self.seen.at = self.seen.at.max(at);
        let (apart, keyframe) = match self.keyframes {
            None => (OTHERS_APART, None),
            Some(codec) => {
                let Ok(header) = Header::parse(bytes) else {
                    return;
                };
                let is_other = self.seen.keyframe != Some(header.timestamp);
                if !is_other || !is_keyframe(codec, header.payload(bytes)) {
                    return;
                }
                self.seen.keyframe = Some(header.timestamp);
                (KEYFRAMES_APART, Some(header.sequence))
            }
        };
        let last = self.marks.last().map(|mark| mark.at);
        let due = last.map_or(Duration::ZERO, |last| {
            Duration::from_millis(last.into()) + apart
        });
        if at < due || self.marks.len() >= MAX_MARKS {
            return;
        }
        let first = self.recent.front().filter(|_| keyframe.is_some());
        self.marks.push(Mark {
            at: u32::try_from(at.as_millis()).unwrap_or(u32::MAX),
            keyframe,
            position: first.copied().unwrap_or(position),
        });
    }

    /// Returns the arrival of the last frame after the first one, from the end of the file.
    pub(super) fn last_frame(&mut self) -> Result<Option<Duration>, FileError> {
        let back = self.reader.position().min(self.input.position());
        let last = super::tail::last_frame(&mut self.input, self.start);
        self.jump(back)?;
        last
    }
}

/// Returns the error of a file that ends within the header.
fn no_head(reader: &FrameReader) -> FileError {
    match reader.finish() {
        Ok(()) => FileError::Empty,
        Err(error) => error.into(),
    }
}
