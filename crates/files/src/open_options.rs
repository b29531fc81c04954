//! The options for opening a file.

use crate::track::Kind;

/// The tracks of a file to play, and whether to loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Plays its first audio track.
    pub audio: bool,
    /// Plays its first video track.
    pub video: bool,
    /// Starts again at the end, for ever.
    pub looping: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            audio: true,
            video: true,
            looping: true,
        }
    }
}

impl OpenOptions {
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let audio = self.audio.then_some(Kind::Audio);
        audio.into_iter().chain(self.video.then_some(Kind::Video))
    }

    pub(crate) fn wanted(&self) -> &'static str {
        match (self.audio, self.video) {
            (true, false) => "audio",
            (false, true) => "video",
            _ => "audio or video",
        }
    }
}
