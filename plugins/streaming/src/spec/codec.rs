//! The codecs of streams: their names in the API, payload types and parameters.

use portunus_core::Fields;
use portunus_core::sdp::{Codec, CodecName, CodecSpec, Kind};
use serde_json::Value;

use super::SpecProblem;
use super::payload_types::is_payload_type;
use super::values::Read;

/// RTP clock of redundant audio made of Opus, in Hz.
const RED_CLOCK: u32 = 48_000;

/// The codec of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCodec {
    /// A codec.
    Plain(CodecName),
    /// Redundant audio (RFC 2198) made of Opus.
    Red,
}

impl StreamCodec {
    pub(crate) const OPUS: Self = StreamCodec::Plain(CodecName::Opus);

    /// Returns the audio or video codec with this name, which may be an `rtpmap` (`opus/48000/2`).
    pub(crate) fn from_name(name: &str, kind: Kind) -> Option<Self> {
        let (encoding, rest) = name.split_once('/').unwrap_or((name, ""));
        if encoding.eq_ignore_ascii_case("red") && kind == Kind::Audio {
            return Some(StreamCodec::Red);
        }
        let (clock, channels) = rest.split_once('/').unwrap_or((rest, ""));
        let codec = match clock.parse::<u32>() {
            Err(_) => CodecName::from_name(name),
            Ok(clock_rate) => {
                let written = CodecSpec {
                    name: encoding.to_owned(),
                    clock_rate,
                    channels: channels.parse().unwrap_or(0),
                    ..CodecSpec::new(CodecName::Opus, portunus_core::Pt(0))
                };
                let usual = |codec: &CodecName| {
                    codec.matches(&written)
                        && (channels.is_empty() || written.unusual_channels().is_none())
                };
                CodecName::ALL.into_iter().find(usual)
            }
        };
        codec
            .filter(|codec| codec.kind() == kind)
            .map(StreamCodec::Plain)
    }

    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            StreamCodec::Plain(codec) => codec.name(),
            StreamCodec::Red => "red",
        }
    }

    /// Returns its default payload type.
    pub(crate) const fn default_pt(self) -> u8 {
        match self {
            StreamCodec::Plain(codec) => codec.default_pt().0,
            StreamCodec::Red => 63,
        }
    }

    /// Returns the payload type of the Opus in redundant audio with these parameters. `None` for
    /// other codecs.
    pub(crate) fn made_of(self, fmtp: Option<&str>) -> Option<u8> {
        if self != StreamCodec::Red {
            return None;
        }
        let named = fmtp.and_then(|fmtp| fmtp.split('/').next()?.trim().parse().ok());
        let named = named.filter(|pt| is_payload_type(*pt));
        Some(named.unwrap_or_else(|| Self::OPUS.default_pt()))
    }

    /// Returns the RTP clock in Hz.
    pub(crate) const fn clock_rate(self) -> u32 {
        match self {
            StreamCodec::Plain(codec) => codec.clock_rate(),
            StreamCodec::Red => RED_CLOCK,
        }
    }

    /// Returns the number of audio channels; 1 for video.
    pub(crate) fn channels(self) -> u8 {
        self.spec(0, None).channels.max(1)
    }

    /// Returns the codec of the media plane.
    pub(crate) const fn codec(self) -> Codec {
        match self {
            StreamCodec::Plain(codec) => codec.codec(),
            StreamCodec::Red => Codec::Red,
        }
    }

    /// Returns the codec as it is written in an offer.
    pub(crate) fn spec(self, pt: u8, fmtp: Option<&str>) -> CodecSpec {
        let pt = portunus_core::Pt(pt);
        let spec = match self {
            StreamCodec::Plain(codec) => CodecSpec::new(codec, pt),
            StreamCodec::Red => CodecSpec {
                pt,
                name: "red".to_owned(),
                clock_rate: RED_CLOCK,
                channels: 2,
                fmtp: None,
                feedback: Vec::new(),
            },
        };
        CodecSpec {
            fmtp: fmtp.map(str::to_owned),
            ..spec
        }
    }

    /// Returns the `rtpmap`: `opus/48000/2`. `channels` replaces the usual number.
    pub(crate) fn rtpmap(self, channels: Option<u8>) -> String {
        let spec = self.spec(0, None);
        match channels.unwrap_or(spec.channels) {
            0 => format!("{}/{}", spec.name, spec.clock_rate),
            channels => format!("{}/{}/{channels}", spec.name, spec.clock_rate),
        }
    }
}

impl From<StreamCodec> for Value {
    fn from(codec: StreamCodec) -> Self {
        codec.name().into()
    }
}

/// Reads the audio codec from a member that ends in `codec`, or an older one that ends in `rtpmap`.
pub(super) fn audio(fields: Fields<'_>, name: &str) -> Read<Option<StreamCodec>> {
    codec(fields, name, Kind::Audio)
}

/// Reads the codec of video in the same way.
pub(super) fn video(fields: Fields<'_>, name: &str) -> Read<Option<StreamCodec>> {
    codec(fields, name, Kind::Video)
}

/// Reads the codec of media of this kind.
pub(super) fn codec(fields: Fields<'_>, name: &str, kind: Kind) -> Read<Option<StreamCodec>> {
    let rtpmap = format!("{}rtpmap", name.strip_suffix("codec").unwrap_or(name));
    for key in [name, &rtpmap] {
        if let Some(name) = fields.text(key)? {
            let known = StreamCodec::from_name(name, kind);
            let unknown = || SpecProblem::cannot_create(key, format!("unknown codec {name}"));
            return known.map(|codec| Some(Some(codec))).ok_or_else(unknown);
        }
    }
    Ok(None)
}
