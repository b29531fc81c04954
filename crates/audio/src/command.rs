//! The commands that rooms get from their handles.

use portunus_dsp::Mixture;
use portunus_media::{IngestId, SourceRef};
use tokio::sync::{mpsc, oneshot};

use crate::announcement::FileReader;
use crate::clocks::Clocks;
use crate::recording::MixFile;
use crate::{
    AnnouncementId, AudioError, AudioEvent, Encoding, Out, ParticipantId, ParticipantOptions,
    ParticipantStats, RecordingId, RoomOptions,
};

/// The id of a room on its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RoomId(pub(crate) u64);

/// A command to a room.
#[derive(Debug)]
pub(crate) enum Command {
    Open {
        options: RoomOptions,
        clocks: Clocks,
        events: mpsc::Sender<AudioEvent>,
    },
    Close,
    Join {
        participant: ParticipantId,
        options: Box<ParticipantOptions>,
        input: Option<SourceRef>,
        output: Option<Out>,
    },
    Set {
        participant: ParticipantId,
        options: Box<ParticipantOptions>,
    },
    Connect {
        participant: ParticipantId,
        connected: bool,
    },
    Leave {
        participant: ParticipantId,
    },
    Mute(bool),
    Announce {
        announcement: AnnouncementId,
        group: Option<usize>,
        file: FileReader,
        reply: oneshot::Sender<Result<(), AudioError>>,
    },
    StopAnnouncement(AnnouncementId),
    Record {
        recording: RecordingId,
        file: MixFile,
        reply: oneshot::Sender<Result<String, AudioError>>,
    },
    StopRecording,
    Mix {
        id: u64,
        mixture: Mixture,
        encoding: Encoding,
        ingest: IngestId,
        always_on: bool,
    },
    DropMix {
        id: u64,
    },
    /// Causes a fault: of the room in its next frame, or of the thread.
    #[cfg(test)]
    Fault {
        of_thread: bool,
    },
    Stats {
        participant: ParticipantId,
        reply: oneshot::Sender<ParticipantStats>,
    },
}
