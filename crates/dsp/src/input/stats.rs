//! The counters of a receiver.

/// The counts of packets and frames since the receiver was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets that were accepted.
    pub received: u64,
    /// Packets without content of the codec, or with invalid redundant audio (RFC 2198).
    pub invalid: u64,
    /// Packets that came too late.
    pub late: u64,
    /// Packets that had come before.
    pub duplicate: u64,
    /// Packets that were dropped to limit the buffer or its delay.
    pub overflow: u64,
    /// Lost packets that were recovered from redundant audio or in-band FEC.
    pub recovered: u64,
    /// Frames that were played.
    pub played: u64,
    /// Played frames with concealed audio.
    pub concealed: u64,
    /// Samples per channel that were removed to lower the delay.
    pub shortened: u64,
    /// Samples per channel that were added to raise it.
    pub lengthened: u64,
    /// The present delay in ms.
    pub delay_ms: u32,
    /// The wanted delay in ms, by the jitter.
    pub target_ms: u32,
}
