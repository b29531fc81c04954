//! How what somebody sends is treated, as they asked for it or as the room has it.

use portunus_record::Format;

/// The settings of a participant; they stay when it ceases to publish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaSettings {
    /// The cap on what is sent, in bit/s; 0 means no cap.
    pub bitrate: u64,
    /// When it counts as talking.
    pub talk: TalkSettings,
    /// Whether it is recorded, and as what.
    pub record: RecordSettings,
}

/// When somebody counts as talking, where that is not as the room has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TalkSettings {
    /// The packets over which the level is averaged.
    pub packets: Option<u64>,
    /// The average from which on somebody talks, in -dBov.
    pub level: Option<u64>,
}

/// Whether somebody is recorded, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSettings {
    /// Whether it is recorded.
    pub on: bool,
    /// What names of files begin with; `None` means room and id.
    pub name: Option<String>,
    /// The format of the files; `None` means that of the room.
    pub format: Option<Format>,
    /// The client may know why something is not recorded.
    pub told_why: bool,
}
