//! The description of a recording of a mix.

use portunus_record::Whose;

/// The number of a recording. The caller chooses it, and uses each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordingId(pub u64);

/// The file and the format of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixRecording {
    /// The folder as clients name it, see `portunus_record::RecorderConfig`. `None`: the configured
    /// one.
    pub dir: Option<String>,
    /// The name of the file. Its extension (`.wav`, `.opus`) is added if missing.
    pub name: String,
    /// The format of the file.
    pub format: RecordingFormat,
    /// The owner in events about complete files. `None`: there are no such events.
    pub whose: Option<Whose>,
}

/// The format of a recorded mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordingFormat {
    /// 16-bit PCM at the room's rate and channels.
    #[default]
    Wav,
    /// Opus in Ogg (RFC 7845).
    OggOpus,
}

impl RecordingFormat {
    pub(super) const fn extension(self) -> &'static str {
        match self {
            RecordingFormat::Wav => "wav",
            RecordingFormat::OggOpus => "opus",
        }
    }
}
