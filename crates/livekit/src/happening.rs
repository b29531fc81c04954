//! What happens in rooms, for webhooks and agents.

use livekit_protocol::{EgressInfo, IngressInfo, ParticipantInfo, Room, RoomEndReason, TrackInfo};

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
