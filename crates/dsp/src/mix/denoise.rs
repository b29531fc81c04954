//! Noise taken out of what a participant sends.

use nnnoiseless::DenoiseState;

use crate::resample::Resampler;
use crate::{CodecError, Format};

/// The rate that the denoiser works at.
const RATE: u32 = 48_000;

/// Its samples are as large as those of 16 bits.
const SCALE: f32 = 32_768.0;

const CHUNK: usize = DenoiseState::FRAME_SIZE;

/// Takes noise out of frames. It delays them by 10 ms, and by another 10 ms where the room has not 48 kHz.
pub(crate) struct Denoiser {
    /// One a channel.
    states: Vec<Box<DenoiseState<'static>>>,
    /// To 48 kHz and back.
    resamplers: Option<(Resampler, Resampler)>,
    wide: Vec<f32>,
    narrow: Vec<f32>,
    before: [f32; CHUNK],
    after: [f32; CHUNK],
}

impl std::fmt::Debug for Denoiser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Denoiser").finish_non_exhaustive()
    }
}

impl Denoiser {
    pub(crate) fn new(format: Format) -> Result<Self, CodecError> {
        let Format { rate, channels } = format;
        let resamplers = if rate.hertz() == RATE {
            None
        } else {
            Some((
                Resampler::new(rate.hertz(), RATE, channels)?,
                Resampler::new(RATE, rate.hertz(), channels)?,
            ))
        };
        Ok(Denoiser {
            states: (0..channels.count()).map(|_| DenoiseState::new()).collect(),
            resamplers,
            wide: Vec::with_capacity(2 * CHUNK * channels.count()),
            narrow: Vec::with_capacity(format.frame_len()),
            before: [0.0; CHUNK],
            after: [0.0; CHUNK],
        })
    }

    /// A frame, in place.
    pub(crate) fn process(&mut self, sound: &mut [f32]) {
        let Denoiser {
            states,
            resamplers,
            wide,
            narrow,
            before,
            after,
        } = self;
        wide.clear();
        match resamplers {
            None => wide.extend_from_slice(sound),
            Some((up, _)) => up.process(sound, wide),
        }
        let channels = states.len();
        for chunk in wide.chunks_exact_mut(CHUNK * channels) {
            for (channel, state) in states.iter_mut().enumerate() {
                for (sample, from) in before
                    .iter_mut()
                    .zip(chunk.iter().skip(channel).step_by(channels))
                {
                    *sample = from * SCALE;
                }
                state.process_frame(after, before);
                for (to, sample) in chunk
                    .iter_mut()
                    .skip(channel)
                    .step_by(channels)
                    .zip(&*after)
                {
                    *to = sample / SCALE;
                }
            }
        }
        let clean: &[f32] = match resamplers {
            None => wide,
            Some((_, down)) => {
                narrow.clear();
                down.process(wide, narrow);
                narrow
            }
        };
        // Both are a frame long: chunks of 10 ms leave nothing waiting.
        for (to, from) in sound.iter_mut().zip(clean) {
            *to = *from;
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::{Channels, SampleRate};

    fn energy(sound: &[f32]) -> f32 {
        sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32
    }

    #[test]
    fn noise_goes() {
        for (rate, channels) in [
            (SampleRate::Hz16000, Channels::Mono),
            (SampleRate::Hz48000, Channels::Stereo),
        ] {
            let format = Format { rate, channels };
            let mut denoiser = Denoiser::new(format).expect("a denoiser");
            let mut seed = 1u32;
            let (mut before, mut after) = (0.0, 0.0);
            for frame in 0..150 {
                let mut sound: Vec<f32> = (0..format.frame_len())
                    .map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (seed >> 8) as f32 / 8_388_608.0 * 0.05 - 0.05
                    })
                    .collect();
                if frame >= 100 {
                    before += energy(&sound);
                }
                denoiser.process(&mut sound);
                if frame >= 100 {
                    after += energy(&sound);
                }
            }
            assert!(after < before / 3.0, "{rate:?}: {after} of {before}");
        }
    }
}
