//! Chirps: short rising tones, found again in received sound, which measure its delay.

use std::f64::consts::PI;

use super::HEARD_RATE;

/// The length of a chirp, in seconds.
pub(crate) const SECONDS: f64 = 0.04;

/// The range of its frequency, in hertz: within the band of a telephone.
const FROM: f64 = 500.0;
const TO: f64 = 3_400.0;

/// The least correlation of a chirp with the original, of 1. Speech has much less.
const ALIKE: f64 = 0.45;

/// The search uses each second sample, which suffices for the chirp's band.
const STRIDE: usize = 2;

/// Returns the samples with the amplitude 1.
pub(crate) fn samples(rate: usize) -> impl Iterator<Item = f64> {
    let count = (SECONDS * rate as f64) as usize;
    (0..count).map(move |n| {
        let t = n as f64 / rate as f64;
        let phase = 2.0 * PI * (FROM * t + (TO - FROM) * t * t / (2.0 * SECONDS));
        let window = 0.5 - 0.5 * (2.0 * PI * n as f64 / count as f64).cos();
        phase.sin() * window
    })
}

/// Returns the most likely start of a chirp in `sound` at [`HEARD_RATE`], if there is any.
pub(crate) fn find(sound: &[f32]) -> Option<usize> {
    let thin = |n: &usize| n.is_multiple_of(STRIDE);
    let chirp: Vec<f64> = (0..)
        .zip(samples(HEARD_RATE))
        .filter(|(n, _)| thin(n))
        .map(|(_, x)| x)
        .collect();
    // The mean of two samples, so that the sound above the band does not fold into it.
    let sound: Vec<f64> = sound
        .chunks_exact(STRIDE)
        .map(|pair| pair.iter().map(|x| f64::from(*x)).sum::<f64>() / STRIDE as f64)
        .collect();
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
    let of_chirp = norm(&chirp);
    let likeness = |piece: &[f64]| {
        let product: f64 = piece.iter().zip(&chirp).map(|(a, b)| a * b).sum();
        product.abs() / (norm(piece) * of_chirp).sqrt().max(1e-9)
    };
    let pieces = sound.windows(chirp.len()).enumerate();
    let (at, alike) = pieces
        .map(|(at, piece)| (at, likeness(piece)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (alike >= ALIKE).then_some(at * STRIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chirp_is_found_in_noise_and_nowhere_else() {
        let mut noise = 7u32;
        let mut sound: Vec<f32> = (0..HEARD_RATE)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                0.1 * (noise as f32 / u32::MAX as f32 - 0.5)
            })
            .collect();
        assert_eq!(find(&sound), None);
        for (place, chirp) in sound.iter_mut().skip(5_000).zip(samples(HEARD_RATE)) {
            *place += 0.2 * chirp as f32;
        }
        let found = find(&sound);
        assert!(found.is_some_and(|at| at.abs_diff(5_000) <= 4), "{found:?}");
        assert_eq!(find(&[]), None);
    }
}
