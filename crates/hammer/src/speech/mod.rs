//! What participants of audio rooms say: speech that is made or recorded, encoded ahead; and how sound that comes back is
//! decoded, recognised and scored.
//!
//! Each talker has a [`pilot`] in its voice, by which it is known in a mix, and the first of a room [`chirp`]s, by which it
//! is told how long sound takes.

pub(crate) mod chirp;
mod error;
mod hearing;
pub(crate) mod pilot;
mod quality;
mod recorded;
mod script;
mod talker;

pub use error::EncodeError;
pub(crate) use hearing::Hearing;
pub(crate) use quality::{AFTER_S, BEFORE_S, Sentences, score};
pub(crate) use script::{Encoding, Script};
pub(crate) use talker::Talker;

/// Samples a second of what is said.
pub(crate) const SAID_RATE: usize = 48_000;

/// Samples a second of what is looked at in what is heard.
pub(crate) const HEARD_RATE: usize = 16_000;

/// Samples a second of G.711.
pub(crate) const NARROW_RATE: usize = 8_000;

/// Samples of a packet, as it is looked at.
pub(crate) const HEARD_FRAME: usize = HEARD_RATE / 50;
