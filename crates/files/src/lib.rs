//! Media files as RTP packets with times, recordings ([`mjr`]), and files of Opus that are written as it comes
//! ([`opus`]) or in a container ([`container`]).
//!
//! A [`MediaFile`] reads a container (Ogg, WebM or Matroska, MP4) or raw G.711, cuts its frames into
//! RTP packets and says when each is due, for ever if it loops. A [`Playback`] does the same for what was recorded
//! together, in one file or in several. They have no clock and no task: who plays the file sleeps until a packet is
//! due. Memory is bounded whatever the file claims: by the longest frame taken ([`MAX_FRAME`]) and the longest index
//! ([`MAX_INDEX`]).
#![forbid(unsafe_code)]

pub mod assemble;
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
