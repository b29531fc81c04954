//! The events of a room.

use std::sync::Arc;

use crate::{AnnouncementId, AudioError, ParticipantId, RecordingId};

/// An event of a room.
#[derive(Debug, Clone)]
pub enum AudioEvent {
    /// A participant has started or stopped talking, see [`crate::TalkOptions`].
    Talking {
        /// The participant.
        participant: ParticipantId,
        /// Whether it talks now.
        talking: bool,
    },
    /// An announcement is heard from now on.
    AnnouncementStarted(AnnouncementId),
    /// An announcement has ended.
    AnnouncementEnded {
        /// The announcement.
        announcement: AnnouncementId,
        /// The reason.
        why: AnnouncementEnd,
    },
    /// A recording has ended, and its file has its final name.
    RecordingEnded {
        /// The recording.
        recording: RecordingId,
        /// The name of the file, without folders.
        file: String,
        /// The error, unless the recording ended as requested.
        error: Option<Arc<AudioError>>,
    },
}

/// The reason for the end of an announcement.
#[derive(Debug, Clone)]
pub enum AnnouncementEnd {
    /// It was played to its end.
    Played,
    /// It was stopped, or the room has ended.
    Stopped,
    /// The file is broken from there on.
    Failed(Arc<AudioError>),
}
