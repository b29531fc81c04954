//! Media files as RTP packets with times, recordings ([`mjr`]), and writers of Opus files
//! ([`opus`]) and containers ([`container`]).
//!
//! A [`MediaFile`] reads a container (Ogg, WebM or Matroska, MP4) or raw G.711, splits its frames
//! into RTP packets, and says when each is due, for ever if it loops. A [`Playback`] does the same
//! for a recording, in one or several files. They have no clock and no task: the caller sleeps
//! until a packet is due. Memory is bounded for any file: by the longest frame ([`MAX_FRAME`]) and
//! the longest index ([`MAX_INDEX`]).
#![forbid(unsafe_code)]

pub mod assembly;
pub mod bitstream;
pub mod container;
pub mod convert;
mod demux;
mod error;
mod file;
mod folders;
pub mod manifest;
mod matroska;
pub mod mjr;
mod mp4;
mod open_options;
pub mod opus;
mod path;
mod play;
mod playback;
mod schedule;
pub mod summary;
mod track;

pub use error::FileError;
pub use file::{MediaFile, Sent, TimedPacket};
pub use folders::Folders;
pub use open_options::OpenOptions;
pub use path::checked_path;
pub use play::Play;
pub use playback::{Playback, PlayedTrack, Unreadable};
pub use track::{Codec, Kind, Track};

/// The longest frame that is read, in bytes.
pub const MAX_FRAME: u64 = 8 << 20;

/// The longest index or header of a container that is read, in bytes.
pub const MAX_INDEX: u64 = 64 << 20;
