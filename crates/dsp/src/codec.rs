//! What participants send and hear.

/// A codec of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    /// RFC 6716, by RTP as in RFC 7587: a clock of 48 kHz.
    Opus,
    /// G.711 A-law: a clock of 8 kHz.
    Pcma,
    /// G.711 µ-law: a clock of 8 kHz.
    Pcmu,
    /// G.722: wideband, with an RTP clock of 8 kHz all the same (RFC 3551 section 4.5.2).
    G722,
}

impl AudioCodec {
    /// RTP clock in Hz.
    pub const fn clock_rate(self) -> u32 {
        match self {
            AudioCodec::Opus => 48_000,
            AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => 8_000,
        }
    }

    /// Samples a second of what it codes, in Hz.
    pub const fn sample_rate(self) -> u32 {
        match self {
            AudioCodec::Opus => 48_000,
            AudioCodec::Pcma | AudioCodec::Pcmu => 8_000,
            AudioCodec::G722 => 16_000,
        }
    }
}
