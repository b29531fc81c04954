//! A room's format in the terms of libopus.

use opusic_c::Bandwidth;

use crate::{Channels, SampleRate};

pub(crate) fn rate(rate: SampleRate) -> opusic_c::SampleRate {
    match rate {
        SampleRate::Hz8000 => opusic_c::SampleRate::Hz8000,
        SampleRate::Hz12000 => opusic_c::SampleRate::Hz12000,
        SampleRate::Hz16000 => opusic_c::SampleRate::Hz16000,
        SampleRate::Hz24000 => opusic_c::SampleRate::Hz24000,
        SampleRate::Hz48000 => opusic_c::SampleRate::Hz48000,
    }
}

pub(crate) fn channels(channels: Channels) -> opusic_c::Channels {
    match channels {
        Channels::Mono => opusic_c::Channels::Mono,
        Channels::Stereo => opusic_c::Channels::Stereo,
    }
}

/// Returns the widest bandwidth of audio with this rate.
pub(crate) fn bandwidth(rate: SampleRate) -> Bandwidth {
    match rate {
        SampleRate::Hz8000 => Bandwidth::Narrow,
        SampleRate::Hz12000 => Bandwidth::Medium,
        SampleRate::Hz16000 => Bandwidth::Wide,
        SampleRate::Hz24000 => Bandwidth::Superwide,
        SampleRate::Hz48000 => Bandwidth::Full,
    }
}
