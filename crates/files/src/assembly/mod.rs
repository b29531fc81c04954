//! Assembly of the packets of a participant's tracks into the frames of a file.
//!
//! An [`Assembler`] takes packets and sender reports as they come, and returns [`Step`]s: frames in
//! the order of the file, with times by one clock for all tracks, and other actions. It has no
//! clock and no task: it knows the time from arrivals and [`Assembler::tick`]. So it handles live
//! recordings and conversions alike.
//!
//! The way of a packet:
//! - [`InOrder`] waits for those before it, a second at most.
//! - Redundant audio is split, and lost packets are taken from it.
//! - Frames are assembled ([`portunus_rtp::depacketize`]). Frames that a loss makes undecodable
//!   are left out.
//! - Its time becomes one on the server's clock (`lipsync`).
//! - Audio becomes samples without holes, by the same clock (`sound`).
//! - The tracks are merged by time (`merge`).
//!
//! At most 4 MiB and 2,048 packets of each track wait for late ones, and as much for other tracks.

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

/// A time or a length in ns, on the server's clock by default.
type Nanos = i64;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

/// The latest possible time: ten years. Sums of a few such times stay in range.
const LATEST: Nanos = 10 * 366 * 86_400 * SECOND;

fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).map_or(LATEST, |nanos| nanos.min(LATEST))
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(time).unwrap_or(0))
}
