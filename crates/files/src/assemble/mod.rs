//! Packets of a participant's tracks into the frames of one file.
//!
//! An [`Assembler`] takes packets and sender reports as they come, and hands out [`Step`]s: frames in the order in which a file
//! has them, with times by one clock for all tracks, and what else is to be done. It has no clock and no task: all it
//! knows of time is when packets came, and [`Assembler::tick`]. A live recording and a conversion of what was recorded are
//! the same to it.
//!
//! What happens to a packet on the way:
//! - [`InOrder`] waits for those before it, a second at most.
//! - Redundant audio is taken apart; what was lost is taken from it.
//! - Frames are put together ([`portunus_rtp::depacketize`]). What cannot be decoded for a loss is left out.
//! - Its time becomes one on the server's clock (`lipsync`).
//! - Sound becomes samples without holes, by the same clock (`sound`).
//! - The tracks are merged by time (`merge`).
//!
//! Of each track at most 4 MiB and 2,048 packets wait for those that are late, and as much for other tracks.

mod assembler;
mod input;
mod line;
mod lipsync;
mod lows;
mod merge;
mod order;
mod parts;
mod picture;
mod sound;
mod step;
mod talk;
mod track;

use std::time::Duration;

pub use assembler::Assembler;
pub use input::{Arrived, Coded, Plan, PlannedTrack, Report, StreamKey};
pub use order::InOrder;
pub use step::{ClockKind, GapReason, Note, PartReason, Step, TrackStats};

/// A time or a length in ns, on the server's clock if nothing else is said.
type Nanos = i64;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

/// The latest time there is: ten years. Sums of a few such times are in range.
const LATEST: Nanos = 10 * 366 * 86_400 * SECOND;

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).map_or(LATEST, |nanos| nanos.min(LATEST))
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(time).unwrap_or(0))
}
