//! The configuration of a source.

use std::time::Duration;

use portunus_dsp::AudioCodec;

use super::VideoCodec;
use crate::traffic::Traffic;

/// What a source sends.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// The amount of traffic.
    pub traffic: Traffic,
    /// The video codec.
    pub codec: VideoCodec,
    /// The audio codec.
    pub audio_codec: AudioCodec,
    /// The time between two keyframes.
    pub keyframes: Duration,
    /// All sources send their frames at the same moments. Otherwise, they are spread over the time
    /// of a frame.
    pub aligned: bool,
    /// Mountpoints receive each frame at once, with packets of one size joined (UDP_SEGMENT).
    /// Otherwise, packet by packet.
    pub gso: bool,
    /// Publishers send lower layers beside the highest. See
    /// [`Packets::set_layers`](super::Packets::set_layers).
    pub simulcast: bool,
    /// Temporal layers of VP8, 1 to 3.
    pub temporal_layers: u8,
}

impl SourceConfig {
    /// Returns the defaults for `traffic`.
    pub fn of(traffic: Traffic) -> Self {
        Self {
            traffic,
            codec: VideoCodec::default(),
            audio_codec: AudioCodec::Opus,
            keyframes: Duration::from_secs(2),
            aligned: false,
            gso: false,
            simulcast: false,
            temporal_layers: 1,
        }
    }
}
