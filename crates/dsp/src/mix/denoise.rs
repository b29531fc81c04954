//! Noise reduction for a participant.

use nnnoiseless::DenoiseState;

use crate::resample::Resampler;
use crate::{CodecError, Format};

/// The sampling rate of the denoiser.
const RATE: u32 = 48_000;

/// Its full scale: that of 16-bit samples.
const SCALE: f32 = 32_768.0;

const CHUNK: usize = DenoiseState::FRAME_SIZE;

/// Removes noise from frames. It delays them by 10 ms, and by another 10 ms if the room's rate is
/// not 48 kHz.
pub(crate) struct Denoiser {
    /// One for each channel.
    states: Vec<Box<DenoiseState<'static>>>,
    /// To 48 kHz and back.
    resamplers: Option<(Resampler, Resampler)>,
    wide: Vec<f32>,
    narrow: Vec<f32>,
    before: [f32; CHUNK],
    after: [f32; CHUNK],
    /// The unprocessed frame.
    dry: Vec<f32>,
    state: State,
}

/// The output of the last frame. The first output of a denoiser is old or empty, so it is used from
/// the second frame on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The unprocessed audio.
    Off,
    /// The unprocessed audio, but the denoiser is ready.
    Ready,
    On,
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
            dry: Vec::with_capacity(format.frame_len()),
            state: State::Off,
        })
    }

    /// Processes the next frame in place. Switching on or off fades within a frame.
    pub(crate) fn process(&mut self, sound: &mut [f32], on: bool) {
        if !on && self.state != State::On {
            self.state = State::Off;
            return;
        }
        self.dry.clear();
        self.dry.extend_from_slice(sound);
        self.clean(sound);
        // The share of the processed audio fades from one value to the other.
        let (next, from, to) = match (self.state, on) {
            (State::On, true) => return,
            (State::Off, _) => (State::Ready, 0.0, 0.0),
            (State::Ready, _) => (State::On, 0.0, 1.0),
            (State::On, false) => (State::Off, 1.0, 0.0),
        };
        self.state = next;
        let channels = self.states.len();
        let step = (to - from) * channels as f32 / sound.len().max(1) as f32;
        for (at, (sample, dry)) in sound.iter_mut().zip(&self.dry).enumerate() {
            let share = from + step * (at / channels + 1) as f32;
            *sample = dry + (*sample - dry) * share;
        }
    }

    /// Ends the audio: writes the delayed rest into `sound`, which is silent. Returns whether there
    /// is any.
    pub(crate) fn end(&mut self, sound: &mut [f32]) -> bool {
        let has_more = self.state == State::On;
        if has_more {
            self.clean(sound);
        }
        self.state = State::Off;
        has_more
    }

    /// Notes that the next frame does not follow the last one.
    pub(crate) fn pause(&mut self) {
        self.state = State::Off;
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state == State::Off
    }

    fn clean(&mut self, sound: &mut [f32]) {
        let Denoiser {
            states,
            resamplers,
            wide,
            narrow,
            before,
            after,
            ..
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
        // Both have the length of a frame, because chunks of 10 ms leave no rest.
        for (to, from) in sound.iter_mut().zip(clean) {
            *to = *from;
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by a panic")]
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
                denoiser.process(&mut sound, true);
                if frame >= 100 {
                    after += energy(&sound);
                }
            }
            assert!(after < before / 3.0, "{rate:?}: {after} of {before}");
        }
    }

    /// Switched on and off during audio, and after a pause with a rest in the denoiser.
    #[test]
    fn switching_makes_no_step() {
        for rate in [SampleRate::Hz16000, SampleRate::Hz48000] {
            let format = Format {
                rate,
                channels: Channels::Mono,
            };
            let mut denoiser = Denoiser::new(format).expect("a denoiser");
            let step = std::f32::consts::TAU * 200.0 / rate.hertz() as f32;
            let (mut at, mut last, mut largest) = (0, 0.0f32, 0.0f32);
            for frame in 0..120 {
                let mut sound: Vec<f32> = (0..format.frame_len())
                    .map(|_| {
                        at += 1;
                        0.3 * (step * at as f32).sin()
                    })
                    .collect();
                if frame % 20 == 19 {
                    // A pause with the unprocessed audio.
                    denoiser.pause();
                }
                let was_off = denoiser.is_off();
                denoiser.process(&mut sound, frame % 10 < 7);
                if frame % 20 == 19 {
                    last = sound.first().copied().unwrap_or(last);
                }
                assert!(was_off || frame > 0);
                for sample in sound {
                    largest = largest.max((sample - last).abs());
                    last = sample;
                }
            }
            let own = 0.3 * step;
            assert!(largest < 3.0 * own, "{rate:?}: {largest} of {own}");
        }
    }

    #[test]
    fn what_is_left_comes_when_the_sound_ends() {
        let format = Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        };
        let mut denoiser = Denoiser::new(format).expect("a denoiser");
        let mut silence = vec![0.0; format.frame_len()];
        assert!(!denoiser.end(&mut silence));
        for _ in 0..3 {
            denoiser.process(&mut vec![0.1; format.frame_len()], true);
        }
        assert!(denoiser.end(&mut silence));
        assert!(!denoiser.end(&mut silence));
    }
}
