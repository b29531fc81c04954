//! Mountpoints that play files.

use portunus_core::Fields;
use portunus_resources::{Options, place};

use super::codec::{audio, video};
use super::values::{Read, any_text, choice, ignored, payload_type};
use super::{SpecProblem, StreamCodec};

/// A file that is played again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// The path.
    pub filename: String,
    /// Play its audio.
    pub audio: bool,
    /// Whether to play its video. `None` means if there is one.
    pub video: Option<bool>,
    /// The formats that viewers are offered instead of the usual ones.
    pub offer: FileOffers,
}

/// The formats of audio and video for viewers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FileOffers {
    pub audio: FileOffer,
    pub video: FileOffer,
}

/// The format of a file's audio or video for viewers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileOffer {
    /// Payload type.
    pub pt: Option<u8>,
    /// The codec that the file has to have.
    pub codec: Option<StreamCodec>,
    /// Format parameters.
    pub fmtp: Option<String>,
}

impl Default for FileSpec {
    fn default() -> Self {
        FileSpec {
            filename: String::new(),
            audio: true,
            video: None,
            offer: FileOffers::default(),
        }
    }
}

type Opt = portunus_resources::Opt<FileSpec, SpecProblem>;

pub(super) const OPTIONS: Options<FileSpec, SpecProblem> = Options(&[
    Opt::new("filename", place!(filename, path))
        .required()
        .listed()
        .confidential(),
    Opt::new("audio", place!(audio)),
    Opt::new("video", place!(video, choice)),
    Opt::new("audiopt", place!(offer.audio.pt, payload_type)),
    Opt::new("audiocodec", place!(offer.audio.codec, audio)),
    Opt::new("audiortpmap", ignored()),
    Opt::new("audiofmtp", place!(offer.audio.fmtp)),
    Opt::new("videopt", place!(offer.video.pt, payload_type)),
    Opt::new("videocodec", place!(offer.video.codec, video)),
    Opt::new("videortpmap", ignored()),
    Opt::new("videofmtp", place!(offer.video.fmtp)),
]);

/// Reads a path that does not go up.
fn path(fields: Fields<'_>, name: &str) -> Read<String> {
    let path = any_text(fields, name)?;
    let goes_up = |path: &String| path.split('/').any(|part| part == "..");
    if path.as_ref().is_some_and(goes_up) {
        let reason = "the path of a file must not go up by ../";
        return Err(SpecProblem::cannot_create(name, reason));
    }
    Ok(path)
}

impl FileSpec {
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, SpecProblem> {
        let spec = OPTIONS.read(fields)?;
        let lower = spec.filename.to_ascii_lowercase();
        let mut only_audio = [".alaw", ".mulaw", ".opus"].iter();
        let has_others = !spec.audio || spec.video == Some(true);
        if has_others && only_audio.any(|end| lower.ends_with(end)) {
            let reason = "there is nothing but audio in a file of this type";
            return Err(SpecProblem::cannot_create("filename", reason));
        }
        Ok(spec)
    }
}
