//! Pilots: a tone in each talker's voice, which identifies it in a mix.

use std::f64::consts::PI;

/// The talkers of a room with a pilot. Further ones have none.
pub(crate) const PILOTS: usize = 16;

/// The lowest pilot, and the distance between two, in hertz: all are within the band of a
/// telephone.
const LOWEST: f64 = 700.0;
const STEP: f64 = 170.0;

/// Voices have hardly any sound this near to a pilot, in hertz, ...
const CLEAR: f64 = 16.0;
/// ... and their full sound from this distance on.
const NEAR: f64 = 32.0;

/// The length of the pieces that are analysed, in seconds.
const PIECE_S: f64 = 0.25;

/// A present pilot is this many times as strong as its neighbourhood.
const STANDS_OUT: f64 = 8.0;

/// Returns the frequency of a talker's pilot in hertz.
pub(crate) fn frequency(talker: usize) -> Option<f64> {
    (talker < PILOTS).then_some(LOWEST + STEP * talker as f64)
}

/// Returns the allowed strength of a voice at `hertz`, 0 to 1.
pub(crate) fn room_for_voice(hertz: f64) -> f64 {
    let nearest = ((hertz - LOWEST) / STEP)
        .round()
        .clamp(0.0, PILOTS as f64 - 1.0);
    let distance = (hertz - LOWEST - STEP * nearest).abs();
    ((distance - CLEAR) / (NEAR - CLEAR)).clamp(0.0, 1.0)
}

/// Returns whether the pilot of a talker is in `sound`.
pub(crate) fn is_heard(talker: usize, sound: &[f32], rate: usize) -> bool {
    let Some(pilot) = frequency(talker) else {
        return false;
    };
    let piece = (PIECE_S * rate as f64) as usize;
    let mut powers = [0.0; 5];
    // The tone is a little wider than a line when the server stretches time. Its neighbourhood is
    // in the gap that voices leave.
    let places = [0.0, -16.0, -12.0, 12.0, 16.0];
    for piece in sound.chunks_exact(piece.max(1)) {
        for (power, beside) in powers.iter_mut().zip(places) {
            *power += power_at(piece, pilot + beside, rate as f64);
        }
    }
    let [at, beside @ ..] = powers;
    let mean = beside.iter().sum::<f64>() / beside.len() as f64;
    at > STANDS_OUT * mean && at > 0.0
}

/// Returns the power at a frequency (Goertzel's algorithm, after a Hann window).
fn power_at(piece: &[f32], hertz: f64, rate: f64) -> f64 {
    let turn = 2.0 * PI * hertz / rate;
    let (factor, length) = (2.0 * turn.cos(), piece.len() as f64);
    let (mut last, mut before) = (0.0, 0.0);
    for (n, sample) in piece.iter().enumerate() {
        let window = 0.5 - 0.5 * (2.0 * PI * n as f64 / length).cos();
        let next = f64::from(*sample) * window + factor * last - before;
        (before, last) = (last, next);
    }
    last * last + before * before - factor * last * before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_told_from_its_neighbours_and_from_noise() {
        let rate = 16_000;
        let tone = |talker: usize, n: usize| {
            let turn = 2.0 * PI * frequency(talker).unwrap_or(0.0) / rate as f64;
            0.02 * (turn * n as f64).sin()
        };
        let mut noise = 1u32;
        let sound: Vec<f32> = (0..rate * 2)
            .map(|n| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = f64::from(noise) / f64::from(u32::MAX) - 0.5;
                (tone(2, n) + tone(7, n) + 0.05 * noise) as f32
            })
            .collect();
        let heard: Vec<usize> = (0..20)
            .filter(|talker| is_heard(*talker, &sound, rate))
            .collect();
        assert_eq!(heard, [2, 7]);
        assert!(!is_heard(0, &[0.0; 16_000], rate) && !is_heard(0, &[], rate));
    }

    #[test]
    fn voices_leave_room_for_pilots_only() {
        for talker in 0..PILOTS {
            let pilot = frequency(talker).unwrap_or(0.0);
            assert_eq!(room_for_voice(pilot + 10.0), 0.0);
            assert_eq!(room_for_voice(pilot + 40.0), 1.0);
        }
        assert_eq!((room_for_voice(120.0), room_for_voice(7_000.0)), (1.0, 1.0));
    }
}
