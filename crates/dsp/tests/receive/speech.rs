//! Synthetic speech, and the similarity of two pieces of audio.

use std::f32::consts::TAU;

/// The rate at which speech is made and encoded.
pub const RATE: usize = 16_000;

/// Returns syllables of a voice with a gliding pitch and moving formants, with short breaks. It is
/// always the same.
pub fn speech(seconds: f32) -> Vec<f32> {
    let mut phase = 0.0_f32;
    let mut noise = 1_u32;
    (0..(seconds * RATE as f32) as usize)
        .map(|index| {
            let time = index as f32 / RATE as f32;
            let (syllable, into) = ((time / 0.24).floor(), time % 0.24 / 0.24);
            let pitch = 125.0 + 30.0 * (syllable * 1.7).sin() + 20.0 * (time * 2.9).sin();
            phase = (phase + pitch / RATE as f32).fract();
            let formants = [
                500.0 + 250.0 * (syllable * 2.3 + into).sin(),
                1_500.0 + 500.0 * (syllable * 1.1).cos(),
                2_600.0,
            ];
            let voice: f32 = (1_u8..25)
                .map(|harmonic| {
                    let frequency = f32::from(harmonic) * pitch;
                    let gain: f32 = formants
                        .iter()
                        .map(|formant| 1.0 / (1.0 + ((frequency - formant) / 120.0).powi(2)))
                        .sum();
                    gain * (phase * f32::from(harmonic) * TAU).sin()
                })
                .sum();
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let breath = 0.01 * (noise as f32 / u32::MAX as f32 - 0.5);
            let loud = if into < 0.8 {
                (into / 0.8 * TAU / 2.0).sin()
            } else {
                0.0
            };
            0.12 * voice * loud + breath
        })
        .collect()
}

/// Returns the distance of two pieces of audio in dB: the mean difference of the energies of 18
/// bands in each 20 ms with speech. Both must start at the same time.
pub fn distance(said: &[f32], heard: &[f32]) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (said, heard) in said
        .chunks_exact(RATE / 50)
        .zip(heard.chunks_exact(RATE / 50))
    {
        if said.iter().map(|sample| sample * sample).sum::<f32>() < 0.05 {
            continue;
        }
        for band in 1..=18_u8 {
            // Closer together at low frequencies, like hearing.
            let frequency = 100.0 * f32::from(band) * (1.0 + f32::from(band) / 15.0);
            sum += (decibels(said, frequency) - decibels(heard, frequency)).abs();
            count += 1.0;
        }
    }
    sum / count
}

/// Returns the energy at a frequency, by Goertzel's algorithm with a Hann window; at least -70 dB.
fn decibels(samples: &[f32], frequency: f32) -> f32 {
    let turn = frequency * TAU / RATE as f32;
    let (mut last, mut before) = (0.0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let window = 0.5 - 0.5 * (index as f32 * TAU / samples.len() as f32).cos();
        let next = sample * window + 2.0 * turn.cos() * last - before;
        (before, last) = (last, next);
    }
    let energy = last * last + before * before - 2.0 * turn.cos() * last * before;
    10.0 * (energy / (samples.len() * samples.len()) as f32 + 1e-7).log10()
}

/// Returns by how many samples, 0 to `most`, the heard audio is later than the original.
pub fn lag(said: &[f32], heard: &[f32], most: usize) -> usize {
    (0..most)
        .map(|lag| {
            (
                lag,
                said.iter()
                    .zip(heard.iter().skip(lag))
                    .map(|(said, heard)| said * heard)
                    .sum::<f32>(),
            )
        })
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(0, |(lag, _)| lag)
}

/// Returns the largest step between successive samples.
pub fn largest_step(samples: &[f32]) -> f32 {
    samples
        .iter()
        .zip(samples.iter().skip(1))
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}
