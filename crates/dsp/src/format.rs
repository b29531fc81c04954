//! The format of audio frames.

use std::time::Duration;

/// The length of a frame: a room mixes one at a time, and a packet to a participant holds one.
pub const FRAME: Duration = Duration::from_millis(20);

/// The sampling rates of rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum SampleRate {
    Hz8000,
    Hz12000,
    Hz16000,
    Hz24000,
    Hz48000,
}

impl SampleRate {
    /// Returns the rate of this many hertz, if rooms support it.
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

    /// Returns the samples per second.
    pub const fn hertz(self) -> u32 {
        match self {
            SampleRate::Hz8000 => 8_000,
            SampleRate::Hz12000 => 12_000,
            SampleRate::Hz16000 => 16_000,
            SampleRate::Hz24000 => 24_000,
            SampleRate::Hz48000 => 48_000,
        }
    }

    /// Returns the samples of a channel in a frame.
    pub const fn frame_len(self) -> usize {
        self.hertz() as usize / 50
    }
}

/// The number of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Channels {
    Mono,
    Stereo,
}

impl Channels {
    /// Returns the number of channels.
    pub const fn count(self) -> usize {
        match self {
            Channels::Mono => 1,
            Channels::Stereo => 2,
        }
    }
}

/// The format of a room's audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format {
    /// The samples per second of each channel.
    pub rate: SampleRate,
    /// The channels.
    pub channels: Channels,
}

impl Format {
    /// Returns the samples of all channels in a frame.
    pub const fn frame_len(self) -> usize {
        self.rate.frame_len() * self.channels.count()
    }
}
