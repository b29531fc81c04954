//! From frames of a mix to packets.

use opusic_c::{Application, Bitrate, InbandFec};

use super::libopus;
use crate::g711::{self, Law};
use crate::resample::Resampler;
use crate::{AudioCodec, Channels, CodecError, Encoding, Format, SampleRate};

/// The largest packet of 20 ms: what an Opus frame may have (RFC 6716 section 3.2.1), and its first byte.
pub(crate) const LARGEST_PACKET: usize = 1276;

/// What rooms of telephony have.
const G711_RATE: u32 = 8_000;

/// An encoder: frames of a room's format in, packets out.
pub(crate) enum Encoder {
    Opus(opusic_c::Encoder),
    G711(Box<G711>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Encoder::Opus(_) => "Opus",
            Encoder::G711(_) => "G711",
        })
    }
}

impl Encoder {
    pub(crate) fn new(encoding: &Encoding, format: Format) -> Result<Self, CodecError> {
        let law = match encoding.codec {
            AudioCodec::Opus => {
                let mut encoder = Encoder::Opus(opus(format)?);
                encoder.configure(encoding)?;
                return Ok(encoder);
            }
            AudioCodec::Pcma => Law::A,
            AudioCodec::Pcmu => Law::Mu,
        };
        Ok(Encoder::G711(Box::new(G711::new(law, format)?)))
    }

    /// Encodes otherwise from the next frame on. The codec stays.
    pub(crate) fn configure(&mut self, encoding: &Encoding) -> Result<(), CodecError> {
        let Encoder::Opus(opus) = self else {
            return Ok(());
        };
        opus.set_bitrate(encoding.bitrate.map_or(Bitrate::Auto, Bitrate::Value))?;
        opus.set_complexity(encoding.complexity.clamp(1, 10))?;
        opus.set_inband_fec(if encoding.fec {
            InbandFec::Mode1
        } else {
            InbandFec::Off
        })?;
        opus.set_packet_loss(encoding.expected_loss.min(20))?;
        Ok(())
    }

    /// Encodes a frame into `packet`, in place of what it held.
    pub(crate) fn encode(&mut self, sound: &[f32], packet: &mut Vec<u8>) -> Result<(), CodecError> {
        packet.clear();
        match self {
            Encoder::Opus(opus) => {
                packet.resize(LARGEST_PACKET, 0);
                let length = opus.encode_float_to_slice(sound, packet)?;
                packet.truncate(length);
            }
            Encoder::G711(g711) => g711.encode(sound, packet),
        }
        Ok(())
    }
}

fn opus(format: Format) -> Result<opusic_c::Encoder, CodecError> {
    let mut encoder = opusic_c::Encoder::new(
        libopus::channels(format.channels),
        libopus::rate(format.rate),
        Application::Voip,
    )?;
    encoder.set_max_bandwidth(libopus::bandwidth(format.rate))?;
    Ok(encoder)
}

/// G.711: both channels in one, at 8 kHz.
#[derive(Debug)]
pub(crate) struct G711 {
    law: Law,
    channels: Channels,
    /// None: the room has the right rate.
    resampler: Option<Resampler>,
    mono: Vec<f32>,
    resampled: Vec<f32>,
}

impl G711 {
    fn new(law: Law, format: Format) -> Result<Self, CodecError> {
        let rate = format.rate.hertz();
        let resampler = (rate != G711_RATE)
            .then(|| Resampler::new(rate, G711_RATE, Channels::Mono))
            .transpose()?;
        Ok(G711 {
            law,
            channels: format.channels,
            resampler,
            mono: Vec::with_capacity(format.rate.frame_len()),
            resampled: Vec::with_capacity(SampleRate::Hz8000.frame_len()),
        })
    }

    fn encode(&mut self, sound: &[f32], packet: &mut Vec<u8>) {
        let sound = match self.channels {
            Channels::Mono => sound,
            Channels::Stereo => {
                let (pairs, _) = sound.as_chunks::<2>();
                self.mono.clear();
                self.mono
                    .extend(pairs.iter().map(|[left, right]| 0.5 * (left + right)));
                &self.mono
            }
        };
        let sound = match &mut self.resampler {
            None => sound,
            Some(resampler) => {
                self.resampled.clear();
                resampler.process(sound, &mut self.resampled);
                &self.resampled
            }
        };
        g711::encode(self.law, sound, packet);
    }
}
