//! Decoding to a room's format.

use opusic_c::{Channels as OpusChannels, SampleRate as OpusRate};

use super::phone::Phone;
use crate::{AudioCodec, Channels, CodecError, Format, SampleRate};

/// The complexity from which on libopus conceals lost speech with its neural vocoder.
const DEEP_CONCEALMENT: u8 = 5;
/// The longest audio that libopus conceals at once, in samples of 48 kHz.
const LONGEST: usize = 5_760;

/// A decoder to a room's format.
pub(super) struct Decoder {
    codec: Codec,
    format: Format,
}

enum Codec {
    Opus(opusic_c::Decoder),
    Phone(Box<Phone>),
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    pub(super) fn new(codec: AudioCodec, format: Format) -> Result<Self, CodecError> {
        let codec = match codec {
            AudioCodec::Opus => {
                let mut decoder =
                    opusic_c::Decoder::new(opus_channels(format.channels), opus_rate(format.rate))?;
                decoder.set_complexity(DEEP_CONCEALMENT)?;
                Codec::Opus(decoder)
            }
            AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => {
                Codec::Phone(Box::new(Phone::new(codec, format.rate.hertz())?))
            }
        };
        Ok(Self { codec, format })
    }

    /// Appends the audio of a packet with length `len`, in samples of 48 kHz, to `into`. On an
    /// error nothing is appended.
    pub(super) fn decode(
        &mut self,
        payload: &[u8],
        len: i64,
        into: &mut Vec<f32>,
    ) -> Result<(), CodecError> {
        let (channels, samples) = (self.format.channels.count(), self.samples(len));
        match &mut self.codec {
            Codec::Opus(decoder) => append(decoder, payload, samples, channels, false, into),
            Codec::Phone(phone) => {
                phone.decode(payload, channels, into);
                Ok(())
            }
        }
    }

    /// Appends lost audio of length `len` from the FEC of the next packet, whose payload is
    /// `payload`.
    pub(super) fn recover(
        &mut self,
        payload: &[u8],
        len: i64,
        into: &mut Vec<f32>,
    ) -> Result<(), CodecError> {
        let (channels, samples) = (self.format.channels.count(), self.samples(len));
        match &mut self.codec {
            Codec::Opus(decoder) => append(decoder, payload, samples, channels, true, into),
            Codec::Phone(_) => self.conceal(len, into),
        }
    }

    /// Appends concealed audio of length `len`, a multiple of 2.5 ms.
    pub(super) fn conceal(&mut self, len: i64, into: &mut Vec<f32>) -> Result<(), CodecError> {
        let (channels, samples) = (self.format.channels.count(), self.samples(len));
        match &mut self.codec {
            Codec::Opus(decoder) => append(decoder, &[], samples, channels, false, into),
            Codec::Phone(phone) => {
                phone.conceal(usize::try_from(len).unwrap_or(0), channels, into);
                Ok(())
            }
        }
    }

    /// Forgets earlier audio.
    pub(super) fn reset(&mut self) {
        match &mut self.codec {
            // It does not fail for an existing decoder.
            Codec::Opus(decoder) => drop(decoder.reset()),
            Codec::Phone(phone) => phone.reset(),
        }
    }

    /// Converts `len` samples of 48 kHz to the room's rate.
    fn samples(&self, len: i64) -> usize {
        usize::try_from(len).unwrap_or(0).min(LONGEST) * self.format.rate.hertz() as usize / 48_000
    }
}

/// Lets libopus append up to `len` samples per channel.
fn append(
    decoder: &mut opusic_c::Decoder,
    payload: &[u8],
    len: usize,
    channels: usize,
    fec: bool,
    into: &mut Vec<f32>,
) -> Result<(), CodecError> {
    let start = into.len();
    into.resize(start + len * channels, 0.0);
    let decoded =
        decoder.decode_float_to_slice(payload, into.get_mut(start..).unwrap_or_default(), fec);
    into.truncate(start + decoded.unwrap_or(0) * channels);
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
