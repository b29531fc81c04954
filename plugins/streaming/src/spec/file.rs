//! Mountpoints that play files.

use portunus_core::Fields;
use portunus_core::sdp::Kind;

use super::media::{optional_text, payload_type};
use super::{SpecProblem, StreamCodec};

/// A file that is played again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Where it is.
    pub filename: String,
    /// Play its audio.
    pub audio: bool,
    /// Play its video; if nothing is said, the video that there is.
    pub video: Option<bool>,
    /// What viewers are offered instead of the usual.
    pub offer: [FileOffer; 2],
}

/// What is offered of a file's audio or video.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileOffer {
    /// Payload type.
    pub pt: Option<u8>,
    /// The codec that the file has to have.
    pub codec: Option<StreamCodec>,
    /// Format parameters.
    pub fmtp: Option<String>,
}

pub(super) const KNOWN: [&str; 11] = [
    "filename",
    "audio",
    "video",
    "audiopt",
    "audiocodec",
    "audiortpmap",
    "audiofmtp",
    "videopt",
    "videocodec",
    "videortpmap",
    "videofmtp",
];

impl FileSpec {
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, SpecProblem> {
        let filename = fields
            .required_string("filename")
            .map_err(SpecProblem::field)?;
        if filename.split('/').any(|part| part == "..") {
            let reason = "the path of a file must not go up by ../";
            return Err(SpecProblem::cannot_create("filename", reason));
        }
        let audio = fields.boolean("audio").map_err(SpecProblem::field)?;
        let video = fields.boolean("video").map_err(SpecProblem::field)?;
        let spec = FileSpec {
            filename: filename.to_owned(),
            audio: audio.unwrap_or(true),
            video,
            offer: [
                FileOffer::read(fields, Kind::Audio, "audio")?,
                FileOffer::read(fields, Kind::Video, "video")?,
            ],
        };
        let lower = filename.to_ascii_lowercase();
        let only_audio = [".alaw", ".mulaw", ".opus"];
        if only_audio.iter().any(|end| lower.ends_with(end)) && (!spec.audio || video == Some(true))
        {
            let reason = "there is nothing but audio in a file of this type";
            return Err(SpecProblem::cannot_create("filename", reason));
        }
        Ok(spec)
    }
}

impl FileOffer {
    pub(super) fn read(fields: Fields<'_>, kind: Kind, name: &str) -> Result<Self, SpecProblem> {
        let (codec, rtpmap) = (format!("{name}codec"), format!("{name}rtpmap"));
        Ok(FileOffer {
            pt: payload_type(fields, &format!("{name}pt"))?,
            codec: StreamCodec::read(fields, kind, (&codec, &rtpmap))?,
            fmtp: optional_text(fields, &format!("{name}fmtp"))?,
        })
    }
}
