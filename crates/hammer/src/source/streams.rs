//! The streams of a source, and the counts of their packets.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use portunus_sdp::CodecName;
use serde::{Deserialize, Serialize};

/// The streams of a source: video, audio, and with simulcast the video's lower layers.
pub const STREAMS: usize = 4;

/// The index of the video stream.
pub const VIDEO: usize = 0;
/// The index of the audio stream.
pub const AUDIO: usize = 1;
/// The indices of the lower layers, the higher one first. Viewers of these do not receive
/// [`VIDEO`].
pub const LOWER: [usize; 2] = [2, 3];

/// The video codec.
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
    /// Returns its name in the Janus API.
    pub const fn name(self) -> &'static str {
        match self {
            VideoCodec::Vp8 => "vp8",
            VideoCodec::H264 => "h264",
        }
    }

    /// Returns its name in SDP.
    pub const fn codec_name(self) -> CodecName {
        match self {
            VideoCodec::Vp8 => CodecName::Vp8,
            VideoCodec::H264 => CodecName::H264,
        }
    }

    /// Returns its format parameters, as a mountpoint announces them.
    pub const fn fmtp(self) -> Option<&'static str> {
        match self {
            VideoCodec::Vp8 => None,
            VideoCodec::H264 => Some("profile-level-id=42e01f;packetization-mode=1"),
        }
    }
}

/// The packets that a source has sent so far, from which the expected ones are computed.
#[derive(Debug, Default)]
pub struct Sent([AtomicU64; STREAMS]);

impl Sent {
    /// Returns the packets due to a viewer: audio, and video of the highest layer.
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
