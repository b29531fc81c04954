//! What a source sends.

use std::time::Duration;

use portunus_dsp::AudioCodec;

use super::VideoCodec;
use crate::traffic::Traffic;

/// What is sent.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// How much.
    pub traffic: Traffic,
    /// What the video looks like.
    pub codec: VideoCodec,
    /// What the audio looks like.
    pub audio_codec: AudioCodec,
    /// Time between two keyframes.
    pub keyframes: Duration,
    /// All sources send their frames at the same moments; else these are spread over the time of a frame.
    pub aligned: bool,
    /// Mountpoints get each frame at once, packets of one size joined (UDP_SEGMENT); else packets one by one.
    pub gso: bool,
    /// Those who publish send lower layers beside the highest: see [`Packets::set_layers`](super::Packets::set_layers).
    pub simulcast: bool,
    /// Temporal layers of VP8, 1 to 3.
    pub temporal_layers: u8,
}

impl SourceConfig {
    /// The usual, for `traffic`.
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
