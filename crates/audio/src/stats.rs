//! Statistics of threads and participants.

use std::time::Duration;

/// The counters of all audio threads since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AudioTotals {
    /// Rooms that exist now.
    pub rooms: u64,
    /// Participants that exist now.
    pub participants: u64,
    /// Decoded frames.
    pub decoded: u64,
    /// Frames relayed without decoding and encoding: only one participant was heard.
    pub relayed: u64,
    /// Encoded frames.
    pub encoded: u64,
    /// Mixes of large rooms that another thread encoded.
    pub helped: u64,
    /// Such mixes that did not come back in time: each costs a packet.
    pub unreturned: u64,
    /// Mixed frames of rooms.
    pub ticks: u64,
    /// Frames of rooms that were skipped, because their thread was too late.
    pub skipped: u64,
    /// Packets of participants dropped on the way to a thread.
    pub dropped: u64,
    /// Packets of mixes dropped on the way to a worker.
    pub undelivered: u64,
    /// Events of rooms that were replaced by a later one of the same participant or announcement,
    /// because the consumer was slow.
    pub merged_events: u64,
}

/// The load of an audio thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioThreadStats {
    /// The number of the thread.
    pub index: usize,
    /// Its rooms.
    pub rooms: usize,
    /// The participants of its rooms.
    pub participants: usize,
    /// The median lateness of frames in the last seconds.
    pub late_median: Duration,
    /// The 99th percentile of the lateness.
    pub late_p99: Duration,
    /// The greatest lateness.
    pub late_max: Duration,
    /// The share of a core used in the last seconds, 0.0 to 1.0.
    pub core_share: f64,
}

/// The statistics of a participant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParticipantStats {
    /// The present delay of the jitter buffer.
    pub delay: Duration,
    /// The delay that the jitter calls for.
    pub target: Duration,
    /// The loudness of the last frame in -dBov: 0 (loudest) to 127 (silent).
    pub level: Option<u8>,
    /// Whether it talks, or `None` if that is not detected.
    pub talking: Option<bool>,
    /// Whether it is in the mix.
    pub heard: bool,
    /// Received packets.
    pub received: u64,
    /// Lost packets that were recovered from redundant audio or in-band FEC.
    pub recovered: u64,
    /// Packets that came too late to be heard.
    pub late: u64,
    /// Packets that were refused: of another codec, repeated, or too many.
    pub refused: u64,
    /// Frames that were concealed.
    pub concealed: u64,
}
