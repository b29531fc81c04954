//! Decoding, concealment and resampling of G.711 and G.722.

use crate::g711::{self, Law};
use crate::resample::Resampler;
use crate::{AudioCodec, Channels, CodecError, g722};

/// The audio that is kept for concealment: 40 ms. This and the following are in samples of 8 kHz.
const KEPT: usize = 320;
/// The range of pitch periods, 5 to 15 ms, and the length that is compared, 10 ms.
const PERIODS: (usize, usize) = (40, 120);
const COMPARED: usize = 80;
/// The length of the fade from concealed to received audio: 5 ms.
const FADED: usize = 40;

/// A decoder of G.711 or G.722 with concealment and resampling.
///
/// Lost audio is concealed by repeating the last pitch period, as in appendix I of G.711.
#[derive(Debug)]
pub(super) struct Phone {
    coding: Coding,
    /// The codec's sampling rate divided by 8 kHz: 1 or 2.
    scale: usize,
    /// `None` in rooms with the codec's rate.
    resampler: Option<Resampler>,
    /// The last audio at the codec's rate, of length [`KEPT`], then the current audio.
    samples: Vec<f32>,
    resampled: Vec<f32>,
    /// The pitch period that is repeated while packets are missing.
    period: Option<usize>,
}

#[derive(Debug)]
enum Coding {
    Law(Law),
    G722(Box<g722::Decoder>),
}

impl Phone {
    /// Returns a decoder for a codec other than Opus, to this sampling rate.
    pub(super) fn new(codec: AudioCodec, rate: u32) -> Result<Self, CodecError> {
        let (coding, own) = match Law::of(codec) {
            Some(law) => (Coding::Law(law), 8_000),
            None => (Coding::G722(Box::default()), 16_000),
        };
        let resampler = (rate != own).then(|| Resampler::new(own, rate, Channels::Mono));
        let scale = own as usize / 8_000;
        Ok(Self {
            coding,
            scale,
            resampler: resampler.transpose()?,
            samples: vec![0.0; KEPT * scale],
            resampled: Vec::new(),
            period: None,
        })
    }

    /// Appends the audio of a packet to `into`, the same on all channels.
    pub(super) fn decode(&mut self, payload: &[u8], channels: usize, into: &mut Vec<f32>) {
        match &mut self.coding {
            Coding::Law(law) => g711::decode(*law, payload, &mut self.samples),
            Coding::G722(decoder) => decoder.decode(payload, &mut self.samples),
        }
        if let Some(period) = self.period.take() {
            let (kept, faded) = (KEPT * self.scale, FADED * self.scale);
            let new = self.samples.len().saturating_sub(kept);
            for index in 0..faded.min(new) {
                let share = (index as f32 + 0.5) / faded as f32;
                let made_up = self
                    .samples
                    .get(kept + index - period)
                    .copied()
                    .unwrap_or(0.0);
                if let Some(sample) = self.samples.get_mut(kept + index) {
                    *sample = made_up + (*sample - made_up) * share;
                }
            }
        }
        self.pass(channels, into);
    }

    /// Appends concealed audio of `len` samples of 48 kHz.
    pub(super) fn conceal(&mut self, len: usize, channels: usize, into: &mut Vec<f32>) {
        let scale = self.scale;
        let period = *self
            .period
            .get_or_insert_with(|| pitch_period(&self.samples, scale));
        for _ in 0..len * scale / 6 {
            let sample = self
                .samples
                .len()
                .checked_sub(period)
                .and_then(|at| self.samples.get(at))
                .copied();
            self.samples.push(sample.unwrap_or(0.0));
        }
        self.pass(channels, into);
    }

    /// Forgets earlier audio.
    pub(super) fn reset(&mut self) {
        if let Coding::G722(decoder) = &mut self.coding {
            **decoder = g722::Decoder::default();
        }
        self.samples.clear();
        self.samples.resize(KEPT * self.scale, 0.0);
        self.period = None;
        if let Some(resampler) = &mut self.resampler {
            resampler.reset();
        }
    }

    /// Resamples the current audio, and appends it to `into`.
    fn pass(&mut self, channels: usize, into: &mut Vec<f32>) {
        let new = self.samples.get(KEPT * self.scale..).unwrap_or_default();
        let new = match &mut self.resampler {
            Some(resampler) => {
                self.resampled.clear();
                resampler.process(new, &mut self.resampled);
                &self.resampled
            }
            None => new,
        };
        into.extend(
            new.iter()
                .flat_map(|&sample| std::iter::repeat_n(sample, channels)),
        );
        let passed = self.samples.len().saturating_sub(KEPT * self.scale);
        self.samples.drain(..passed);
    }
}

/// Returns the shift at which the end of `samples` is most similar to itself.
fn pitch_period(samples: &[f32], scale: usize) -> usize {
    let (least, most) = (PERIODS.0 * scale, PERIODS.1 * scale);
    let likeness = |period: usize| {
        let end = samples.iter().rev().take(COMPARED * scale);
        let (mut product, mut energy) = (0.0, f32::MIN_POSITIVE);
        for (sample, earlier) in end.zip(samples.iter().rev().skip(period)) {
            product += sample * earlier;
            energy += earlier * earlier;
        }
        product / energy.sqrt()
    };
    (least..=most)
        .map(|period| (period, likeness(period)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(most, |(period, _)| period)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    fn tone(start: usize, len: usize) -> Vec<u8> {
        let samples: Vec<f32> = (start..start + len)
            .map(|index| 0.5 * (index as f32 * std::f32::consts::TAU / 53.0).sin())
            .collect();
        let mut bytes = Vec::new();
        g711::encode(Law::A, &samples, &mut bytes);
        bytes
    }

    #[test]
    fn a_tone_goes_on_where_a_packet_is_missing() {
        let mut phone = Phone::new(AudioCodec::Pcma, 8_000).unwrap();
        let mut heard = Vec::new();
        phone.decode(&tone(0, 480), 1, &mut heard);
        phone.conceal(960, 1, &mut heard);
        phone.decode(&tone(640, 480), 1, &mut heard);
        let step = heard
            .windows(2)
            .map(|pair| (pair[0] - pair[1]).abs())
            .fold(0.0, f32::max);
        assert!(
            step < 0.5 * std::f32::consts::TAU / 53.0 * 1.3,
            "a click of {step}"
        );
        let missing: f32 = heard[480..640]
            .iter()
            .map(|sample| sample * sample)
            .sum::<f32>()
            / 160.0;
        assert!((0.1..0.15).contains(&missing), "energy {missing}");
    }

    #[test]
    fn all_channels_and_lengths_are_served() {
        for (rate, channels) in [(8_000, 1), (12_000, 2), (48_000, 2)] {
            let mut phone = Phone::new(AudioCodec::Pcmu, rate).unwrap();
            let mut heard = Vec::new();
            for len in [80, 160, 480, 1, 79, 960] {
                phone.decode(&tone(0, len), channels, &mut heard);
                phone.conceal(480, channels, &mut heard);
            }
            assert_eq!(
                heard.len(),
                (80 + 160 + 480 + 80 + 960 + 6 * 80) * rate as usize / 8_000 * channels
            );
        }
    }

    #[test]
    fn wideband_goes_on_where_a_packet_is_missing_and_is_as_long_as_it_should() {
        let sound = |start: usize, len: usize| -> Vec<f32> {
            let at = |index: usize| 0.5 * (index as f32 * std::f32::consts::TAU / 53.0).sin();
            (start..start + len).map(at).collect()
        };
        let mut encoder = g722::Encoder::default();
        let mut packets = Vec::new();
        for n in 0..10 {
            let mut packet = Vec::new();
            encoder.encode(&sound(n * 320, 320), &mut packet);
            assert_eq!(packet.len(), 160);
            packets.push(packet);
        }
        for (rate, channels) in [(16_000, 1), (8_000, 1), (48_000, 2)] {
            let mut phone = Phone::new(AudioCodec::G722, rate).unwrap();
            let mut heard = Vec::new();
            for (n, packet) in packets.iter().enumerate() {
                match n {
                    7 => phone.conceal(960, channels, &mut heard),
                    _ => phone.decode(packet, channels, &mut heard),
                }
            }
            assert_eq!(heard.len(), 10 * rate as usize / 50 * channels);
            let missing = &heard[7 * rate as usize / 50 * channels..][..rate as usize / 50];
            let energy: f32 = missing.iter().map(|sample| sample * sample).sum();
            let energy = energy / missing.len() as f32;
            assert!((0.09..0.16).contains(&energy), "energy {energy} at {rate}");
        }
    }
}
