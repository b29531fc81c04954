//! The formats of recorded files.

use std::str::FromStr;

use portunus_sdp::CodecName;
use serde::{Deserialize, Serialize};

/// The format of a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Format {
    /// Janus's format: any content, unchanged, with a file for each track.
    #[default]
    #[serde(rename = "mjr")]
    Mjr,
    /// Ogg: Opus only, and not encrypted end to end. Late packets are sorted in, and gaps are
    /// silent.
    #[serde(rename = "opus")]
    OggOpus,
    /// WebM: VP8, VP9, AV1 and Opus, all tracks in one file.
    #[serde(rename = "webm")]
    WebM,
    /// Matroska: like WebM, with H.264, H.265 and G.711.
    #[serde(rename = "mkv")]
    Matroska,
    /// Fragmented MP4: H.264, H.265, AV1, VP9 and Opus, all tracks in one file.
    #[serde(rename = "mp4")]
    Mp4,
}

/// The name of an unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0:?} of recordings, but mjr, webm, mkv, mp4 and opus")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|it| it.extension() == name);
        named.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Format::Mjr,
        Format::OggOpus,
        Format::WebM,
        Format::Matroska,
        Format::Mp4,
    ];

    /// Returns the extension of its files, which is also the format's name in requests and the
    /// configuration.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Mjr => "mjr",
            Format::OggOpus => "opus",
            Format::WebM => "webm",
            Format::Matroska => "mkv",
            Format::Mp4 => "mp4",
        }
    }

    /// Whether all tracks of a participant go into one file.
    pub const fn is_container(self) -> bool {
        matches!(self, Format::WebM | Format::Matroska | Format::Mp4)
    }

    /// Whether its files may have a track of this codec.
    pub const fn takes(self, codec: CodecName) -> bool {
        use CodecName::{Av1, H264, H265, Opus, Pcma, Pcmu, Vp8, Vp9};
        match self {
            Format::Mjr => true,
            Format::OggOpus => matches!(codec, Opus),
            Format::WebM => matches!(codec, Opus | Vp8 | Vp9 | Av1),
            Format::Matroska => {
                matches!(codec, Opus | Pcmu | Pcma | Vp8 | Vp9 | Av1 | H264 | H265)
            }
            Format::Mp4 => matches!(codec, Opus | Vp9 | Av1 | H264 | H265),
        }
    }

    /// Returns the format for a file with all these codecs: Matroska if WebM or MP4 lacks one of
    /// them. Codecs that no container supports are ignored.
    pub fn for_codecs(self, codecs: &[CodecName]) -> Self {
        let mut contained = codecs
            .iter()
            .filter(|codec| Format::Matroska.takes(**codec));
        match self.is_container() && !contained.all(|codec| self.takes(*codec)) {
            true => Format::Matroska,
            false => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        for format in Format::ALL {
            assert_eq!(format.extension().parse(), Ok(format));
        }
        assert!("MJR".parse::<Format>().is_err());
    }

    #[test]
    fn what_webm_and_mp4_lack_goes_into_matroska() {
        use CodecName::{G722, H264, Opus, Pcmu, Vp8, Vp9};
        for (asked, codecs, made) in [
            (Format::WebM, &[Opus, Vp8][..], Format::WebM),
            (Format::WebM, &[Opus, H264], Format::Matroska),
            (Format::WebM, &[Pcmu, Vp9], Format::Matroska),
            (Format::WebM, &[G722, Vp9], Format::WebM),
            (Format::Mp4, &[Opus, H264], Format::Mp4),
            (Format::Mp4, &[Opus, Vp8], Format::Matroska),
            (Format::Mjr, &[Opus, Vp8], Format::Mjr),
            (Format::OggOpus, &[Opus, Vp8], Format::OggOpus),
            (Format::Mp4, &[], Format::Mp4),
        ] {
            assert_eq!(asked.for_codecs(codecs), made, "{asked:?} {codecs:?}");
        }
    }
}
