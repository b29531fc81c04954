//! A limiter with look-ahead: no sample exceeds its ceiling, and audio below it passes unchanged.
//!
//! The gain falls during the look-ahead before a peak, and rises slowly afterwards. Each step keeps
//! the guarantee that a sample's gain is at most what the sample needs: `needed` holds that value
//! for each sample. Its minimum over the look-ahead, released slowly, is at most the value of each
//! sample within. So is the average of such minima over the look-ahead.

use crate::Format;

/// The loudest output sample: -1 dBFS.
pub(crate) const CEILING: f32 = 0.891_250_9;

/// The look-ahead as a fraction of a second: 2.5 ms. It is also the delay.
pub(crate) const LOOK_AHEAD: usize = 400;

/// The time in seconds in which the reduction falls by two thirds.
const RELEASE: f32 = 0.1;

/// A gain this close to 1 counts as 1.
const NEAR: f32 = 1e-3;

/// The limiter of a mix. The channels share their gain, so that positions stay.
#[derive(Debug)]
pub(crate) struct Limiter {
    channels: usize,
    ahead: usize,
    release: f32,
    /// The last input samples.
    delayed: Vec<f32>,
    /// The greatest gain of each sample: first those of the look-ahead, then those of the frame.
    needed: Vec<f32>,
    /// The gains before averaging, in the same order.
    held: Vec<f32>,
    minima: Vec<f32>,
    /// Whether all of these gains are 1.
    resting: bool,
}

impl Limiter {
    pub(crate) fn new(format: Format) -> Self {
        let ahead = format.rate.hertz() as usize / LOOK_AHEAD;
        let length = ahead + format.rate.frame_len();
        Limiter {
            channels: format.channels.count(),
            ahead,
            release: 1.0 - (-1.0 / (RELEASE * format.rate.hertz() as f32)).exp(),
            delayed: vec![0.0; ahead * format.channels.count()],
            needed: vec![1.0; length],
            held: vec![1.0; length],
            minima: vec![1.0; length],
            resting: true,
        }
    }

    /// Processes a frame in place.
    pub(crate) fn process(&mut self, sound: &mut [f32]) {
        let loud = peak(sound) > CEILING;
        if loud || !self.resting {
            self.gains(sound);
            self.delay(sound);
            self.apply(sound);
        } else {
            self.delay(sound);
        }
    }

    fn delay(&mut self, sound: &mut [f32]) {
        let length = self.delayed.len().min(sound.len());
        sound.rotate_right(length);
        if let Some(start) = sound.get_mut(..length) {
            start.swap_with_slice(&mut self.delayed);
        }
    }

    /// Computes the gains of a frame.
    fn gains(&mut self, sound: &[f32]) {
        let ahead = self.ahead;
        let frame = self.needed.len() - ahead;
        self.needed.copy_within(frame.., 0);
        self.held.copy_within(frame.., 0);
        let frames = sound.chunks_exact(self.channels);
        for (needed, samples) in self.needed.iter_mut().skip(ahead).zip(frames) {
            *needed = (CEILING / peak(samples).max(CEILING)).min(1.0);
        }
        self.minima.copy_from_slice(&self.needed);
        minima(&mut self.minima, ahead + 1);
        let mut gain = self
            .held
            .get(ahead.saturating_sub(1))
            .copied()
            .unwrap_or(1.0);
        for (held, minimum) in self.held.iter_mut().skip(ahead).zip(&self.minima) {
            gain += self.release * (1.0 - gain);
            if gain > 1.0 - NEAR {
                gain = 1.0;
            }
            gain = gain.min(*minimum);
            *held = gain;
        }
    }

    fn apply(&mut self, sound: &mut [f32]) {
        let ahead = self.ahead;
        let mut sum: f64 = self
            .held
            .iter()
            .take(ahead)
            .map(|gain| f64::from(*gain))
            .sum();
        let share = 1.0 / (ahead + 1) as f64;
        let oldest = self.held.iter();
        let newest = self.held.iter().skip(ahead);
        let frames = sound.chunks_exact_mut(self.channels);
        for ((samples, oldest), newest) in frames.zip(oldest).zip(newest) {
            sum += f64::from(*newest);
            let gain = (sum * share) as f32;
            sum -= f64::from(*oldest);
            for sample in samples {
                // Rounding may exceed the ceiling.
                *sample = (*sample * gain).clamp(-CEILING, CEILING);
            }
        }
        let frame = self.needed.len() - ahead;
        self.resting = tail(&self.needed, frame)
            .chain(tail(&self.held, frame))
            .all(|gain| *gain >= 1.0);
        if self.resting {
            self.needed.fill(1.0);
            self.held.fill(1.0);
        }
    }
}

fn tail(gains: &[f32], from: usize) -> impl Iterator<Item = &f32> {
    gains.iter().skip(from)
}

/// Returns the loudest sample. NaN counts as silence.
fn peak(sound: &[f32]) -> f32 {
    let (blocks, rest) = sound.as_chunks::<8>();
    let mut peaks = [0.0f32; 8];
    for block in blocks {
        for (peak, sample) in peaks.iter_mut().zip(block) {
            *peak = peak.max(sample.abs());
        }
    }
    rest.iter()
        .chain(&peaks)
        .fold(0.0, |peak, sample| peak.max(sample.abs()))
}

/// Replaces each value by the minimum of the `window` values from it on. The last `window - 1`
/// minima are of fewer values.
fn minima(values: &mut [f32], window: usize) {
    let mut done = 1;
    while done < window {
        let step = done.min(window - done);
        let length = values.len().saturating_sub(step);
        for at in 0..length {
            let (head, later) = values.split_at_mut(at + 1);
            if let (Some(value), Some(other)) = (head.last_mut(), later.get(step - 1)) {
                *value = value.min(*other);
            }
        }
        done += step;
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Channels, SampleRate};

    const MONO: Format = Format {
        rate: SampleRate::Hz16000,
        channels: Channels::Mono,
    };
    const STEREO: Format = Format {
        rate: SampleRate::Hz48000,
        channels: Channels::Stereo,
    };

    fn limited(format: Format, sound: &[f32]) -> Vec<f32> {
        let mut limiter = Limiter::new(format);
        let mut out = sound.to_vec();
        for frame in out.chunks_exact_mut(format.frame_len()) {
            limiter.process(frame);
        }
        out
    }

    fn tone(format: Format, loud: f32, frames: usize) -> Vec<f32> {
        (0..format.frame_len() * frames)
            .map(|at| loud * (at as f32 * 0.05).sin())
            .collect()
    }

    #[test]
    fn what_is_below_the_ceiling_passes_as_it_is() {
        for format in [MONO, STEREO] {
            let sound = tone(format, 0.89, 5);
            let out = limited(format, &sound);
            let delay = format.rate.hertz() as usize / LOOK_AHEAD * format.channels.count();
            assert_eq!(out[delay..], sound[..sound.len() - delay]);
        }
    }

    #[test]
    fn ten_at_full_scale_stay_under_the_ceiling() {
        for format in [MONO, STEREO] {
            let out = limited(format, &tone(format, 10.0, 50));
            assert!(peak(&out) <= CEILING);
            let settled = &out[out.len() - format.frame_len()..];
            assert!(peak(settled) > 0.9 * CEILING, "{}", peak(settled));
        }
    }

    #[test]
    fn it_lets_up_after_a_peak() {
        let mut sound = tone(MONO, 0.5, 100);
        sound[1000] = 8.0;
        let out = limited(MONO, &sound);
        let late = sound.len() - 320;
        assert_eq!(out[late..], sound[late - 40..sound.len() - 40]);
        // Half a second after the peak the gain is 1 again. Just after it, it is lower, without
        // steps.
        for pair in out.windows(2) {
            assert!((pair[0] - pair[1]).abs() < 0.3 || pair.iter().any(|s| s.abs() > 0.8));
        }
    }

    #[test]
    fn minima_are_of_the_window() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 9.0];
        minima(&mut values, 3);
        assert_eq!(values[..5], [1.0, 1.0, 2.0, 2.0, 3.0]);
    }

    proptest! {
        #[test]
        fn nothing_is_louder_than_the_ceiling(
            loud in 0.0f32..50.0,
            noise in proptest::collection::vec(-1.0f32..1.0, 320 * 4),
            quiet in proptest::collection::vec(any::<bool>(), 4),
        ) {
            let mut sound = noise;
            for (frame, quiet) in sound.chunks_exact_mut(320).zip(&quiet) {
                for sample in frame {
                    *sample *= if *quiet { 0.1 } else { loud };
                }
            }
            let out = limited(MONO, &sound);
            prop_assert!(out.iter().all(|sample| sample.abs() <= CEILING));
        }
    }
}
