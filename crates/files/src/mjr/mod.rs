//! Recordings in Janus's format `.mjr`: the packets of a medium with their arrivals.
//!
//! ```text
//! "MJR00002"  u16 length  JSON header                   once; the JSON with the first frame
//! "MEET"      u32 ms since the first frame  u16 length  each frame, and then …
//!             an RTP packet, or for data: u64 µs since 1970 and the message
//! ```
//!
//! All numbers are big-endian. Reader and writer work on bytes and times, without a file or a
//! clock.

mod info;
mod reader;
mod writer;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

pub use info::{Info, MAX_INFO, Medium};
pub use reader::{Frame, FrameReader};
pub use writer::{FrameWriter, MAX_MESSAGE, MAX_PACKET};

/// The start of a file.
const FILE_MAGIC: &[u8; 8] = b"MJR00002";
/// The start of a frame.
const FRAME_MAGIC: &[u8; 4] = b"MEET";
/// The magic, time and length of a frame.
const FRAME_HEADER: usize = 10;
/// The bytes of the time before a message.
const MESSAGE_TIME: usize = 8;

/// Microseconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct UnixMicros(pub u64);

impl UnixMicros {
    /// Returns the time since `earlier`, or zero if that is later.
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

/// The error of a reader or writer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MjrError {
    /// The file does not start like a recording.
    #[error("no recording: it does not begin with MJR00002")]
    NotARecording,
    /// The format before 2020, without times.
    #[error("a recording of an older version of the format (MJR00001 or MEETECHO)")]
    OldVersion,
    /// The header is not JSON.
    #[error("its description is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A member of the header is missing or has the wrong type.
    #[error("its description has no valid {0:?}")]
    Member(&'static str),
    /// A frame is expected, but there is none.
    #[error("no frame at byte {0}")]
    NoFrame(u64),
    /// A message without its time.
    #[error("the message at byte {0} is too short")]
    ShortMessage(u64),
    /// It ends in the middle of something.
    #[error("truncated: {0} bytes of something are at the end")]
    Truncated(usize),
    /// A packet or message is too long for the format.
    #[error("a frame of {len} bytes is longer than {max}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The greatest length in bytes.
        max: usize,
    },
}
