//! Conversion of recordings in Janus's format (`.mjr`).
//!
//! Files that were recorded together are opened together ([`Recordings`]): one file each of audio,
//! video and data, whose frames are read in the order of their arrival. Audio and video go through
//! the same [`Assembler`](crate::assembly::Assembler) as in a live recording. All functions block,
//! and memory is bounded like that of the assembler.

mod container;
mod frames;
mod ogg;
mod pcap;
mod recordings;
mod subtitles;

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::FileError;
use crate::container::{Container, ContainerError, Edits};
use crate::mjr::UnixMicros;
use crate::track::Codec;

pub use container::to_container;
pub use frames::{Assembled, assemble};
pub use ogg::to_ogg_opus;
pub use pcap::to_pcap;
pub use recordings::{Damage, Recordings};
pub use subtitles::to_subtitles;

/// The output of a conversion.
pub trait Sink {
    /// Starts the next file. Parts count from 1; a new part starts if a file cannot go on (another
    /// codec, another size of H.264). `started` is the time of day of its time 0.
    fn begin(&mut self, part: u32, started: UnixMicros) -> io::Result<()>;

    /// Applies the edits to the present file, and clears them.
    fn apply(&mut self, edits: &mut Edits) -> io::Result<()>;
}

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Converted {
    /// The files that were written.
    pub parts: u32,
    /// The frames, messages or packets in them.
    pub frames: u64,
    /// Their total duration.
    pub duration: Duration,
    /// The packets that are missing in the recordings.
    pub lost: u64,
    /// The gaps in audio or video.
    pub gaps: u64,
}

/// The error of a conversion.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A recording cannot be read.
    #[error("recording {}: {error}", .index + 1)]
    Input {
        /// The index of the recording.
        index: usize,
        /// The error.
        error: FileError,
    },
    /// The recording is encrypted end to end.
    #[error("recording {} is encrypted end to end: only its receivers have the keys", .0 + 1)]
    Encrypted(usize),
    /// The codec cannot be converted.
    #[error("recording {} is {codec}, which is not converted", .index + 1)]
    UnknownCodec {
        /// The index of the recording.
        index: usize,
        /// The codec's name in the recording.
        codec: String,
    },
    /// The container does not support a codec.
    #[error("{} cannot be in a file of type .{}; .mkv takes every codec", .codec.name(), .container.extension())]
    Codec {
        /// The container.
        container: Container,
        /// The codec.
        codec: Codec,
    },
    /// The recordings have no content for such a file.
    #[error("there is no {0} in it")]
    Nothing(&'static str),
    /// The recordings have more tracks than such a file can hold.
    #[error("there is more than one {0}: convert each recording for itself")]
    TooMany(&'static str),
    /// The recordings were not made at the same time.
    #[error("the recordings were made {} hours apart: convert each for itself", .0.as_secs() / 3_600)]
    Apart(Duration),
    /// The container refuses content.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The new file cannot be written.
    #[error("cannot be written: {0}")]
    Write(#[from] io::Error),
}
