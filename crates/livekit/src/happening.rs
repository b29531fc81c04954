//! What happens in rooms, for webhooks and agents.

use std::fmt;

use livekit_protocol::{
    EgressInfo, IngressInfo, ParticipantInfo, Room, RoomEgress, RoomEndReason, TrackInfo,
};

/// Who begins something by itself when something happens in rooms.
pub(crate) trait Observer: fmt::Debug + Send + Sync {
    /// Notes that a room begins, with what its options ask to be recorded.
    fn room_started(&self, room: &Room, egress: Option<RoomEgress>);

    /// Notes something else. The caller may hold the lock of the room.
    fn happened(&self, happening: &Happening);

    /// Returns whether it wants to know about participants and tracks.
    fn is_interested(&self) -> bool;
}

/// Something that happened in a room.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    /// A room begins.
    RoomStarted(Room),
    /// A room has ended.
    RoomFinished(Room, RoomEndReason),
    /// The media of a participant can flow.
    Joined(Room, ParticipantInfo),
    /// A participant has left.
    Left(Room, ParticipantInfo),
    /// A participant has left before its media could flow.
    Aborted(Room, ParticipantInfo),
    /// A track is there.
    Published(Room, ParticipantInfo, TrackInfo),
    /// A track has ended.
    Unpublished(Room, ParticipantInfo, TrackInfo),
    /// An egress is asked for.
    EgressStarted(Box<EgressInfo>),
    /// An egress has another status or other outputs.
    EgressUpdated(Box<EgressInfo>),
    /// An egress is over.
    EgressEnded(Box<EgressInfo>),
    /// An ingress gets media.
    IngressStarted(Box<IngressInfo>),
    /// An ingress gets no media any more.
    IngressEnded(Box<IngressInfo>),
}
