//! What is to be recorded, and under which name.

use portunus_files::manifest::Track;
use portunus_files::mjr::{Info, Medium, UnixMicros};
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Kind, Media};

use crate::{Format, Participant};

/// The payload type that redundant audio has in recordings.
const RED_PT: Pt = Pt(63);

/// A recording to be.
#[derive(Debug, Clone)]
pub struct RecordingSpec {
    /// The folder, as a client or the configuration names it; none: the recorder's own.
    pub dir: Option<String>,
    /// The file's name without its extension. It may have folders in it; they are made if missing.
    pub name: String,
    /// What comes from the source.
    pub media: RecordedMedia,
    /// What the file is like.
    pub format: Format,
    /// Whose recording it is, for the manifest.
    pub of: Option<Participant>,
}

/// What comes from a source that is recorded.
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
    /// Audio or video of this codec.
    pub fn codec(codec: CodecName) -> Self {
        Self::new(Content::Codec(codec))
    }

    /// Messages of data channels: mainly text, else mainly bytes.
    pub fn data(text: bool) -> Self {
        Self::new(if text { Content::Text } else { Content::Binary })
    }

    /// What comes on an m-line as it was answered; none if it was rejected or has no codec that can be recorded.
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

    /// With these format parameters.
    #[must_use]
    pub fn with_fmtp(self, fmtp: Option<String>) -> Self {
        Self { fmtp, ..self }
    }

    /// With what its publisher says of it.
    #[must_use]
    pub fn with_description(self, description: Option<String>) -> Self {
        Self {
            description,
            ..self
        }
    }

    /// There may be redundant audio (RFC 2198) made of the codec.
    #[must_use]
    pub fn with_red(self, red: bool) -> Self {
        Self { red, ..self }
    }

    /// It is encrypted end to end.
    #[must_use]
    pub fn with_encryption(self, encrypted: bool) -> Self {
        Self { encrypted, ..self }
    }

    /// Packets have this SSRC in the file; none: the source's own.
    #[must_use]
    pub fn with_ssrc(self, ssrc: Option<Ssrc>) -> Self {
        Self { ssrc, ..self }
    }

    /// It comes by this m-line, as manifests tell.
    #[must_use]
    pub fn with_mid(self, mid: Option<String>) -> Self {
        Self { mid, ..self }
    }

    /// What kind it is.
    pub fn medium(&self) -> Medium {
        match self.content {
            Content::Codec(codec) if codec.kind() == Kind::Video => Medium::Video,
            Content::Codec(_) => Medium::Audio,
            Content::Text | Content::Binary => Medium::Data,
        }
    }

    /// What its publisher says of it.
    pub(crate) fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Its codec; none of data.
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

    /// The format parameters of the SDP.
    pub(crate) fn fmtp(&self) -> Option<&str> {
        self.fmtp.as_deref()
    }

    /// As a manifest tells of it.
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

    /// The codec's name, or what data is.
    fn word(&self) -> &'static str {
        match self.content {
            Content::Codec(codec) => codec.name(),
            Content::Text => "text",
            Content::Binary => "binary",
        }
    }

    /// Whether it is of this codec, and can be read.
    pub(crate) fn is_plain(&self, codec: CodecName) -> bool {
        self.content == Content::Codec(codec) && !self.encrypted
    }

    /// Whether a recording has to begin with a keyframe, as far as one can tell them.
    pub(crate) fn has_keyframes(&self) -> bool {
        self.medium() == Medium::Video && !self.encrypted
    }

    /// The SSRC that packets have in the file, where it is not the source's.
    pub(crate) fn ssrc(&self) -> Option<Ssrc> {
        self.ssrc
    }

    /// The payload type that packets of this codec have in the file; none: they do not belong into it.
    pub(crate) fn payload_type(&self, codec: Codec) -> Option<Pt> {
        match self.content {
            Content::Codec(own) if own.codec() == codec => Some(own.default_pt()),
            Content::Codec(_) => (self.red && codec == Codec::Red).then_some(RED_PT),
            Content::Text | Content::Binary => None,
        }
    }

    /// What the file says of itself, but for the header extensions.
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
    #![allow(clippy::unwrap_used)]
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
