//! What a room counts, and how its participants are.

use crate::ReceiverStats;

/// What a room has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoomStats {
    /// Frames that were mixed.
    pub ticks: u64,
    /// Frames of participants that were decoded: to be heard, or only to know how loud they are.
    pub decoded: u64,
    /// Frames of participants that were neither decoded nor encoded: others heard their packets as they came.
    pub relayed: u64,
    /// Frames of participants who send that were passed over: not heard.
    pub skipped: u64,
    /// Frames that were encoded, for whomever.
    pub encoded: u64,
    /// Frames of those that only made encoders ready for a listener.
    pub warmed: u64,
    /// Frames of mixes that were silent for so long that no encoder had to run.
    pub silent: u64,
    /// Frames that an encoder refused.
    pub failed: u64,
}

/// How a participant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParticipantState {
    /// The level of its last packet that told one, in -dBov: 0 is the loudest, 127 silence.
    pub level: u8,
    /// It talks, as [`TalkOptions`](crate::TalkOptions) have it.
    pub talking: bool,
    /// It is in the mix.
    pub heard: bool,
    /// What its receiver counts; none: nothing came for a while, or nothing that may be heard.
    pub receiver: Option<ReceiverStats>,
}
