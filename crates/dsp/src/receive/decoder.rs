//! A participant's codec, decoded to a room's format.

use opusic_c::{Channels as OpusChannels, SampleRate as OpusRate};

use crate::g711::{self, Law};
use crate::resample::Resampler;
use crate::{AudioCodec, Channels, CodecError, Format, SampleRate};

/// A participant's codec, decoded to a room's format.
#[derive(Debug)]
pub(super) struct Decoder {
    kind: Kind,
    format: Format,
}

enum Kind {
    Opus(opusic_c::Decoder),
    G711(Box<G711>),
}

struct G711 {
    law: Law,
    /// None in rooms of 8 kHz.
    resampler: Option<Resampler>,
    /// What was decoded of a packet, before and after resampling.
    decoded: Vec<f32>,
    resampled: Vec<f32>,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Opus(_) => "Opus",
            Kind::G711(_) => "G711",
        })
    }
}

impl Decoder {
    pub(super) fn new(codec: AudioCodec, format: Format) -> Result<Self, CodecError> {
        let kind = match Law::of(codec) {
            None => Kind::Opus(opusic_c::Decoder::new(
                opus_channels(format.channels),
                opus_rate(format.rate),
            )?),
            Some(law) => {
                let (from, to) = (codec.clock_rate(), format.rate.hertz());
                let resampler = if from == to {
                    None
                } else {
                    Some(Resampler::new(from, to, Channels::Mono)?)
                };
                Kind::G711(Box::new(G711 {
                    law,
                    resampler,
                    decoded: Vec::new(),
                    resampled: Vec::new(),
                }))
            }
        };
        Ok(Self { kind, format })
    }

    /// Appends the sound of a packet of `len` samples a channel to `into`. On an error nothing is appended.
    pub(super) fn decode(
        &mut self,
        payload: &[u8],
        len: usize,
        into: &mut Vec<f32>,
    ) -> Result<(), CodecError> {
        let channels = self.format.channels.count();
        match &mut self.kind {
            Kind::Opus(decoder) => append(decoder, payload, len * channels, channels, into),
            Kind::G711(g711) => {
                let G711 {
                    law,
                    resampler,
                    decoded,
                    resampled,
                } = &mut **g711;
                decoded.clear();
                resampled.clear();
                g711::decode(*law, payload, decoded);
                let mono: &[f32] = match resampler {
                    Some(resampler) => {
                        resampler.process(decoded, resampled);
                        resampled
                    }
                    None => decoded,
                };
                into.extend(
                    mono.iter()
                        .flat_map(|&sample| std::iter::repeat_n(sample, channels)),
                );
                Ok(())
            }
        }
    }

    /// Appends `len` samples a channel made up for what is missing.
    pub(super) fn conceal(&mut self, len: usize, into: &mut Vec<f32>) -> Result<(), CodecError> {
        let channels = self.format.channels.count();
        match &mut self.kind {
            Kind::Opus(decoder) => append(decoder, &[], len * channels, channels, into),
            Kind::G711(_) => {
                into.resize(into.len() + len * channels, 0.0);
                Ok(())
            }
        }
    }
}

fn append(
    decoder: &mut opusic_c::Decoder,
    payload: &[u8],
    len: usize,
    channels: usize,
    into: &mut Vec<f32>,
) -> Result<(), CodecError> {
    let start = into.len();
    into.resize(start + len, 0.0);
    let decoded =
        decoder.decode_float_to_slice(payload, into.get_mut(start..).unwrap_or_default(), false);
    into.truncate(start + decoded.as_ref().map_or(0, |decoded| decoded * channels));
    decoded?;
    Ok(())
}

fn opus_rate(rate: SampleRate) -> OpusRate {
    match rate {
        SampleRate::Hz8000 => OpusRate::Hz8000,
        SampleRate::Hz12000 => OpusRate::Hz12000,
        SampleRate::Hz16000 => OpusRate::Hz16000,
        SampleRate::Hz24000 => OpusRate::Hz24000,
        SampleRate::Hz48000 => OpusRate::Hz48000,
    }
}

fn opus_channels(channels: Channels) -> OpusChannels {
    match channels {
        Channels::Mono => OpusChannels::Mono,
        Channels::Stereo => OpusChannels::Stereo,
    }
}
