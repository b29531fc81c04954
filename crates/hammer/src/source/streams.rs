//! The streams of a source, and how much it sent of each.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Streams of a source: video, audio, and with simulcast the video's lower layers.
pub const STREAMS: usize = 4;

/// Index of the video stream.
pub const VIDEO: usize = 0;
/// Index of the audio stream.
pub const AUDIO: usize = 1;
/// Indices of the lower layers, the higher one first; viewers who get them do not get [`VIDEO`].
pub const LOWER: [usize; 2] = [2, 3];

/// What the video looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VideoCodec {
    /// RFC 7741
    #[default]
    Vp8,
    /// RFC 6184
    H264,
}

impl VideoCodec {
    /// Its name in the Janus API.
    pub const fn name(self) -> &'static str {
        match self {
            VideoCodec::Vp8 => "vp8",
            VideoCodec::H264 => "h264",
        }
    }

    /// Format parameters, as a mountpoint announces them.
    pub const fn fmtp(self) -> Option<&'static str> {
        match self {
            VideoCodec::Vp8 => None,
            VideoCodec::H264 => Some("profile-level-id=42e01f;packetization-mode=1"),
        }
    }
}

/// Packets that a source has sent so far, for whoever has to know what should arrive.
#[derive(Debug, Default)]
pub struct Sent([AtomicU64; STREAMS]);

impl Sent {
    /// What a viewer is due: audio, and video of the highest layer.
    pub fn packets(&self) -> u64 {
        let due = [VIDEO, AUDIO]
            .iter()
            .filter_map(|stream| self.0.get(*stream));
        due.map(|stream| stream.load(Ordering::Relaxed)).sum()
    }

    /// Counts packets of a stream.
    pub fn count(&self, stream: usize, packets: u64) {
        if let Some(stream) = self.0.get(stream) {
            stream.fetch_add(packets, Ordering::Relaxed);
        }
    }
}
