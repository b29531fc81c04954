//! Files of frames, written as they come.
//!
//! A [`ContainerWriter`] turns frames into [`Edits`] of a file: bytes to append, and bytes to write over what is there. It has no
//! clock and no file. What was appended plays at any time, whatever comes after it.

mod repair;
mod writer;

use std::fmt::Debug;
use std::time::Duration;

use thiserror::Error;

use crate::bitstream::{Picture, Setup};
use crate::track::Codec;

pub use repair::repair;
pub use writer::writer;

/// Bytes that a file begins with, and that are written again when something about the whole file becomes known. A header that is
/// longer from the start has more.
pub const HEADER_ROOM: usize = 8_192;

/// A file format that frames are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    /// WebM: Matroska with a few codecs, as browsers play it.
    WebM,
    /// Matroska (RFC 9559).
    Matroska,
    /// Fragmented MP4 (ISO/IEC 14496-12).
    Mp4,
}

impl Container {
    /// What names of its files end in, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Container::WebM => "webm",
            Container::Matroska => "mkv",
            Container::Mp4 => "mp4",
        }
    }

    /// Whether all pictures of a track have the size that its header says, as players of it believe.
    pub const fn has_one_size(self) -> bool {
        matches!(self, Container::Mp4)
    }

    /// Whether tracks of this codec can be in it.
    pub const fn takes(self, codec: Codec) -> bool {
        match self {
            Container::WebM => matches!(codec, Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::Opus),
            Container::Matroska => true,
            Container::Mp4 => matches!(
                codec,
                Codec::H264 | Codec::H265 | Codec::Av1 | Codec::Vp9 | Codec::Opus
            ),
        }
    }
}

/// How a picture has to be turned to stand upright: clockwise, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rotation {
    /// Not at all.
    #[default]
    R0,
    /// A quarter.
    R90,
    /// Upside down.
    R180,
    /// Three quarters.
    R270,
}

impl Rotation {
    /// In degrees, clockwise.
    pub const fn degrees(self) -> u16 {
        match self {
            Rotation::R0 => 0,
            Rotation::R90 => 90,
            Rotation::R180 => 180,
            Rotation::R270 => 270,
        }
    }
}

/// What is said of a whole file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileInfo {
    /// A title for people.
    pub title: Option<String>,
    /// When time 0 of the file was, in microseconds since 1970.
    pub started_us: u64,
    /// How many tracks it has at most.
    pub tracks: usize,
}

/// What is said of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackSetup {
    /// Its codec, with what a decoder has to know.
    pub setup: Setup,
    /// The size of its pictures at the beginning; video only.
    pub picture: Option<Picture>,
    /// How its pictures are to be turned.
    pub rotation: Rotation,
    /// A name for people.
    pub name: Option<String>,
}

/// A frame that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct FrameOut<'a> {
    /// Its track, from 0.
    pub track: usize,
    /// When it is shown or heard, since the file's beginning.
    pub at: Duration,
    /// How long it lasts; zero if that is not known.
    pub duration: Duration,
    /// Whether decoding can begin here.
    pub keyframe: bool,
    /// The frame as decoders take it: of H.264 and H.265 NAL units with lengths of 4 bytes, of AV1 OBUs with their sizes.
    pub data: &'a [u8],
}

/// What is to be done to a file: first append, then write over what is there, one patch after the other. All of it has to be done
/// before the next edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edits {
    /// Bytes for the end.
    pub append: Vec<u8>,
    /// Where in the file, and what is to stand there. Nothing reaches beyond the end.
    pub patches: Vec<(u64, Vec<u8>)>,
}

impl Edits {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.append.is_empty() && self.patches.is_empty()
    }

    /// Forgets what was done.
    pub fn clear(&mut self) {
        self.append.clear();
        self.patches.clear();
    }
}

/// Why a writer does not take something. What it wrote before is not touched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// There are fewer tracks.
    #[error("there is no track {0}")]
    NoTrack(usize),
    /// A frame came before the setup of its track.
    #[error("track {0} has no setup")]
    NoSetup(usize),
    /// The container has no place for the codec.
    #[error("files of {container:?} have no tracks of {}", .codec.name())]
    Codec {
        /// The container.
        container: Container,
        /// The codec.
        codec: Codec,
    },
    /// The track has another codec already.
    #[error("track {0} changes its codec")]
    CodecChanged(usize),
    /// Video without the size of its pictures.
    #[error("the size of the pictures of track {0} is not known")]
    NoPicture(usize),
    /// The setup says nothing that a decoder could use.
    #[error("the setup of track {0} is incomplete")]
    Incomplete(usize),
    /// The header is written already, and has no room for this.
    #[error("a header of {0} bytes has no room in the file")]
    NoRoom(usize),
    /// A frame that no reader would take.
    #[error("a frame of {0} bytes")]
    FrameTooLong(usize),
    /// It is later than the container can say.
    #[error("the file is longer than it can be")]
    TooLate,
}

/// Writes one file.
pub trait ContainerWriter: Send + Debug {
    /// Says what a track is. The first one that is known begins the file; later ones are written into its header.
    fn set_track(
        &mut self,
        track: usize,
        setup: TrackSetup,
        out: &mut Edits,
    ) -> Result<(), ContainerError>;

    /// Writes a frame. Times of a track never go back, those of the file by a second at most.
    fn frame(&mut self, frame: &FrameOut<'_>, out: &mut Edits) -> Result<(), ContainerError>;

    /// Writes what can be written by now.
    fn flush(&mut self, out: &mut Edits);

    /// Ends the file: index, durations, sizes.
    fn finish(self: Box<Self>, out: &mut Edits);

    /// The length of the file in bytes, once all edits so far are done.
    fn len(&self) -> u64;

    /// Whether nothing was written yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of a file that was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// Bytes at the end of the old file that are not in the new one: an index, or what is torn or damaged.
    pub cut: u64,
    /// The old file was complete: its writer had come to its end, and nothing is damaged.
    pub was_whole: bool,
    /// How long the new file lasts.
    pub duration: Duration,
    /// Frames in the new file.
    pub frames: u64,
}
