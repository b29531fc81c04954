//! The counters of a room, and the states of participants.

use crate::ReceiverStats;

/// The counters of a room since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoomStats {
    /// Mixed frames.
    pub ticks: u64,
    /// Decoded frames of participants, including those that were only measured.
    pub decoded: u64,
    /// Frames of participants that were relayed unchanged.
    pub relayed: u64,
    /// Frames of senders that were skipped, because they were not heard.
    pub skipped: u64,
    /// Encoded frames.
    pub encoded: u64,
    /// Encoded frames that only prepared an encoder.
    pub warmed: u64,
    /// Frames of mixes that were silent for so long that no encoder ran.
    pub silent: u64,
    /// Frames that an encoder refused.
    pub failed: u64,
}

/// The state of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParticipantState {
    /// The last level in its packets in -dBov: 0 (loudest) to 127 (silent).
    pub level: u8,
    /// Whether it talks, by [`TalkOptions`](crate::TalkOptions).
    pub talking: bool,
    /// Whether it is in the mix.
    pub heard: bool,
    /// The counters of its receiver, or `None` if it has had no audible packets for a while.
    pub receiver: Option<ReceiverStats>,
}
