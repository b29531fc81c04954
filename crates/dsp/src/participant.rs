//! What a room knows of a participant.

use crate::AudioCodec;

/// A participant of a room, as whoever runs the room numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParticipantId(pub u64);

/// How a participant is heard, and what it hears.
#[derive(Debug, Clone, PartialEq)]
pub struct ParticipantOptions {
    /// What it sends and hears.
    pub codec: AudioCodec,
    /// Nobody hears it; it hears all the same.
    pub muted: bool,
    /// Nobody hears it, and it hears nothing.
    pub suspended: bool,
    /// Heard in a room that is muted, too.
    pub immune: bool,
    /// What its sound is multiplied with; 1.0 leaves it.
    pub gain: f32,
    /// Where it is in a stereo room: 0.0 left, 0.5 in the middle, 1.0 right.
    pub position: f32,
    /// Its group.
    pub group: Option<usize>,
    /// Noise is taken out of what it sends.
    pub denoise: bool,
    /// Its packets tell how loud they are (RFC 6464).
    pub levels: bool,
    /// When it counts as talking; none: it is not told.
    pub talk: Option<TalkOptions>,
    /// How the mix is encoded for it.
    pub encoding: Encoding,
}

/// When a participant counts as talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkOptions {
    /// Frames over which its level is averaged; at least 1.
    pub packets: u32,
    /// It talks if the average is louder, in -dBov: 0 is the loudest, 127 silence.
    pub level: u8,
}

/// How a mix is encoded. Participants who hear the same mix with the same encoding share an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// The codec; the rest is for Opus.
    pub codec: AudioCodec,
    /// In bit/s; none: as libopus chooses for the room's format.
    pub bitrate: Option<u32>,
    /// Complexity, 1 to 10.
    pub complexity: u8,
    /// In-band FEC (RFC 6716 section 2.1.7).
    pub fec: bool,
    /// The loss that is expected, in percent: 0 to 20.
    pub expected_loss: u8,
}
