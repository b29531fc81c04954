//! Conversion between sampling rates.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _};

use crate::{Channels, CodecError};

/// The number of chunks in a second: a chunk has 10 ms. Half of it is the delay; a shorter one
/// would cut off more of the treble.
const CHUNKS_A_SECOND: u32 = 100;

/// Converts audio from one sampling rate to another, with 5 ms of delay.
///
/// It converts chunks of 10 ms. An incomplete chunk waits for more audio.
pub struct Resampler {
    fft: Fft<f32>,
    channels: usize,
    /// The incomplete chunk.
    waiting: Vec<f32>,
    /// The samples of an input and an output chunk, of all channels.
    chunk_in: usize,
    chunk_out: usize,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resampler")
            .field("chunk_in", &self.chunk_in)
            .field("chunk_out", &self.chunk_out)
            .finish_non_exhaustive()
    }
}

impl Resampler {
    /// Returns a resampler between two rates, which must be multiples of 100.
    pub fn new(from: u32, to: u32, channels: Channels) -> Result<Self, CodecError> {
        let refused = |why: String| CodecError::Resampler { from, to, why };
        if from == 0
            || to == 0
            || !from.is_multiple_of(CHUNKS_A_SECOND)
            || !to.is_multiple_of(CHUNKS_A_SECOND)
        {
            return Err(refused("rates are multiples of 100 Hz".to_owned()));
        }
        let (chunk_in, chunk_out) = (
            (from / CHUNKS_A_SECOND) as usize,
            (to / CHUNKS_A_SECOND) as usize,
        );
        let fft = Fft::new(
            from as usize,
            to as usize,
            chunk_in,
            channels.count(),
            FixedSync::Both,
        )
        .map_err(|error| refused(error.to_string()))?;
        let channels = channels.count();
        Ok(Self {
            fft,
            channels,
            waiting: Vec::new(),
            chunk_in: chunk_in * channels,
            chunk_out: chunk_out * channels,
        })
    }

    /// Converts `samples`, and appends the output to `into`.
    pub fn process(&mut self, mut samples: &[f32], into: &mut Vec<f32>) {
        if !self.waiting.is_empty() {
            let missing = self.chunk_in.saturating_sub(self.waiting.len());
            let (head, rest) = samples.split_at(missing.min(samples.len()));
            self.waiting.extend_from_slice(head);
            samples = rest;
            if self.waiting.len() < self.chunk_in {
                return;
            }
            let chunk = std::mem::take(&mut self.waiting);
            self.convert(&chunk, into);
            self.waiting = chunk;
            self.waiting.clear();
        }
        let mut chunks = samples.chunks_exact(self.chunk_in);
        for chunk in &mut chunks {
            self.convert(chunk, into);
        }
        self.waiting.extend_from_slice(chunks.remainder());
    }

    /// Forgets earlier audio.
    pub fn reset(&mut self) {
        self.fft.reset();
        self.waiting.clear();
    }

    /// Converts one chunk.
    fn convert(&mut self, chunk: &[f32], into: &mut Vec<f32>) {
        let start = into.len();
        into.resize(start + self.chunk_out, 0.0);
        let (frames_in, frames_out) = (
            self.chunk_in / self.channels,
            self.chunk_out / self.channels,
        );
        let Some(out) = into.get_mut(start..) else {
            return;
        };
        let (Ok(from), Ok(mut to)) = (
            InterleavedSlice::new(chunk, self.channels, frames_in),
            InterleavedSlice::new_mut(out, self.channels, frames_out),
        ) else {
            return;
        };
        // It fails for wrong lengths only. Then these 10 ms are silent.
        let _ = self.fft.process_into_buffer(&from, &mut to, None);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails by a panic")]
    use super::*;

    const TONE: f32 = 1_000.0;

    fn tone(rate: u32, seconds: f32, channels: usize) -> Vec<f32> {
        let frames = (rate as f32 * seconds) as usize;
        (0..frames)
            .flat_map(|frame| {
                let sample =
                    0.5 * (frame as f32 * std::f32::consts::TAU * TONE / rate as f32).sin();
                std::iter::repeat_n(sample, channels)
            })
            .collect()
    }

    /// A tone passes through every pair of rates unchanged, 5 ms later, in pieces of any length.
    #[test]
    fn a_tone_passes_at_all_rates() {
        for channels in [Channels::Mono, Channels::Stereo] {
            for (from, to) in [
                (8_000, 12_000),
                (8_000, 48_000),
                (16_000, 48_000),
                (48_000, 8_000),
                (24_000, 8_000),
                (12_000, 8_000),
            ] {
                let mut resampler = Resampler::new(from, to, channels).expect("the rates are fine");
                let mut out = Vec::new();
                for part in tone(from, 0.5, channels.count()).chunks(97 * channels.count()) {
                    resampler.process(part, &mut out);
                }
                let want = tone(to, 0.5, channels.count());
                let delay = (to / 200) as usize * channels.count();
                assert!(out.len() + (to / 100) as usize * channels.count() > want.len());
                let settled = (to / 50) as usize * channels.count();
                let worst = out
                    .iter()
                    .skip(delay + settled)
                    .zip(want.iter().skip(settled))
                    .map(|(out, want)| (out - want).abs())
                    .fold(0.0, f32::max);
                assert!(worst < 0.005, "{from} to {to}, {channels:?}: {worst} off");
            }
        }
    }

    #[test]
    fn rates_that_make_no_whole_chunks_are_refused() {
        assert!(Resampler::new(0, 8_000, Channels::Mono).is_err());
        assert!(Resampler::new(8_000, 0, Channels::Mono).is_err());
        assert!(Resampler::new(11_025, 8_000, Channels::Mono).is_err());
    }
}
