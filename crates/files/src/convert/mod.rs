//! Recordings of Janus's format (`.mjr`) into other files.
//!
//! What was recorded together is opened together ([`Recordings`]): one file each of audio, video and data, whose frames come in the
//! order in which they came to the server. Sound and pictures go through the same [`Assembler`](crate::assemble::Assembler) as
//! a live recording. It blocks, and memory is bounded as that of the assembler is.

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

/// Where a conversion writes to.
pub trait Sink {
    /// The next file begins: 1, and more where a file cannot go on (another codec, another size of H.264). Its time 0 is at
    /// `started`.
    fn begin(&mut self, part: u32, started: UnixMicros) -> io::Result<()>;

    /// Does the edits to the file that was begun last, and forgets them.
    fn apply(&mut self, edits: &mut Edits) -> io::Result<()>;
}

/// What became of a conversion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Converted {
    /// Files that were written.
    pub parts: u32,
    /// Frames, messages or packets in them.
    pub frames: u64,
    /// How long they are, one after the other.
    pub duration: Duration,
    /// Packets that are missing in the recordings.
    pub lost: u64,
    /// Times of which there is nothing to be seen or heard.
    pub gaps: u64,
}

/// Why a conversion is not done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A recording cannot be read.
    #[error("recording {}: {error}", .index + 1)]
    Input {
        /// Its index among those that were given.
        index: usize,
        /// Why.
        error: FileError,
    },
    /// Only who it was meant for can play it.
    #[error("recording {} is encrypted end to end: only its receivers have the keys", .0 + 1)]
    Encrypted(usize),
    /// There is no conversion of this codec.
    #[error("recording {} is {codec}, which is not converted", .index + 1)]
    UnknownCodec {
        /// The recording's index.
        index: usize,
        /// Its codec as it names it.
        codec: String,
    },
    /// The container has no place for a codec.
    #[error("{} cannot be in a file of type .{}; .mkv takes every codec", .codec.name(), .container.extension())]
    Codec {
        /// The container.
        container: Container,
        /// The codec.
        codec: Codec,
    },
    /// There is nothing in the recordings that could be in such a file.
    #[error("there is no {0} in it")]
    Nothing(&'static str),
    /// There is more than such a file can have.
    #[error("there is more than one {0}: convert each recording for itself")]
    TooMany(&'static str),
    /// The recordings have nothing in common.
    #[error("the recordings were made {} hours apart: convert each for itself", .0.as_secs() / 3_600)]
    Apart(Duration),
    /// A file takes no more.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The new file cannot be written.
    #[error("cannot be written: {0}")]
    Write(#[from] io::Error),
}
