//! Demuxers: from containers to frames with times.

pub(crate) mod boxes;
mod fragments;
mod input;
mod mp4;
mod ogg;
mod parts;
mod pcm;
pub(crate) mod runs;
mod sample_table;
mod webm;

use std::fmt::Debug;
use std::fs::File;
use std::path::Path;

use portunus_rtp::packetize::PayloadFormat;

pub(crate) use input::Input;
pub(crate) use parts::InParts;
pub(crate) use webm::{decode as decode_element, read_header as read_element_header};

use crate::mjr::UnixMicros;
use crate::opus::{OpusTime, packet_duration};
use crate::track::{Codec, TrackSource};
use crate::{FileError, OpenOptions};

/// A time on a file's own timeline, in ns.
pub(crate) type Nanos = i64;

/// A frame. It is read into again and again.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// The index among [`Demux::tracks`].
    pub track: usize,
    /// Its decoding time.
    pub at: Nanos,
    /// Its presentation time, which is not before `at` except for rounding.
    pub presented: Nanos,
    /// Its duration.
    pub duration: Nanos,
    /// Whether decoding can start here.
    pub keyframe: bool,
    /// The format of the track's frames from here on, if it has changed.
    pub format: Option<PayloadFormat>,
    pub data: Vec<u8>,
}

/// The demuxer of a container.
pub(crate) trait Demux: Send + Debug {
    /// Returns the tracks that are played: at most one of each kind.
    fn tracks(&self) -> &[TrackSource];

    /// Reads the next frame of any track. Returns false at the end.
    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError>;

    /// Seeks to the last keyframe at or before `to`, or else to the start.
    fn seek(&mut self, to: Nanos) -> Result<(), FileError>;

    /// Returns the duration of the file, if it is known.
    fn duration(&self) -> Option<Nanos>;

    /// Returns the times of day that the file has, in order of their positions. Between two of them
    /// the time of day advances with the file.
    fn clock(&self) -> Vec<ClockPlace> {
        Vec::new()
    }
}

/// The time of day at a position of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockPlace {
    pub at: Nanos,
    pub clock: UnixMicros,
}

/// Opens a file. The extension identifies raw G.711.
pub(crate) fn open_path(path: &Path, options: &OpenOptions) -> Result<Box<dyn Demux>, FileError> {
    // Opening a pipe would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let input = Input::new(Box::new(File::open(path)?))?;
    open(input, extension.unwrap_or_default(), options)
}

/// Opens an input: raw G.711 by its extension, others by their first bytes.
pub(crate) fn open(
    mut input: Input,
    extension: &str,
    options: &OpenOptions,
) -> Result<Box<dyn Demux>, FileError> {
    match extension.to_ascii_lowercase().as_str() {
        "alaw" => return pcm::open(input, Codec::Pcma, options),
        "mulaw" | "ulaw" => return pcm::open(input, Codec::Pcmu, options),
        _ => {}
    }
    let mut start = [0; 8];
    let found = input.read_up_to(&mut start)?;
    input.seek(0)?;
    match start {
        _ if found == 0 => Err(FileError::Empty),
        [b'O', b'g', b'g', b'S', ..] => ogg::open(input, options),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => webm::open(input, options),
        [_, _, _, _, b'f', b't', b'y', b'p'] => mp4::open(input, options),
        _ => Err(FileError::UnknownType),
    }
}

/// Converts `ticks` of 1/`rate` s to ns, rounded to the nearest. Returns `None` out of range.
fn nanos_of_ticks(ticks: i64, rate: u32) -> Option<Nanos> {
    let rate = i128::from(rate);
    let scaled = i128::from(ticks).checked_mul(1_000_000_000)?;
    let half = if scaled < 0 { -rate / 2 } else { rate / 2 };
    Nanos::try_from((scaled + half).checked_div(rate)?).ok()
}

/// Returns the duration of an Opus packet, or `None` if it is malformed.
fn opus_duration(packet: &[u8]) -> Option<Nanos> {
    let OpusTime(samples) = packet_duration(packet)?;
    nanos_of_ticks(i64::try_from(samples).ok()?, OpusTime::RATE)
}
