//! Containers: from bytes to frames with times.

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

/// Nanoseconds of a file's own time line.
pub(crate) type Nanos = i64;

/// A frame, to be read into again and again.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// Which of [`Demux::tracks`].
    pub track: usize,
    /// When it is to be decoded.
    pub at: Nanos,
    /// When it is to be shown: not before `at`, but for rounding.
    pub presented: Nanos,
    /// How long it lasts.
    pub duration: Nanos,
    /// Decoding can begin here.
    pub keyframe: bool,
    /// What the form of the track's frames is from here on, if that is another than before.
    pub format: Option<PayloadFormat>,
    pub data: Vec<u8>,
}

/// A container that is being read.
pub(crate) trait Demux: Send + Debug {
    /// The tracks that are played: at most one of each kind.
    fn tracks(&self) -> &[TrackSource];

    /// Reads the next frame of any of them; false at the end.
    fn read(&mut self, frame: &mut Frame) -> Result<bool, FileError>;

    /// Goes to the last place at or before `to` where decoding can begin, if there is such a place;
    /// to the start otherwise.
    fn seek(&mut self, to: Nanos) -> Result<(), FileError>;

    /// How long the file lasts, if it says so.
    fn duration(&self) -> Option<Nanos>;

    /// The time of day at places of the time line, in their order, where the file tells it. From one to the next it goes on.
    fn clock(&self) -> Vec<ClockPlace> {
        Vec::new()
    }
}

/// The time of day at a place of a file's time line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockPlace {
    pub at: Nanos,
    pub clock: UnixMicros,
}

/// Opens a file. The name's end tells raw G.711 from the rest.
pub(crate) fn open_path(path: &Path, options: &OpenOptions) -> Result<Box<dyn Demux>, FileError> {
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let input = Input::new(Box::new(File::open(path)?))?;
    open(input, extension.unwrap_or_default(), options)
}

/// Finds out what the file is: raw G.711 by its name, anything else by what it begins with.
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

/// `ticks` of 1/`rate` s in nanoseconds, rounded to the nearest; nothing if it is out of any range.
fn nanos_of_ticks(ticks: i64, rate: u32) -> Option<Nanos> {
    let rate = i128::from(rate);
    let scaled = i128::from(ticks).checked_mul(1_000_000_000)?;
    let half = if scaled < 0 { -rate / 2 } else { rate / 2 };
    Nanos::try_from((scaled + half).checked_div(rate)?).ok()
}

/// How long an Opus packet plays; nothing if it is malformed.
fn opus_duration(packet: &[u8]) -> Option<Nanos> {
    let OpusTime(samples) = packet_duration(packet)?;
    nanos_of_ticks(i64::try_from(samples).ok()?, OpusTime::RATE)
}
