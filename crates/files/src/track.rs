//! What a file has in it.

use std::fmt;

use portunus_rtp::packetize::PayloadFormat;

/// Sound or picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sound.
    Audio,
    /// Picture.
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

/// The codecs that are packetised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Opus.
    Opus,
    /// G.711, mu-law.
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
    /// The encoding name in SDP.
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

    /// Sound or picture.
    pub const fn kind(self) -> Kind {
        match self {
            Codec::Opus | Codec::Pcmu | Codec::Pcma => Kind::Audio,
            Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::H264 | Codec::H265 => Kind::Video,
        }
    }

    /// Units of RTP timestamps a second.
    pub const fn clock_rate(self) -> u32 {
        match self {
            Codec::Opus => 48_000,
            Codec::Pcmu | Codec::Pcma => 8_000,
            Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::H264 | Codec::H265 => 90_000,
        }
    }

    /// The payload type that RFC 3551 gives it, if any.
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
    /// Format parameters for SDP, as far as the file tells.
    pub fmtp: Option<String>,
}

/// A track and how its frames become payloads.
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

    /// Opus of so many channels; more than two take another payload format.
    pub fn opus(channels: u8) -> Self {
        let mut this = Self::new(Codec::Opus, PayloadFormat::Whole);
        this.track.channels = channels;
        this.track.fmtp = (channels > 1).then(|| "stereo=1;sprop-stereo=1".to_owned());
        this
    }
}
