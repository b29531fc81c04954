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
}

impl AudioCodec {
    /// RTP clock in Hz.
    pub const fn clock_rate(self) -> u32 {
        match self {
            AudioCodec::Opus => 48_000,
            AudioCodec::Pcma | AudioCodec::Pcmu => 8_000,
        }
    }
}
