//! Decoding of received sound.

use opusic_c::{Channels, Decoder, SampleRate};
use portunus_dsp::AudioCodec;
use portunus_dsp::g711::{self, Law};

use super::{EncodeError, HEARD_FRAME};

/// The longest packet of Opus, in samples.
const LONGEST: usize = HEARD_FRAME * 6;

/// Decodes a stream to mono at [`HEARD_RATE`](super::HEARD_RATE).
pub(crate) enum Hearing {
    /// Decodes with libopus.
    Opus(Decoder),
    /// Decodes G.711, with the last sample.
    G711(Law, f32),
}

impl Hearing {
    /// Creates a decoder before the first packet.
    pub(crate) fn new(codec: AudioCodec) -> Result<Self, EncodeError> {
        if let Some(law) = Law::of(codec) {
            return Ok(Self::G711(law, 0.0));
        }
        let decoder = Decoder::new(Channels::Mono, SampleRate::Hz16000);
        Ok(Self::Opus(decoder.map_err(EncodeError)?))
    }

    /// Decodes a packet to `sound`. Without a payload, the decoder conceals it.
    pub(crate) fn hear(&mut self, payload: &[u8], sound: &mut Vec<f32>) {
        match self {
            Self::Opus(decoder) => {
                let room = if payload.is_empty() {
                    HEARD_FRAME
                } else {
                    LONGEST
                };
                let heard = decoder.decode_float_to_vec(payload, sound, room, false);
                if heard.is_err() {
                    // The packet is not of the codec, so it counts as silence.
                    sound.resize(sound.len() + HEARD_FRAME, 0.0);
                }
            }
            Self::G711(_, last) if payload.is_empty() => {
                sound.resize(sound.len() + HEARD_FRAME, 0.0);
                *last = 0.0;
            }
            Self::G711(law, last) => {
                let mut narrow = Vec::new();
                g711::decode(*law, payload, &mut narrow);
                for sample in narrow {
                    // Sound is doubled, since what lies between is above the band of pilots and
                    // chirps.
                    sound.extend([(*last + sample) / 2.0, sample]);
                    *last = sample;
                }
            }
        }
    }
}
