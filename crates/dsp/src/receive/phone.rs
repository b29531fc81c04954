//! G.711 of a participant: decoded, made up where it is missing, resampled.

use crate::g711::{self, Law};
use crate::resample::Resampler;
use crate::{Channels, CodecError};

const RATE: u32 = 8_000;
/// Sound that is kept to make up what is missing: 40 ms.
const KEPT: usize = 320;
/// The range of pitch periods that are looked for, and how much is compared: 5 to 15 ms, and 10 ms.
const PERIODS: std::ops::RangeInclusive<usize> = 40..=120;
const COMPARED: usize = 80;
/// Over how much what was made up fades into what came: 5 ms.
const FADED: usize = 40;

/// G.711 of a participant: decoded, made up where it is missing, resampled.
///
/// What is missing is made up by repeating the last pitch period, as in appendix I of G.711.
#[derive(Debug)]
pub(super) struct Phone {
    law: Law,
    /// None in rooms of 8 kHz.
    resampler: Option<Resampler>,
    /// The last sound at 8 kHz, as long as [`KEPT`], then what is at work.
    samples: Vec<f32>,
    resampled: Vec<f32>,
    /// The pitch period that is repeated while packets are missing.
    period: Option<usize>,
}

impl Phone {
    /// To `rate` samples a second.
    pub(super) fn new(law: Law, rate: u32) -> Result<Self, CodecError> {
        let resampler = if rate == RATE {
            None
        } else {
            Some(Resampler::new(RATE, rate, Channels::Mono)?)
        };
        Ok(Self {
            law,
            resampler,
            samples: vec![0.0; KEPT],
            resampled: Vec::new(),
            period: None,
        })
    }

    /// Appends a packet's sound to `into`, the same on all channels.
    pub(super) fn decode(&mut self, payload: &[u8], channels: usize, into: &mut Vec<f32>) {
        g711::decode(self.law, payload, &mut self.samples);
        if let Some(period) = self.period.take() {
            for index in 0..FADED.min(payload.len()) {
                let share = (index as f32 + 0.5) / FADED as f32;
                let made_up = self
                    .samples
                    .get(KEPT + index - period)
                    .copied()
                    .unwrap_or(0.0);
                if let Some(sample) = self.samples.get_mut(KEPT + index) {
                    *sample = made_up + (*sample - made_up) * share;
                }
            }
        }
        self.pass(channels, into);
    }

    /// Appends `len` samples of 8 kHz made up for what is missing.
    pub(super) fn conceal(&mut self, len: usize, channels: usize, into: &mut Vec<f32>) {
        let period = *self
            .period
            .get_or_insert_with(|| pitch_period(&self.samples));
        for _ in 0..len {
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

    /// Forgets what came before.
    pub(super) fn reset(&mut self) {
        self.samples.clear();
        self.samples.resize(KEPT, 0.0);
        self.period = None;
        if let Some(resampler) = &mut self.resampler {
            resampler.reset();
        }
    }

    /// Resamples what came after what is kept, and appends it to `into`.
    fn pass(&mut self, channels: usize, into: &mut Vec<f32>) {
        let new = self.samples.get(KEPT..).unwrap_or_default();
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
        self.samples.drain(..self.samples.len() - KEPT);
    }
}

/// The shift that makes the end of `samples` most like itself.
fn pitch_period(samples: &[f32]) -> usize {
    let likeness = |period: usize| {
        let end = samples.iter().rev().take(COMPARED);
        let (mut product, mut energy) = (0.0, f32::MIN_POSITIVE);
        for (sample, earlier) in end.zip(samples.iter().rev().skip(period)) {
            product += sample * earlier;
            energy += earlier * earlier;
        }
        product / energy.sqrt()
    };
    PERIODS
        .map(|period| (period, likeness(period)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(*PERIODS.end(), |(period, _)| period)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
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
        let mut phone = Phone::new(Law::A, RATE).unwrap();
        let mut heard = Vec::new();
        phone.decode(&tone(0, 480), 1, &mut heard);
        phone.conceal(160, 1, &mut heard);
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
            let mut phone = Phone::new(Law::Mu, rate).unwrap();
            let mut heard = Vec::new();
            for len in [80, 160, 480, 1, 79, 960] {
                phone.decode(&tone(0, len), channels, &mut heard);
                phone.conceal(80, channels, &mut heard);
            }
            assert_eq!(
                heard.len(),
                (80 + 160 + 480 + 80 + 960 + 6 * 80) * rate as usize / 8_000 * channels
            );
        }
    }
}
