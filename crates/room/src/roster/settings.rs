//! The settings of a participant's media.

use portunus_record::Format;

/// The settings of a participant's media. They stay when it stops publishing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaSettings {
    /// The cap on its bitrate, in bit/s; 0 means no cap.
    pub bitrate: u64,
    /// When it counts as talking.
    pub talk: TalkSettings,
    /// Its recordings.
    pub record: RecordSettings,
}

/// When a participant counts as talking. `None` means as in the room's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TalkSettings {
    /// The number of packets over which the level is averaged.
    pub packets: Option<u64>,
    /// The average level from which on it talks, in -dBov: 0 (loudest) to 127 (silence).
    pub level: Option<u64>,
}

/// The recordings of a participant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSettings {
    /// Whether it is recorded.
    pub on: bool,
    /// The prefix of file names. `None` means room and id.
    pub name: Option<String>,
    /// The format of the files. `None` means that of the room.
    pub format: Option<Format>,
    /// Whether the client may know why a recording failed.
    pub told_why: bool,
}
