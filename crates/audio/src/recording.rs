//! Recordings of mixes.

/// What of a room is recorded, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixRecording {
    /// The folder, as clients may name it: see `portunus_record::RecorderConfig`. None: the configured one.
    pub dir: Option<String>,
    /// The file's name. Its end (`.wav`, `.opus`) is added if it has none.
    pub name: String,
    /// What the name ends with, after a dot, while the file is open; none: as recordings are configured.
    pub temporary: Option<String>,
    /// The form of the file.
    pub format: RecordingFormat,
    /// Only this group; none: all that is heard in the room.
    pub group: Option<usize>,
}

/// The form of a recorded mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordingFormat {
    /// 16-bit PCM at the room's rate and channels.
    #[default]
    Wav,
    /// Opus in Ogg (RFC 7845).
    OggOpus,
}
