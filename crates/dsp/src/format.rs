//! Frames of sound: how long, how many samples.

use std::time::Duration;

/// How long a frame is: what a room mixes at once, and what a packet to a participant holds.
pub const FRAME: Duration = Duration::from_millis(20);

/// How many samples a second a room mixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SampleRate {
    Hz8000,
    Hz12000,
    Hz16000,
    Hz24000,
    Hz48000,
}

impl SampleRate {
    /// The rate of this many hertz, if rooms can have it.
    pub const fn from_hertz(hertz: u32) -> Option<Self> {
        Some(match hertz {
            8_000 => SampleRate::Hz8000,
            12_000 => SampleRate::Hz12000,
            16_000 => SampleRate::Hz16000,
            24_000 => SampleRate::Hz24000,
            48_000 => SampleRate::Hz48000,
            _ => return None,
        })
    }

    /// Samples a second.
    pub const fn hertz(self) -> u32 {
        match self {
            SampleRate::Hz8000 => 8_000,
            SampleRate::Hz12000 => 12_000,
            SampleRate::Hz16000 => 16_000,
            SampleRate::Hz24000 => 24_000,
            SampleRate::Hz48000 => 48_000,
        }
    }

    /// Samples of a channel in a frame.
    pub const fn frame_len(self) -> usize {
        self.hertz() as usize / 50
    }
}

/// How many channels sound has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Channels {
    Mono,
    Stereo,
}

impl Channels {
    /// How many.
    pub const fn count(self) -> usize {
        match self {
            Channels::Mono => 1,
            Channels::Stereo => 2,
        }
    }
}

/// The form of a room's sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format {
    /// Samples a second of each channel.
    pub rate: SampleRate,
    /// The channels.
    pub channels: Channels,
}

impl Format {
    /// Samples in a frame, of all channels together.
    pub const fn frame_len(self) -> usize {
        self.rate.frame_len() * self.channels.count()
    }
}
