//! The sound of participants in audio rooms: speech that is synthetic or recorded, and encoded
//! ahead. Received sound is decoded, recognised and scored.
//!
//! Each talker has a [`pilot`] in its voice, which identifies it in a mix. The first one of a room
//! has [`chirp`]s, which measure the delay of sound.

pub(crate) mod chirp;
mod clips;
mod error;
mod hearing;
pub(crate) mod pilot;
mod quality;
mod script;
mod talker;

pub use error::EncodeError;
pub(crate) use hearing::Hearing;
pub(crate) use quality::{AFTER_S, BEFORE_S, Sentences, score};
pub(crate) use script::{Encoding, Script};
pub(crate) use talker::Talker;

/// The sampling rate of speech.
pub(crate) const SAID_RATE: usize = 48_000;

/// The sampling rate of received sound for its analysis.
pub(crate) const HEARD_RATE: usize = 16_000;

/// The sampling rate of G.711.
pub(crate) const NARROW_RATE: usize = 8_000;

/// The samples of a packet for its analysis.
pub(crate) const HEARD_FRAME: usize = HEARD_RATE / 50;
