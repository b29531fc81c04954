//! The codecs of participants.

/// A codec of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    /// Opus (RFC 6716, RFC 7587), with an RTP clock of 48 kHz.
    Opus,
    /// G.711 A-law, with an RTP clock of 8 kHz.
    Pcma,
    /// G.711 µ-law, with an RTP clock of 8 kHz.
    Pcmu,
    /// G.722: wideband, though its RTP clock is 8 kHz (RFC 3551 section 4.5.2).
    G722,
}

impl AudioCodec {
    /// Returns the RTP clock in Hz.
    pub const fn clock_rate(self) -> u32 {
        match self {
            AudioCodec::Opus => 48_000,
            AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => 8_000,
        }
    }

    /// Returns the sampling rate of the coded audio in Hz.
    pub const fn sample_rate(self) -> u32 {
        match self {
            AudioCodec::Opus => 48_000,
            AudioCodec::Pcma | AudioCodec::Pcmu => 8_000,
            AudioCodec::G722 => 16_000,
        }
    }
}
