//! What a receiver counts.

/// What came of a participant's packets, and of the frames that were due. All count from when the receiver was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets that were taken.
    pub received: u64,
    /// Packets that held nothing of the codec, or no redundant audio as RFC 2198 has it.
    pub invalid: u64,
    /// Packets that came when their time had passed.
    pub late: u64,
    /// Packets that had come before.
    pub duplicate: u64,
    /// Packets that were thrown away to bound the buffer or its delay.
    pub overflow: u64,
    /// Packets that were lost and came back, by redundant audio or in-band FEC.
    pub recovered: u64,
    /// Frames that were played.
    pub played: u64,
    /// Frames of those that hold sound made up for what was missing.
    pub concealed: u64,
    /// Samples of a channel that were taken out to lower the delay.
    pub shortened: u64,
    /// Samples of a channel that were put in to raise it.
    pub lengthened: u64,
    /// How long what is played next has waited, in milliseconds.
    pub delay_ms: u32,
    /// How long it is to wait, by the jitter seen, in milliseconds.
    pub target_ms: u32,
}
