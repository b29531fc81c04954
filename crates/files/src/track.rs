//! The tracks of a file.

use std::fmt;

use portunus_rtp::packetize::PayloadFormat;

/// Audio or video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Audio.
    Audio,
    /// Video.
    Video,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Audio => "audio",
            Kind::Video => "video",
        })
    }
}

/// The supported codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Opus.
    Opus,
    /// G.711, µ-law.
    Pcmu,
    /// G.711, A-law.
    Pcma,
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
    /// H.264.
    H264,
    /// H.265.
    H265,
}

impl Codec {
    /// Returns the encoding name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Opus => "opus",
            Codec::Pcmu => "PCMU",
            Codec::Pcma => "PCMA",
            Codec::Vp8 => "VP8",
            Codec::Vp9 => "VP9",
            Codec::Av1 => "AV1",
            Codec::H264 => "H264",
            Codec::H265 => "H265",
        }
    }

    /// Returns the kind of the codec.
    pub const fn kind(self) -> Kind {
        match self {
            Codec::Opus | Codec::Pcmu | Codec::Pcma => Kind::Audio,
            Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::H264 | Codec::H265 => Kind::Video,
        }
    }

    /// Returns the RTP clock rate.
    pub const fn clock_rate(self) -> u32 {
        match self {
            Codec::Opus => 48_000,
            Codec::Pcmu | Codec::Pcma => 8_000,
            Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::H264 | Codec::H265 => 90_000,
        }
    }

    /// Returns the static payload type of RFC 3551, if there is one.
    pub const fn static_pt(self) -> Option<u8> {
        match self {
            Codec::Pcmu => Some(0),
            Codec::Pcma => Some(8),
            _ => None,
        }
    }
}

/// A track that is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// Its codec.
    pub codec: Codec,
    /// The number of channels of audio; 1 for video.
    pub channels: u8,
    /// The format parameters for SDP, as far as the file has them.
    pub fmtp: Option<String>,
}

/// A track, and the conversion of its frames to payloads.
#[derive(Debug, Clone)]
pub(crate) struct TrackSource {
    pub track: Track,
    pub format: PayloadFormat,
}

impl TrackSource {
    pub fn new(codec: Codec, format: PayloadFormat) -> Self {
        let track = Track {
            codec,
            channels: 1,
            fmtp: None,
        };
        Self { track, format }
    }

    /// Returns an Opus track. More than two channels need another payload format.
    pub fn opus(channels: u8) -> Self {
        let mut this = Self::new(Codec::Opus, PayloadFormat::Whole);
        this.track.channels = channels;
        this.track.fmtp = (channels > 1).then(|| "stereo=1;sprop-stereo=1".to_owned());
        this
    }
}
