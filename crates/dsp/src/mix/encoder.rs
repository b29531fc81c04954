//! The encoders of mixes.

use opusic_c::{Application, Bitrate, InbandFec};

use super::libopus;
use crate::g711::{self, Law};
use crate::resample::Resampler;
use crate::{AudioCodec, Channels, CodecError, Encoding, Format, SampleRate, g722};

/// The largest packet of 20 ms: the greatest Opus frame (RFC 6716 section 3.2.1), and its first
/// byte.
pub(crate) const LARGEST_PACKET: usize = 1276;

/// An encoder from frames of a room's format to packets.
pub(crate) enum Encoder {
    Opus(opusic_c::Encoder),
    Phone(Box<Phone>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Encoder::Opus(_) => "Opus",
            Encoder::Phone(_) => "Phone",
        })
    }
}

impl Encoder {
    pub(crate) fn new(encoding: &Encoding, format: Format) -> Result<Self, CodecError> {
        if encoding.codec == AudioCodec::Opus {
            let mut encoder = Encoder::Opus(opus(format)?);
            encoder.configure(encoding)?;
            return Ok(encoder);
        }
        let phone = Phone::new(encoding.codec, format)?;
        Ok(Encoder::Phone(Box::new(phone)))
    }

    /// Changes the encoding from the next frame on. The codec must stay the same.
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

    /// Encodes a frame into `packet`, which is overwritten.
    pub(crate) fn encode(&mut self, sound: &[f32], packet: &mut Vec<u8>) -> Result<(), CodecError> {
        packet.clear();
        match self {
            Encoder::Opus(opus) => {
                packet.resize(LARGEST_PACKET, 0);
                let length = opus.encode_float_to_slice(sound, packet)?;
                packet.truncate(length);
            }
            Encoder::Phone(phone) => phone.encode(sound, packet),
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

/// G.711 or G.722: both channels mixed into one, at the codec's rate.
#[derive(Debug)]
pub(crate) struct Phone {
    coding: Coding,
    channels: Channels,
    /// `None` if the room has the codec's rate.
    resampler: Option<Resampler>,
    mono: Vec<f32>,
    resampled: Vec<f32>,
}

#[derive(Debug)]
enum Coding {
    Law(Law),
    G722(Box<g722::Encoder>),
}

impl Phone {
    /// Returns an encoder for a codec other than Opus.
    fn new(codec: AudioCodec, format: Format) -> Result<Self, CodecError> {
        let (coding, own) = match Law::of(codec) {
            Some(law) => (Coding::Law(law), SampleRate::Hz8000),
            None => (Coding::G722(Box::default()), SampleRate::Hz16000),
        };
        let rate = format.rate.hertz();
        let resampler = (format.rate != own)
            .then(|| Resampler::new(rate, own.hertz(), Channels::Mono))
            .transpose()?;
        Ok(Phone {
            coding,
            channels: format.channels,
            resampler,
            mono: Vec::with_capacity(format.rate.frame_len()),
            resampled: Vec::with_capacity(own.frame_len()),
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
        match &mut self.coding {
            Coding::Law(law) => g711::encode(*law, sound, packet),
            Coding::G722(encoder) => encoder.encode(sound, packet),
        }
    }
}
