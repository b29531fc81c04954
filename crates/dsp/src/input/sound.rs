//! Decoded audio that was not played yet, and its time-stretching.

use crate::Format;

/// The played audio that is kept, in ms: the longest pitch period.
const KEPT_MS: usize = 15;
/// The capacity in these units: played audio, a frame, audio to be shortened, and another period.
const ROOM: usize = 9;
/// The range of pitch periods in ms. Shorter ones are found as multiples.
const SHORTEST_PERIOD_MS: f32 = 2.5;
const LONGEST_PERIOD_MS: usize = 15;
/// The length of two periods that is compared, in ms.
const COMPARED_MS: f32 = 7.5;
/// The sampling rate of the first, coarse search.
const COARSE_RATE: usize = 8_000;
/// Audio with no more energy than this can be cut anywhere: -66 dBFS.
const QUIET: f32 = 2.5e-7;

/// Decoded audio that was not played yet, after some that was.
#[derive(Debug)]
pub(super) struct Sound {
    /// Interleaved.
    samples: Vec<f32>,
    /// The start of the audio that was not played yet.
    at: usize,
    channels: usize,
    /// The samples per ms and channel.
    per_ms: usize,
}

impl Sound {
    pub(super) fn new(format: Format) -> Self {
        let mut sound = Self {
            samples: Vec::new(),
            at: 0,
            channels: format.channels.count(),
            per_ms: format.rate.hertz() as usize / 1_000,
        };
        sound.samples.reserve_exact(ROOM * sound.kept());
        sound.clear();
        sound
    }

    /// Returns the length in samples per channel.
    pub(super) fn len(&self) -> usize {
        (self.samples.len() - self.at) / self.channels
    }

    /// Returns the buffer to append whole samples of all channels to.
    pub(super) fn end(&mut self) -> &mut Vec<f32> {
        &mut self.samples
    }

    /// Forgets all audio, including played.
    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.samples.resize(self.kept(), 0.0);
        self.at = self.samples.len();
    }

    /// Keeps up to `len` samples per channel, with a fade-out over the last `ms` milliseconds.
    pub(super) fn end_within(&mut self, len: usize, ms: usize) {
        self.samples.truncate(self.at + len * self.channels);
        let faded = (ms * self.per_ms * self.channels).min(self.samples.len() - self.at);
        let from = self.samples.len() - faded;
        fade(
            self.samples.get_mut(from..).unwrap_or_default(),
            std::iter::repeat_n(0.0, faded),
            self.channels,
        );
    }

    /// Moves as much audio to `into` as fits. Returns the number of samples of all channels.
    pub(super) fn take(&mut self, into: &mut [f32]) -> usize {
        let ahead = self.samples.get(self.at..).unwrap_or_default();
        let len = into.len().min(ahead.len());
        for (to, from) in into.iter_mut().zip(ahead) {
            *to = *from;
        }
        self.at += len;
        self.forget();
        len
    }

    /// Removes pitch periods if the audio on both sides of the cut is similar enough. `alike` is
    /// the least similarity, -1 to 1. Returns the number of samples per channel.
    pub(super) fn shorten(&mut self, alike: f32) -> usize {
        let Some(ahead) = self.samples.get(self.at..) else {
            return 0;
        };
        let most = (LONGEST_PERIOD_MS * self.per_ms)
            .min((ahead.len() / self.channels).saturating_sub(self.compared()));
        let Some(period) = self.period(ahead, 0, most, Direction::Ahead, alike) else {
            return 0;
        };
        let len = period * self.channels;
        let faded = len.min(ahead.len() - len);
        let (head, tail) = self.samples.split_at_mut(self.at + len);
        let Some(head) = head.get_mut(self.at..) else {
            return 0;
        };
        // The rest fades into the audio one period later.
        fade(head, tail.iter().copied().take(faded), self.channels);
        self.samples.drain(self.at + faded..self.at + faded + len);
        period
    }

    /// Repeats a pitch period if the audio before and after is similar enough. Returns the number
    /// of samples per channel.
    pub(super) fn lengthen(&mut self, alike: f32) -> usize {
        let most = (KEPT_MS * self.per_ms)
            .min(self.len())
            .min(self.at / self.channels);
        let Some(period) = self.period(&self.samples, self.at, most, Direction::Back, alike) else {
            return 0;
        };
        let len = period * self.channels;
        let end = self.samples.len();
        self.samples.resize(end + len, 0.0);
        self.samples.copy_within(self.at..end, self.at + len);
        // The new period starts like the audio now, and ends like the audio before.
        let (before, new) = self.samples.split_at_mut(self.at);
        let Some((new, ahead)) = new.split_at_mut_checked(len) else {
            return 0;
        };
        new.copy_from_slice(ahead.get(..len).unwrap_or_default());
        let before = before.get(before.len() - len..).unwrap_or_default();
        fade(new, before.iter().copied(), self.channels);
        period
    }

    /// Returns the shift, up to `most` samples per channel, at which the audio at `at` is most
    /// similar to itself, or `None` if the similarity is below `alike`.
    fn period(
        &self,
        samples: &[f32],
        at: usize,
        most: usize,
        direction: Direction,
        alike: f32,
    ) -> Option<usize> {
        let least = (SHORTEST_PERIOD_MS * self.per_ms as f32) as usize;
        if most < least {
            return None;
        }
        let window = self.compared() * self.channels;
        let shifted = |period: usize| match direction {
            Direction::Ahead => Some(at + period * self.channels),
            Direction::Back => at.checked_sub(period * self.channels),
        };
        let compare = |period: usize| {
            let here = samples.get(at..)?;
            let there = samples.get(shifted(period)?..)?;
            Some(Likeness::of(
                here.iter().take(window),
                there.iter().take(window),
            ))
        };
        if compare(most)?.quiet() {
            return Some(most);
        }
        let coarse = self.coarse_period(samples, at, least..=most, &shifted)?;
        let near = (self.per_ms * 1_000 / COARSE_RATE).max(1);
        let (period, likeness) = (coarse.saturating_sub(near).max(least)
            ..=(coarse + near).min(most))
            .filter_map(|period| Some((period, compare(period)?.value())))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (likeness >= alike).then_some(period)
    }

    /// Searches at a low rate. The result is a multiple of the samples that make one of 8 kHz.
    fn coarse_period(
        &self,
        samples: &[f32],
        at: usize,
        range: std::ops::RangeInclusive<usize>,
        shifted: &impl Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        const WINDOW: usize = (COMPARED_MS * COARSE_RATE as f32 / 1_000.0) as usize;
        let factor = (self.per_ms * 1_000 / COARSE_RATE).max(1);
        let block = factor * self.channels;
        let coarse = |start: usize| {
            samples
                .get(start..)
                .unwrap_or_default()
                .chunks_exact(block)
                .map(|block| block.iter().sum::<f32>())
        };
        let mut here = [0.0; WINDOW];
        here.iter_mut()
            .zip(coarse(at))
            .for_each(|(to, from)| *to = from);
        // All shifts use the same samples, so these are summed once.
        let (first, last) = (range.start().div_ceil(factor), range.end() / factor);
        let mut there = [0.0; WINDOW + LONGEST_PERIOD_MS * COARSE_RATE / 1_000 + 1];
        let start = shifted(first * factor)?.min(shifted(last * factor)?);
        let filled = there
            .iter_mut()
            .zip(coarse(start))
            .map(|(to, from)| *to = from)
            .count();
        let there = there.get(..filled)?;
        let offset = |period: usize| Some((shifted(period * factor)? - start) / block);
        (first..=last)
            .filter_map(|period| {
                let there = there.get(offset(period)?..)?;
                let likeness = Likeness::of(here.iter(), there.iter().take(WINDOW)).value();
                // One period is better than two with nearly the same similarity.
                let length = (period - first) as f32 / (last - first + 1) as f32;
                Some((period * factor, likeness - 0.1 * length))
            })
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(period, _)| period)
    }

    /// Returns the compared length in samples per channel.
    fn compared(&self) -> usize {
        (COMPARED_MS * self.per_ms as f32) as usize
    }

    fn kept(&self) -> usize {
        KEPT_MS * self.per_ms * self.channels
    }

    /// Forgets old played audio from time to time.
    fn forget(&mut self) {
        if self.at > 2 * self.kept() {
            self.samples.drain(..self.at - self.kept());
            self.at = self.kept();
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Ahead,
    Back,
}

/// Fades from `samples` to `target`, over the length of the latter.
fn fade(samples: &mut [f32], target: impl ExactSizeIterator<Item = f32>, channels: usize) {
    let frames = (target.len() / channels) as f32;
    for (index, (sample, target)) in samples.iter_mut().zip(target).enumerate() {
        let share = ((index / channels) as f32 + 0.5) / frames;
        *sample += (target - *sample) * share;
    }
}

/// The similarity of two pieces of audio.
struct Likeness {
    product: f32,
    energy: f32,
    other: f32,
    count: f32,
}

impl Likeness {
    fn of<'a>(
        samples: impl Iterator<Item = &'a f32>,
        others: impl Iterator<Item = &'a f32>,
    ) -> Self {
        let mut likeness = Self {
            product: 0.0,
            energy: 0.0,
            other: 0.0,
            count: 0.0,
        };
        for (sample, other) in samples.zip(others) {
            likeness.product += sample * other;
            likeness.energy += sample * sample;
            likeness.other += other * other;
            likeness.count += 1.0;
        }
        likeness
    }

    /// Returns the similarity, -1 to 1, independent of the loudness.
    fn value(&self) -> f32 {
        let scale = (self.energy * self.other).sqrt();
        if scale > 0.0 {
            self.product / scale
        } else {
            0.0
        }
    }

    fn quiet(&self) -> bool {
        self.energy.max(self.other) < QUIET * self.count
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::*;
    use crate::{Channels, SampleRate};

    const RATES: [SampleRate; 5] = [
        SampleRate::Hz8000,
        SampleRate::Hz12000,
        SampleRate::Hz16000,
        SampleRate::Hz24000,
        SampleRate::Hz48000,
    ];

    /// A voice of 140 Hz: pulses with a formant of 700 Hz, and one percent of noise.
    fn voice(rate: SampleRate, channels: Channels, ms: usize) -> Vec<f32> {
        let mut noise = 1_u32;
        (0..ms * rate.hertz() as usize / 1_000)
            .flat_map(|index| {
                let time = (index as f32 / rate.hertz() as f32).rem_euclid(1.0 / 140.0);
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let sample =
                    0.5 * (-time * 500.0).exp() * (time * 700.0 * std::f32::consts::TAU).sin();
                std::iter::repeat_n(
                    sample + 0.005 * (noise as f32 / u32::MAX as f32 - 0.5),
                    channels.count(),
                )
            })
            .collect()
    }

    /// Returns the largest step between successive samples.
    fn largest_step(samples: &[f32], channels: usize) -> f32 {
        samples
            .iter()
            .zip(&samples[channels..])
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max)
    }

    #[test]
    fn a_voice_is_shortened_and_lengthened_by_whole_periods() {
        for rate in RATES {
            for channels in [Channels::Mono, Channels::Stereo] {
                let voice = voice(rate, channels, 100);
                let mut sound = Sound::new(Format { rate, channels });
                sound.end().extend_from_slice(&voice);
                let mut frame = vec![0.0; 20 * voice.len() / 100];
                assert_eq!(sound.take(&mut frame), frame.len());
                let period = rate.hertz() as usize / 140;
                let near = (period - period / 50 - 1)..=(period + period / 50 + 1);
                let out = sound.shorten(0.9);
                assert!(
                    near.contains(&out),
                    "{rate:?} {channels:?}: {out} of {period} out"
                );
                let put = sound.lengthen(0.9);
                assert!(
                    near.contains(&put),
                    "{rate:?} {channels:?}: {put} of {period} in"
                );
                let mut rest = vec![0.0; voice.len()];
                let len = sound.take(&mut rest);
                assert_eq!(
                    len,
                    voice.len() - frame.len() + put * channels.count() - out * channels.count()
                );
                frame.extend_from_slice(&rest[..len]);
                let most = 1.2 * largest_step(&voice, channels.count());
                assert!(
                    largest_step(&frame, channels.count()) < most,
                    "{rate:?} {channels:?}: a click"
                );
            }
        }
    }

    #[test]
    fn noise_is_left_alone_unless_it_is_urgent() {
        let mut noise = 1_u32;
        let mut sound = Sound::new(Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        });
        sound.end().extend((0..1_600).map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise as f32 / u32::MAX as f32 - 0.5
        }));
        sound.take(&mut [0.0; 320]);
        assert_eq!((sound.shorten(0.9), sound.lengthen(0.9)), (0, 0));
        assert!(sound.shorten(-1.0) >= 40);
    }

    #[test]
    fn silence_goes_by_the_longest_period() {
        let mut sound = Sound::new(Format {
            rate: SampleRate::Hz48000,
            channels: Channels::Stereo,
        });
        sound.end().resize(2 * 48 * 60, 0.0);
        assert_eq!(sound.shorten(0.99), 15 * 48);
        assert_eq!(sound.lengthen(0.99), 15 * 48);
    }

    #[test]
    fn what_is_too_short_stays() {
        let mut sound = Sound::new(Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        });
        for len in 0..160 {
            sound.clear();
            sound.end().resize(240 + len, 0.25);
            let before = sound.len();
            let out = sound.shorten(-1.0);
            assert_eq!(sound.len(), before - out);
            let put = sound.lengthen(-1.0);
            assert_eq!(sound.len(), before - out + put);
        }
    }
}
