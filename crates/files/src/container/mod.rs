//! Containers that are written frame by frame.
//!
//! A [`ContainerWriter`] turns frames into [`Edits`] of a file: bytes to append, and bytes to
//! overwrite. It has no clock and no file. The appended bytes are playable at any time.

mod repair;
mod writer;

use std::fmt::Debug;
use std::time::Duration;

use thiserror::Error;

use crate::bitstream::{Picture, Setup};
use crate::track::Codec;

pub use repair::repair;
pub use writer::writer;

/// The room at the start of a file for its header, which is rewritten when it changes. A longer
/// first header gets more.
pub const HEADER_ROOM: usize = 8_192;

/// A container format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    /// WebM: Matroska with few codecs, as browsers play it.
    WebM,
    /// Matroska (RFC 9559).
    Matroska,
    /// Fragmented MP4 (ISO/IEC 14496-12).
    Mp4,
}

impl Container {
    /// Returns the extension of its files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Container::WebM => "webm",
            Container::Matroska => "mkv",
            Container::Mp4 => "mp4",
        }
    }

    /// Whether players rely on all pictures having the size in the header.
    pub const fn has_one_size(self) -> bool {
        matches!(self, Container::Mp4)
    }

    /// Whether it can hold tracks of this codec.
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

/// The clockwise rotation by which a picture is upright, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rotation {
    /// None.
    #[default]
    R0,
    /// A quarter turn.
    R90,
    /// Half a turn.
    R180,
    /// Three quarter turns.
    R270,
}

impl Rotation {
    /// Returns the rotation in degrees, clockwise.
    pub const fn degrees(self) -> u16 {
        match self {
            Rotation::R0 => 0,
            Rotation::R90 => 90,
            Rotation::R180 => 180,
            Rotation::R270 => 270,
        }
    }
}

/// The properties of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileInfo {
    /// A title for people.
    pub title: Option<String>,
    /// The time of day of its time 0, in µs since 1970.
    pub started_us: u64,
    /// The greatest number of tracks.
    pub tracks: usize,
}

/// The properties of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackSetup {
    /// Its codec with the decoder setup.
    pub setup: Setup,
    /// The size of its first pictures; video only.
    pub picture: Option<Picture>,
    /// The rotation of its pictures.
    pub rotation: Rotation,
    /// A name for people.
    pub name: Option<String>,
}

/// A frame to write.
#[derive(Debug, Clone, Copy)]
pub struct FrameOut<'a> {
    /// The number of its track, from 0.
    pub track: usize,
    /// Its presentation time since the start of the file.
    pub at: Duration,
    /// Its duration, or zero if that is unknown.
    pub duration: Duration,
    /// Whether decoding can start here.
    pub keyframe: bool,
    /// The frame as decoders need it: NAL units with lengths of 4 bytes of H.264 and H.265, OBUs
    /// with sizes of AV1.
    pub data: &'a [u8],
}

/// The edits of a file: first append, then overwrite, one patch after the other. They must be
/// complete before the next edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edits {
    /// The bytes to append.
    pub append: Vec<u8>,
    /// The positions and bytes to overwrite. No patch exceeds the end.
    pub patches: Vec<(u64, Vec<u8>)>,
}

impl Edits {
    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.append.is_empty() && self.patches.is_empty()
    }

    /// Clears the edits.
    pub fn clear(&mut self) {
        self.append.clear();
        self.patches.clear();
    }
}

/// The error of a writer. The content so far stays intact.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// There are fewer tracks.
    #[error("there is no track {0}")]
    NoTrack(usize),
    /// A frame came before the setup of its track.
    #[error("track {0} has no setup")]
    NoSetup(usize),
    /// The container does not support the codec.
    #[error("files of {container:?} have no tracks of {}", .codec.name())]
    Codec {
        /// The container.
        container: Container,
        /// The codec.
        codec: Codec,
    },
    /// The track already has another codec.
    #[error("track {0} changes its codec")]
    CodecChanged(usize),
    /// The size of a video's pictures is missing.
    #[error("the size of the pictures of track {0} is not known")]
    NoPicture(usize),
    /// The setup is not enough for a decoder.
    #[error("the setup of track {0} is incomplete")]
    Incomplete(usize),
    /// The header's room is too small.
    #[error("a header of {0} bytes has no room in the file")]
    NoRoom(usize),
    /// The frame is longer than readers accept.
    #[error("a frame of {0} bytes")]
    FrameTooLong(usize),
    /// The time exceeds that of the container.
    #[error("the file is longer than it can be")]
    TooLate,
}

/// Writes a file.
pub trait ContainerWriter: Send + Debug {
    /// Sets up a track. The first one starts the file; later ones are added to its header.
    fn set_track(
        &mut self,
        track: usize,
        setup: TrackSetup,
        out: &mut Edits,
    ) -> Result<(), ContainerError>;

    /// Writes a frame. The times of a track must never go back, and those of the file by at most a
    /// second.
    fn frame(&mut self, frame: &FrameOut<'_>, out: &mut Edits) -> Result<(), ContainerError>;

    /// Writes everything that is ready.
    fn flush(&mut self, out: &mut Edits);

    /// Ends the file with index, durations and sizes.
    fn finish(self: Box<Self>, out: &mut Edits);

    /// Returns the length of the file in bytes after all edits so far.
    fn len(&self) -> u64;

    /// Whether nothing was written yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    /// The bytes at the end of the old file that were dropped: an index, or torn or damaged
    /// content.
    pub cut: u64,
    /// Whether the old file had a regular end and no damage.
    pub was_whole: bool,
    /// The duration of the new file.
    pub duration: Duration,
    /// The frames in the new file.
    pub frames: u64,
}
