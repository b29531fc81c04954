//! What rooms are asked by their handles.
#![allow(dead_code, reason = "rooms are not run yet")]

use portunus_media::{PacketFeed, SourceRef};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Announcement, AnnouncementId, AudioError, AudioEvent, Encoding, MixRecording, Mixture, Out,
    ParticipantId, ParticipantOptions, ParticipantStats, RoomOptions,
};

/// A room, as its thread knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RoomId(pub(crate) u64);

/// What a thread is asked to do with one of its rooms.
#[derive(Debug)]
pub(crate) enum Command {
    Open {
        options: RoomOptions,
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
        what: Announcement,
        reply: oneshot::Sender<Result<(), AudioError>>,
    },
    StopAnnouncement(AnnouncementId),
    Record {
        what: MixRecording,
        reply: oneshot::Sender<Result<String, AudioError>>,
    },
    StopRecording,
    Mix {
        id: u64,
        mixture: Mixture,
        encoding: Encoding,
        feed: PacketFeed,
        always_on: bool,
    },
    DropMix {
        id: u64,
    },
    Stats {
        participant: ParticipantId,
        reply: oneshot::Sender<ParticipantStats>,
    },
}
