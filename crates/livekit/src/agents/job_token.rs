//! The token by which an agent joins the room of its job.

use std::time::Duration;

use livekit_protocol::{AvailabilityResponse, ParticipantPermission};

use crate::token::{Grants, VideoGrant};

/// How long the token is valid.
pub(super) const VALID: Duration = Duration::from_secs(3_600);

/// Returns the grants of an agent in `room`, as it wants to be seen there.
pub(super) fn grants(
    room: String,
    answer: AvailabilityResponse,
    permission: &ParticipantPermission,
) -> Grants {
    let video = VideoGrant {
        room_join: true,
        agent: true,
        room,
        can_subscribe: Some(permission.can_subscribe),
        can_publish: Some(permission.can_publish),
        can_publish_data: Some(permission.can_publish_data),
        hidden: permission.hidden,
        can_update_own_metadata: Some(permission.can_update_metadata),
        can_subscribe_metrics: Some(permission.can_subscribe_metrics),
        ..VideoGrant::default()
    };
    Grants {
        identity: answer.participant_identity,
        name: answer.participant_name,
        metadata: answer.participant_metadata,
        attributes: answer.participant_attributes,
        kind: "agent".to_owned(),
        video: Some(video),
        ..Grants::default()
    }
}
