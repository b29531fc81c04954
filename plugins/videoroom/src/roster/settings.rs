//! How what somebody sends is treated, as they asked for it or as the room has it.

use portunus_core::Fields;
use portunus_core::record::Format;

use crate::refusal::Refusal;

/// The settings of a participant; they stay when it ceases to publish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MediaSettings {
    /// bit/s; 0: no cap
    pub(crate) bitrate: u64,
    pub(crate) talk: TalkSettings,
    pub(crate) record: RecordSettings,
}

/// When somebody counts as talking, where that is not as the room has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TalkSettings {
    /// Packets of a window.
    pub(crate) packets: Option<u64>,
    /// -dBov
    pub(crate) level: Option<u64>,
}

/// Whether somebody is recorded, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordSettings {
    pub(crate) on: bool,
    /// What names of files begin with.
    pub(crate) name: Option<String>,
    /// What the files are like; none: as the room has it.
    pub(crate) format: Option<Format>,
    /// Whoever it is may know what the disk is like.
    pub(crate) told_why: bool,
}

impl TalkSettings {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, Refusal> {
        let above_0 = |name| -> Result<Option<u64>, Refusal> {
            Ok(fields.positive(name)?.filter(|number| *number > 0))
        };
        Ok(TalkSettings {
            packets: above_0("audio_active_packets")?,
            level: above_0("audio_level_average")?,
        })
    }
}

impl RecordSettings {
    /// Those of somebody who comes into a room that is recorded, or is not.
    pub(crate) const fn of_room(on: bool) -> Self {
        RecordSettings {
            on,
            name: None,
            format: None,
            told_why: false,
        }
    }
}
