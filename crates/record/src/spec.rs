//! The description of a recording.

use portunus_files::manifest::Track;
use portunus_files::mjr::{Info, Medium, UnixMicros};
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Kind, Media};

use crate::{Format, Participant};

/// The payload type of redundant audio in recordings.
const RED_PT: Pt = Pt(63);

/// The description of a recording.
#[derive(Debug, Clone)]
pub struct RecordingSpec {
    /// The folder, as a client or the configuration names it. `None`: the recorder's own.
    pub dir: Option<String>,
    /// The name of the file without its extension. It may contain folders, which are made if
    /// missing.
    pub name: String,
    /// The content of the source.
    pub media: RecordedMedia,
    /// The format of the file.
    pub format: Format,
    /// The owner, for the manifest.
    pub of: Option<Participant>,
}

/// The content of a recorded source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedMedia {
    content: Content,
    fmtp: Option<String>,
    description: Option<String>,
    red: bool,
    encrypted: bool,
    ssrc: Option<Ssrc>,
    mid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Codec(CodecName),
    Text,
    Binary,
}

impl RecordedMedia {
    /// Returns audio or video of this codec.
    pub fn codec(codec: CodecName) -> Self {
        Self::new(Content::Codec(codec))
    }

    /// Returns messages of data channels: mainly text, or else mainly bytes.
    pub fn data(text: bool) -> Self {
        Self::new(if text { Content::Text } else { Content::Binary })
    }

    /// Returns the content of an answered m-line, or `None` if it was rejected or has no known
    /// codec.
    pub fn answered(media: &Media) -> Option<Self> {
        if media.rejected {
            return None;
        }
        let mid = Some(media.mid.as_str().to_owned());
        if media.kind == Kind::Data {
            return Some(Self::data(true).with_mid(mid));
        }
        let named =
            |codec: &portunus_sdp::CodecSpec| Some((codec.codec_name()?, codec.fmtp.clone()));
        let (codec, fmtp) = media.codecs.iter().find_map(named)?;
        let red = media.codecs.iter().any(|codec| codec.is_red());
        Some(
            Self::codec(codec)
                .with_fmtp(fmtp)
                .with_red(red)
                .with_mid(mid),
        )
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            fmtp: None,
            description: None,
            red: false,
            encrypted: false,
            ssrc: None,
            mid: None,
        }
    }

    /// Sets the format parameters.
    #[must_use]
    pub fn with_fmtp(self, fmtp: Option<String>) -> Self {
        Self { fmtp, ..self }
    }

    /// Sets the publisher's description.
    #[must_use]
    pub fn with_description(self, description: Option<String>) -> Self {
        Self {
            description,
            ..self
        }
    }

    /// Sets whether redundant audio (RFC 2198) of the codec may come.
    #[must_use]
    pub fn with_red(self, red: bool) -> Self {
        Self { red, ..self }
    }

    /// Sets whether it is encrypted end to end.
    #[must_use]
    pub fn with_encryption(self, encrypted: bool) -> Self {
        Self { encrypted, ..self }
    }

    /// Sets the SSRC of packets in the file. `None`: the source's own.
    #[must_use]
    pub fn with_ssrc(self, ssrc: Option<Ssrc>) -> Self {
        Self { ssrc, ..self }
    }

    /// Sets the m-line, for manifests.
    #[must_use]
    pub fn with_mid(self, mid: Option<String>) -> Self {
        Self { mid, ..self }
    }

    /// Returns the medium.
    pub fn medium(&self) -> Medium {
        match self.content {
            Content::Codec(codec) if codec.kind() == Kind::Video => Medium::Video,
            Content::Codec(_) => Medium::Audio,
            Content::Text | Content::Binary => Medium::Data,
        }
    }

    /// Returns the publisher's description.
    pub(crate) fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the codec, or `None` for data.
    pub fn codec_name(&self) -> Option<CodecName> {
        match self.content {
            Content::Codec(codec) => Some(codec),
            Content::Text | Content::Binary => None,
        }
    }

    /// Whether it is encrypted end to end.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Returns the format parameters of the SDP.
    pub(crate) fn fmtp(&self) -> Option<&str> {
        self.fmtp.as_deref()
    }

    /// Describes it for a manifest.
    pub(crate) fn track(&self) -> Track {
        let channels = match self.content {
            Content::Codec(codec) if codec.kind() == Kind::Audio => Some(codec.channels().max(1)),
            Content::Codec(_) | Content::Text | Content::Binary => None,
        };
        Track {
            mid: self.mid.clone().unwrap_or_default(),
            kind: self.medium().as_str().to_owned(),
            codec: self.word().to_owned(),
            channels,
            description: self.description.clone(),
            ..Track::default()
        }
    }

    /// Returns the name of the codec, or the kind of data.
    fn word(&self) -> &'static str {
        match self.content {
            Content::Codec(codec) => codec.name(),
            Content::Text => "text",
            Content::Binary => "binary",
        }
    }

    /// Whether it has this codec, and is not encrypted.
    pub(crate) fn is_plain(&self, codec: CodecName) -> bool {
        self.content == Content::Codec(codec) && !self.encrypted
    }

    /// Whether a recording has to start with a keyframe, as far as keyframes can be detected.
    pub(crate) fn has_keyframes(&self) -> bool {
        self.medium() == Medium::Video && !self.encrypted
    }

    /// Returns the SSRC of packets in the file, if it is not the source's.
    pub(crate) fn ssrc(&self) -> Option<Ssrc> {
        self.ssrc
    }

    /// Returns the payload type of packets of this codec in the file, or `None` if they do not
    /// belong into it.
    pub(crate) fn payload_type(&self, codec: Codec) -> Option<Pt> {
        match self.content {
            Content::Codec(own) if own.codec() == codec => Some(own.default_pt()),
            Content::Codec(_) => (self.red && codec == Codec::Red).then_some(RED_PT),
            Content::Text | Content::Binary => None,
        }
    }

    /// Returns the header of the file, without header extensions.
    pub(crate) fn info(&self, created: UnixMicros) -> Info {
        Info {
            fmtp: self.fmtp.clone(),
            description: self.description.clone(),
            red: self.red.then_some(RED_PT.0),
            encrypted: self.encrypted,
            ..Info::new(self.medium(), self.word(), created)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn packets_of_the_codec_and_of_redundancy_have_payload_types_of_their_own() {
        let pcma = RecordedMedia::codec(CodecName::Pcma);
        assert_eq!(pcma.payload_type(Codec::Pcma), Some(Pt(8)));
        assert_eq!(pcma.payload_type(Codec::TelephoneEvent), None);
        assert_eq!(pcma.payload_type(Codec::Red), None);
        let opus = RecordedMedia::codec(CodecName::Opus).with_red(true);
        assert_eq!(opus.payload_type(Codec::Red), Some(Pt(63)));
        assert_eq!(opus.info(UnixMicros(1)).red, Some(63));
    }

    #[test]
    fn what_is_encrypted_end_to_end_waits_for_no_keyframe() {
        let video = RecordedMedia::codec(CodecName::Vp8);
        assert!(video.has_keyframes());
        assert!(!video.with_encryption(true).has_keyframes());
        assert!(!RecordedMedia::data(true).has_keyframes());
    }
}
