//! Codecs: their names in the API and in SDP, and matching.

use portunus_rtp::Pt;

use crate::negotiated::{Codec, Kind};
use crate::opus_flags::OfferedFlags;

/// A codec of an m-line: payload type, `rtpmap`, `fmtp` and `rtcp-fb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecSpec {
    /// The payload type.
    pub pt: Pt,
    /// The name in `rtpmap`, as written.
    pub name: String,
    /// The RTP clock rate in Hz.
    pub clock_rate: u32,
    /// The audio channels. 0 if the `rtpmap` has none.
    pub channels: u8,
    /// Format parameters.
    pub fmtp: Option<String>,
    /// The feedback: the values of `rtcp-fb` lines after the payload type.
    pub feedback: Vec<String>,
}

impl CodecSpec {
    /// Makes a codec as in the server's offers, with payload type `pt` and without parameters.
    pub fn new(name: CodecName, pt: Pt) -> Self {
        CodecSpec {
            pt,
            name: name.encoding().to_owned(),
            clock_rate: name.clock_rate(),
            channels: name.channels(),
            fmtp: None,
            feedback: Vec::new(),
        }
    }

    /// Returns which known codec it is.
    pub fn codec(&self) -> Option<Codec> {
        match self.codec_name() {
            Some(name) => Some(name.codec()),
            None if self.is_red() => Some(Codec::Red),
            None if self.name.eq_ignore_ascii_case("telephone-event") => {
                Some(Codec::TelephoneEvent)
            }
            None if self.name.eq_ignore_ascii_case("CN") => Some(Codec::ComfortNoise),
            None => None,
        }
    }

    /// Returns the channels of a codec with a variable number, if they differ from the server's
    /// default.
    pub fn unusual_channels(&self) -> Option<u8> {
        let name = self.codec_name()?;
        // One channel need not be written (RFC 8866 section 6.6).
        let differs = self.channel_count() != name.channels().max(1);
        (name.has_any_channels() && differs).then_some(self.channels)
    }

    /// Returns whether `other` is the same codec, ignoring payload type, format parameters and
    /// feedback.
    pub fn is_same_codec(&self, other: &CodecSpec) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
            && self.clock_rate == other.clock_rate
            && self.channel_count() == other.channel_count()
    }

    /// Returns the number of channels, at least 1.
    pub fn channel_count(&self) -> u8 {
        // Opus always has 2 here (RFC 7587 section 7), but not every peer knows this.
        let is_opus = self.name.eq_ignore_ascii_case(CodecName::Opus.encoding());
        match self.channels {
            0 | 1 if is_opus || self.is_red() => 2,
            channels => channels.max(1),
        }
    }

    /// Returns the name in the API.
    pub fn codec_name(&self) -> Option<CodecName> {
        CodecName::ALL.into_iter().find(|name| name.matches(self))
    }

    /// Returns whether it is redundant audio (RFC 2198).
    pub fn is_red(&self) -> bool {
        self.name.eq_ignore_ascii_case("red") && self.clock_rate == 48_000
    }

    /// Returns the value of the format parameter `name`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.fmtp.as_deref()?.split(';').find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Returns the Opus flags in the format parameters (RFC 7587 section 6.1).
    pub fn opus_flags(&self) -> OfferedFlags {
        let set = |name| self.parameter(name) == Some("1");
        OfferedFlags {
            fec: set("useinbandfec"),
            dtx: set("usedtx"),
            stereo: set("stereo"),
        }
    }

    /// Returns whether the `rtcp-fb` lines have `feedback`.
    pub fn has_feedback(&self, feedback: &str) -> bool {
        self.feedback
            .iter()
            .any(|line| line.eq_ignore_ascii_case(feedback))
    }
}

/// A codec with its clock rate, as in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CodecName {
    Opus,
    MultiOpus,
    Pcmu,
    Pcma,
    G722,
    Isac32,
    Isac16,
    L16Wide,
    L16,
    Vp8,
    Vp9,
    H264,
    Av1,
    H265,
}

impl CodecName {
    /// The audio codecs in the server's default order.
    pub const AUDIO: [CodecName; 9] = [
        CodecName::Opus,
        CodecName::Pcmu,
        CodecName::Pcma,
        CodecName::G722,
        CodecName::Isac32,
        CodecName::Isac16,
        CodecName::MultiOpus,
        CodecName::L16Wide,
        CodecName::L16,
    ];

    /// The video codecs in the server's default order.
    pub const VIDEO: [CodecName; 5] = [
        CodecName::Vp8,
        CodecName::Vp9,
        CodecName::H264,
        CodecName::Av1,
        CodecName::H265,
    ];

    /// All codecs.
    pub const ALL: [CodecName; 14] = [
        CodecName::Opus,
        CodecName::MultiOpus,
        CodecName::Pcmu,
        CodecName::Pcma,
        CodecName::G722,
        CodecName::Isac32,
        CodecName::Isac16,
        CodecName::L16Wide,
        CodecName::L16,
        CodecName::Vp8,
        CodecName::Vp9,
        CodecName::H264,
        CodecName::Av1,
        CodecName::H265,
    ];

    /// Returns the codec with this name in the API, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            CodecName::Opus => "opus",
            CodecName::MultiOpus => "multiopus",
            CodecName::Pcmu => "pcmu",
            CodecName::Pcma => "pcma",
            CodecName::G722 => "g722",
            CodecName::Isac32 => "isac32",
            CodecName::Isac16 => "isac16",
            CodecName::L16Wide => "l16-48",
            CodecName::L16 => "l16",
            CodecName::Vp8 => "vp8",
            CodecName::Vp9 => "vp9",
            CodecName::H264 => "h264",
            CodecName::Av1 => "av1",
            CodecName::H265 => "h265",
        }
    }

    /// Returns the encoding name in `rtpmap`.
    pub const fn encoding(self) -> &'static str {
        match self {
            CodecName::Opus => "opus",
            CodecName::MultiOpus => "multiopus",
            CodecName::Pcmu => "PCMU",
            CodecName::Pcma => "PCMA",
            CodecName::G722 => "G722",
            CodecName::Isac32 | CodecName::Isac16 => "ISAC",
            CodecName::L16Wide | CodecName::L16 => "L16",
            CodecName::Vp8 => "VP8",
            CodecName::Vp9 => "VP9",
            CodecName::H264 => "H264",
            CodecName::Av1 => "AV1",
            CodecName::H265 => "H265",
        }
    }

    /// Returns the RTP clock rate in Hz.
    pub const fn clock_rate(self) -> u32 {
        match self {
            CodecName::Opus | CodecName::MultiOpus | CodecName::L16Wide => 48_000,
            CodecName::Isac32 => 32_000,
            CodecName::Isac16 | CodecName::L16 => 16_000,
            CodecName::Pcmu | CodecName::Pcma | CodecName::G722 => 8_000,
            CodecName::Vp8
            | CodecName::Vp9
            | CodecName::H264
            | CodecName::Av1
            | CodecName::H265 => 90_000,
        }
    }

    /// Returns the audio channels in `rtpmap`. 0 if none are written.
    pub const fn channels(self) -> u8 {
        match self {
            CodecName::Opus => 2,
            CodecName::MultiOpus => 6,
            CodecName::Pcmu
            | CodecName::Pcma
            | CodecName::G722
            | CodecName::Isac32
            | CodecName::Isac16
            | CodecName::L16Wide
            | CodecName::L16
            | CodecName::Vp8
            | CodecName::Vp9
            | CodecName::H264
            | CodecName::Av1
            | CodecName::H265 => 0,
        }
    }

    /// Returns whether it is audio or video.
    pub fn kind(self) -> Kind {
        if Self::VIDEO.contains(&self) {
            Kind::Video
        } else {
            Kind::Audio
        }
    }

    /// Returns the codec.
    pub const fn codec(self) -> Codec {
        match self {
            CodecName::Opus => Codec::Opus,
            CodecName::MultiOpus => Codec::MultiOpus,
            CodecName::Pcmu => Codec::Pcmu,
            CodecName::Pcma => Codec::Pcma,
            CodecName::G722 => Codec::G722,
            CodecName::Isac32 | CodecName::Isac16 => Codec::Isac,
            CodecName::L16Wide | CodecName::L16 => Codec::L16,
            CodecName::Vp8 => Codec::Vp8,
            CodecName::Vp9 => Codec::Vp9,
            CodecName::H264 => Codec::H264,
            CodecName::Av1 => Codec::Av1,
            CodecName::H265 => Codec::H265,
        }
    }

    /// Returns the default payload type in the server's offers.
    pub const fn default_pt(self) -> Pt {
        match self {
            CodecName::Pcmu => Pt(0),
            CodecName::Pcma => Pt(8),
            CodecName::G722 => Pt(9),
            CodecName::Opus
            | CodecName::MultiOpus
            | CodecName::Isac32
            | CodecName::Isac16
            | CodecName::L16Wide
            | CodecName::L16 => Pt(111),
            CodecName::Vp8
            | CodecName::Vp9
            | CodecName::H264
            | CodecName::Av1
            | CodecName::H265 => Pt(96),
        }
    }

    /// Returns whether it has a variable number of channels.
    pub(crate) const fn has_any_channels(self) -> bool {
        matches!(
            self,
            CodecName::MultiOpus | CodecName::L16Wide | CodecName::L16
        )
    }

    /// Returns whether `spec` is this codec.
    pub fn matches(self, spec: &CodecSpec) -> bool {
        spec.clock_rate == self.clock_rate()
            && spec.name.eq_ignore_ascii_case(self.encoding())
            && (self.has_any_channels() || spec.channel_count() == self.channels().max(1))
    }
}
