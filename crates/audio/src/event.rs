//! What a room tells.

use std::sync::Arc;

use crate::{AnnouncementId, AudioError, ParticipantId, RecordingId};

/// What happens in a room.
#[derive(Debug, Clone)]
pub enum AudioEvent {
    /// A participant has begun or ceased to talk, see [`crate::TalkOptions`].
    Talking {
        /// Who.
        participant: ParticipantId,
        /// Which of the two.
        talking: bool,
    },
    /// An announcement is heard from now on.
    AnnouncementStarted(AnnouncementId),
    /// An announcement is not heard any more.
    AnnouncementEnded {
        /// Which one.
        announcement: AnnouncementId,
        /// Why.
        why: AnnouncementEnd,
    },
    /// A recording has ended; with an error, if it did not end as it was asked to. The file has its name.
    RecordingEnded {
        /// Which one.
        recording: RecordingId,
        /// Its name, without folders.
        file: String,
        /// What was wrong.
        error: Option<Arc<AudioError>>,
    },
}

/// Why an announcement has ended.
#[derive(Debug, Clone)]
pub enum AnnouncementEnd {
    /// All of it was heard.
    Played,
    /// It was stopped, or the room ends.
    Stopped,
    /// The file is broken from there on.
    Failed(Arc<AudioError>),
}
