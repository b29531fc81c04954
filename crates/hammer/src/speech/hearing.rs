//! Decoding what is heard.

use opusic_c::{Channels, Decoder, SampleRate};
use portunus_dsp::AudioCodec;

use super::{EncodeError, HEARD_FRAME};

/// The longest packet of Opus, in samples.
const LONGEST: usize = HEARD_FRAME * 6;

/// Decodes a stream to mono at [`HEARD_RATE`](super::HEARD_RATE).
pub(super) struct Hearing {
    decoder: Decoder,
}

impl Hearing {
    /// From its first packet on.
    pub(super) fn new(codec: AudioCodec) -> Result<Self, EncodeError> {
        let decoder = Decoder::new(Channels::Mono, SampleRate::Hz16000).map_err(EncodeError)?;
        let _ = codec;
        Ok(Self { decoder })
    }

    /// Adds what a packet holds to `sound`; without a payload what a decoder puts in its place.
    pub(super) fn hear(&mut self, payload: &[u8], sound: &mut Vec<f32>) {
        let room = if payload.is_empty() {
            HEARD_FRAME
        } else {
            LONGEST
        };
        if self
            .decoder
            .decode_float_to_vec(payload, sound, room, false)
            .is_err()
        {
            // Not of the codec: nothing is heard of it.
            sound.resize(sound.len() + HEARD_FRAME, 0.0);
        }
    }
}
