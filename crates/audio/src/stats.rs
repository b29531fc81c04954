//! Figures of threads and participants.

use std::time::Duration;

/// What all audio threads did since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AudioTotals {
    /// Rooms that there are.
    pub rooms: u64,
    /// Participants that there are.
    pub participants: u64,
    /// Frames that were decoded.
    pub decoded: u64,
    /// Frames that were neither decoded nor encoded: one alone was heard, by its own packets.
    pub relayed: u64,
    /// Frames that were encoded.
    pub encoded: u64,
    /// Mixes of large rooms that another thread encoded than the room's.
    pub helped: u64,
    /// Those of them that did not come back in time: each costs a packet.
    pub unreturned: u64,
    /// Frames of rooms that were mixed.
    pub ticks: u64,
    /// Frames of rooms that were left out, because their thread was too late.
    pub skipped: u64,
    /// Packets of participants that found no room on their way to a thread.
    pub dropped: u64,
    /// Packets of mixes that found no room on their way to a worker.
    pub undelivered: u64,
    /// Events of rooms that were not told, because they were not taken in time and a later one of the same participant or
    /// announcement says more.
    pub merged_events: u64,
}

/// How busy an audio thread is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioThreadStats {
    /// The thread's number.
    pub index: usize,
    /// Rooms that run on it.
    pub rooms: usize,
    /// Participants of them.
    pub participants: usize,
    /// By how much half of the frames of the last seconds were late at most.
    pub late_median: Duration,
    /// By how much 99 of 100 frames were late at most.
    pub late_p99: Duration,
    /// By how much the latest was late.
    pub late_max: Duration,
    /// The share of a core that it used in the last seconds, 0.0 to 1.0.
    pub core_share: f64,
}

/// What is known of a participant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParticipantStats {
    /// How much the jitter buffer delays at present.
    pub delay: Duration,
    /// How much it should, by the jitter seen.
    pub target: Duration,
    /// The loudness of the last frame in -dBov: 0 the loudest, 127 silence.
    pub level: Option<u8>,
    /// Whether it talks; none: that is not told.
    pub talking: Option<bool>,
    /// Whether it is in the mix.
    pub heard: bool,
    /// Packets that came.
    pub received: u64,
    /// Packets that were lost and came back, by redundant audio or in-band FEC.
    pub recovered: u64,
    /// Packets that came too late to be heard.
    pub late: u64,
    /// Packets that were of no use: not of the codec, repeated, or too many.
    pub refused: u64,
    /// Frames that were made up for lost ones.
    pub concealed: u64,
}
