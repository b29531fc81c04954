//! The options of participants.

use crate::AudioCodec;

/// The number of a participant in a room, chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParticipantId(pub u64);

/// The options of a participant: how it is heard, and what it hears.
#[derive(Debug, Clone, PartialEq)]
pub struct ParticipantOptions {
    /// The codec in both directions.
    pub codec: AudioCodec,
    /// It is not heard, but it hears.
    pub muted: bool,
    /// It is not heard, and hears nothing.
    pub suspended: bool,
    /// It is heard even if the room is muted.
    pub immune: bool,
    /// The factor of its volume; 1.0 keeps it.
    pub gain: f32,
    /// Its position in a stereo room: 0.0 (left) to 1.0 (right).
    pub position: f32,
    /// The index of its group.
    pub group: Option<usize>,
    /// Whether noise is removed from its audio.
    pub denoise: bool,
    /// Whether its packets carry audio levels (RFC 6464).
    pub levels: bool,
    /// When it counts as talking, or `None` if that is not detected.
    pub talk: Option<TalkOptions>,
    /// The encoding of the mix for it.
    pub encoding: Encoding,
}

/// The condition under which a participant counts as talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkOptions {
    /// The frames over which its level is averaged; at least 1.
    pub packets: u32,
    /// It talks if the average is louder than this level in -dBov: 0 (loudest) to 127 (silent).
    pub level: u8,
}

/// The encoding of a mix. Participants that hear the same mix with the same encoding share an
/// encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// The codec. The other members are for Opus.
    pub codec: AudioCodec,
    /// In bit/s. `None`: libopus chooses, by the format of the room.
    pub bitrate: Option<u32>,
    /// The complexity, 1 to 10.
    pub complexity: u8,
    /// Whether packets carry in-band FEC (RFC 6716 section 2.1.7).
    pub fec: bool,
    /// The expected loss in percent, 0 to 20.
    pub expected_loss: u8,
}
