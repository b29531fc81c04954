//! Recordings in Janus's format `.mjr`: the packets of one medium as they came, with their times.
//!
//! ```text
//! "MJR00002"  u16 length  JSON that says what it is          once; the length and the JSON with the first frame
//! "MEET"      u32 ms since the first frame  u16 length       each frame, and then …
//!             an RTP packet, or for data: u64 µs since 1970 and the message
//! ```
//!
//! All numbers are big-endian. Both sides take bytes and times and return bytes: no file, no clock.

mod info;
mod reader;
mod writer;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

pub use info::{Info, MAX_INFO, Medium};
pub use reader::{Frame, FrameReader};
pub use writer::{FrameWriter, MAX_MESSAGE, MAX_PACKET};

/// What a file begins with.
const FILE_MAGIC: &[u8; 8] = b"MJR00002";
/// What a frame begins with.
const FRAME_MAGIC: &[u8; 4] = b"MEET";
/// Magic, time and length of a frame.
const FRAME_HEADER: usize = 10;
/// The wall clock before a message.
const MESSAGE_TIME: usize = 8;

/// Microseconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UnixMicros(pub u64);

impl UnixMicros {
    /// How long ago `earlier` was; nothing if it is later.
    pub fn since(self, earlier: UnixMicros) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for UnixMicros {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Why bytes are no recording, or something cannot be put into one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MjrError {
    /// It does not begin as a recording does.
    #[error("no recording: it does not begin with MJR00002")]
    NotARecording,
    /// The format of before 2020, without times.
    #[error("a recording of an older version of the format (MJR00001 or MEETECHO)")]
    OldVersion,
    /// What it says of itself is no JSON.
    #[error("its description is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// What it says of itself lacks something, or has it in another type.
    #[error("its description has no valid {0:?}")]
    Member(&'static str),
    /// Where a frame should begin, there is none.
    #[error("no frame at byte {0}")]
    NoFrame(u64),
    /// A message without its time.
    #[error("the message at byte {0} is too short")]
    ShortMessage(u64),
    /// It ends in the middle of something.
    #[error("truncated: {0} bytes of something are at the end")]
    Truncated(usize),
    /// A packet or message that the format has no room for.
    #[error("a frame of {len} bytes is longer than {max}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The most that there is room for, in bytes.
        max: usize,
    },
}
