//! Ogg with Opus (RFC 7845). Times are counted from the packets.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use ogg::{OggReadError, Packet, PacketReader};

use super::{Demux, Frame, Input, Nanos, nanos_of_ticks, opus_duration};
use crate::opus::{self, OpusTime};
use crate::track::{Kind, TrackSource};
use crate::{FileError, MAX_FRAME, OpenOptions};

/// The limit of packets of other streams in a row.
const MAX_FOREIGN_PACKETS: u32 = 10_000;

/// The limit of packets of a page (RFC 3533 section 6).
const MAX_PAGE_PACKETS: usize = 255;

pub(super) fn open(mut input: Input, options: &OpenOptions) -> Result<Box<dyn Demux>, FileError> {
    if !options.audio {
        return Err(FileError::NoTrack("video"));
    }
    let last = LastPage::read(&mut input)?;
    input.seek(0)?;
    let mut this = Ogg {
        reader: PacketReader::new(Rationed::new(input)),
        serial: 0,
        tracks: [TrackSource::opus(1)],
        at: 0,
        tags_are_next: false,
        duration: None,
    };
    let mut other = None;
    // The first packets of all streams come first.
    while let Some(packet) = this.packet()? {
        if let Some(channels) = opus::channels_of_head(&packet.data) {
            if channels > 2 {
                return Err(surround());
            }
            this.tracks = [TrackSource::opus(channels)];
            this.begin(&packet);
            let last = last.filter(|last| last.serial == packet.stream_serial());
            if let Some(last) = last {
                // Errors are reported while playing.
                this.duration = this.duration_until(&last).ok().flatten();
                this.seek(0)?;
            }
            return Ok(Box::new(this));
        }
        if !packet.first_in_stream() {
            break;
        }
        other = other.or(Some(packet.data));
    }
    Err(match other {
        Some(head) => FileError::Codec {
            track: 1,
            kind: if head.get(1..7) == Some(b"theora".as_slice()) {
                Kind::Video
            } else {
                Kind::Audio
            },
            codec: name_of(&head).to_owned(),
            advice: "transcode it to Opus",
        },
        None => FileError::Empty,
    })
}

fn surround() -> FileError {
    FileError::Unsupported("Opus of more than two channels: mix it down to stereo")
}

fn name_of(head: &[u8]) -> &'static str {
    match head {
        [_, b'v', b'o', b'r', b'b', b'i', b's', ..] => "Vorbis",
        [_, b't', b'h', b'e', b'o', b'r', b'a', ..] => "Theora",
        [_, b'F', b'L', b'A', b'C', ..] => "FLAC",
        [b'S', b'p', b'e', b'e', b'x', ..] => "Speex",
        _ => "an unknown codec",
    }
}

struct Ogg {
    reader: PacketReader<Rationed>,
    serial: u32,
    tracks: [TrackSource; 1],
    at: Nanos,
    tags_are_next: bool,
    duration: Option<Nanos>,
}

/// The last complete page.
#[derive(Debug, Clone, Copy)]
struct LastPage {
    /// The serial number of its stream.
    serial: u32,
    /// The end of its content in samples.
    end: u64,
}

impl LastPage {
    /// Finds it at the end of a file. Returns `None` if no page has an end.
    fn read(input: &mut Input) -> Result<Option<Self>, FileError> {
        /// Two pages of the greatest length.
        const TAIL: u64 = 2 * 65_307;
        let len = input.len().min(TAIL);
        input.seek(input.len().saturating_sub(len))?;
        let mut tail = Vec::new();
        input.read_into(&mut tail, len, TAIL, "the end of the file")?;
        let found = (0..tail.len())
            .rev()
            .find_map(|at| Self::at(tail.get(at..)?));
        Ok(found)
    }

    /// Returns the page at the start of these bytes, if it is complete (RFC 3533 section 6).
    fn at(bytes: &[u8]) -> Option<Self> {
        const HEAD: usize = 27;
        /// No packet ends in the page.
        const NONE: u64 = u64::MAX;
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        // The capture pattern and the version.
        let fields = head.strip_prefix(b"OggS\0")?;
        let end = u64::from_le_bytes(*fields.get(1..)?.first_chunk()?);
        let serial = u32::from_le_bytes(*fields.get(9..)?.first_chunk()?);
        let sizes = rest.get(..usize::from(*head.last()?))?;
        let body: usize = sizes.iter().map(|size| usize::from(*size)).sum();
        let is_whole = rest.len() >= sizes.len() + body;
        (is_whole && end != NONE).then_some(Self { serial, end })
    }
}

impl Ogg {
    /// Returns the duration up to the end of a page. The start is in the first page with audio. It
    /// moves the reader.
    fn duration_until(&mut self, last: &LastPage) -> Result<Option<Nanos>, FileError> {
        let mut first = OpusTime(0);
        for _ in 0..MAX_PAGE_PACKETS {
            let Some((packet, _)) = self.sound()? else {
                break;
            };
            if packet.stream_serial() != last.serial {
                break;
            }
            let length = opus::packet_duration(&packet.data).unwrap_or_default();
            first = first.plus(length);
            if packet.last_in_page() {
                let begins = OpusTime(packet.absgp_page()).since(first);
                let length = OpusTime(last.end).since(begins);
                let ticks = i64::try_from(length.0).ok();
                return Ok(ticks.and_then(|ticks| nanos_of_ticks(ticks, OpusTime::RATE)));
            }
        }
        Ok(None)
    }

    fn packet(&mut self) -> Result<Option<Packet>, FileError> {
        self.reader.get_mut().ration = MAX_FRAME;
        self.reader.read_packet().map_err(|error| match error {
            OggReadError::ReadError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                FileError::Truncated(self.reader.get_ref().input.len())
            }
            OggReadError::ReadError(error) if error.kind() == io::ErrorKind::InvalidData => {
                FileError::corrupt(error.to_string())
            }
            OggReadError::ReadError(error) => error.into(),
            error => FileError::corrupt(error.to_string()),
        })
    }

    /// Selects the stream that `head` starts.
    fn begin(&mut self, head: &Packet) {
        self.serial = head.stream_serial();
        self.tags_are_next = true;
    }

    /// Returns the next packet with audio.
    fn sound(&mut self) -> Result<Option<(Packet, Nanos)>, FileError> {
        for _ in 0..MAX_FOREIGN_PACKETS {
            let Some(packet) = self.packet()? else {
                return Ok(None);
            };
            if let Some(channels) = opus::channels_of_head(&packet.data) {
                // Streams may follow one another (chaining).
                if channels > 2 {
                    return Err(surround());
                }
                self.begin(&packet);
            } else if packet.stream_serial() == self.serial {
                if std::mem::take(&mut self.tags_are_next) {
                    continue;
                }
                let duration = opus_duration(&packet.data)
                    .ok_or_else(|| FileError::corrupt("an Opus packet without duration"))?;
                return Ok(Some((packet, duration)));
            }
        }
        Err(FileError::corrupt("too many packets of other streams"))
    }
}

impl Demux for Ogg {
    fn tracks(&self) -> &[TrackSource] {
        &self.tracks
    }

    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        let Some((packet, duration)) = self.sound()? else {
            return Ok(false);
        };
        frame.track = 0;
        frame.at = self.at;
        frame.presented = self.at;
        frame.duration = duration;
        frame.keyframe = true;
        frame.data = packet.data;
        self.at = self.at.saturating_add(duration);
        Ok(true)
    }

    /// Seeks by counting packets from the start, which is exact and takes milliseconds.
    fn seek(&mut self, to: Nanos) -> Result<(), FileError> {
        self.reader.get_mut().ration = MAX_FRAME;
        self.reader.seek_bytes(SeekFrom::Start(0))?;
        self.at = 0;
        self.tags_are_next = false;
        // The header is read again, and selects the stream.
        while self.at < to {
            let Some((_, duration)) = self.sound()? else {
                return Ok(());
            };
            self.at = self.at.saturating_add(duration);
        }
        Ok(())
    }

    fn duration(&self) -> Option<Nanos> {
        self.duration
    }
}

impl fmt::Debug for Ogg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ogg(serial {}, at {} ns)", self.serial, self.at)
    }
}

/// Limits the bytes of a packet, because the reader collects pages without a limit.
struct Rationed {
    input: Input,
    ration: u64,
}

impl Rationed {
    fn new(input: Input) -> Self {
        let ration = MAX_FRAME;
        Self { input, ration }
    }
}

impl Read for Rationed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.ration = self
            .ration
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a packet without end"))?;
        Ok(read)
    }
}

impl Seek for Rationed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::Current(by) => self.input.position().checked_add_signed(by),
            SeekFrom::End(by) => self.input.len().checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        self.input
            .seek(target)
            .map_err(|error| io::Error::new(io::ErrorKind::UnexpectedEof, error.to_string()))?;
        Ok(target)
    }
}
