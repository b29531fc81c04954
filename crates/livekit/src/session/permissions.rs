//! The permissions of a participant, from its token.

use livekit_protocol::{ParticipantPermission, TrackSource, participant_info};

use crate::access::{Claims, VideoGrant};

/// What a token says of its participant.
#[derive(Debug, Clone)]
pub(crate) struct Permissions {
    pub(crate) permission: ParticipantPermission,
    pub(crate) kind: participant_info::Kind,
}

impl Permissions {
    /// Returns the permissions of a token with this grant.
    pub(crate) fn of(claims: &Claims, grant: &VideoGrant) -> Self {
        let can_publish = grant.can_publish.unwrap_or(true);
        let sources = grant.can_publish_sources.iter();
        let source = |name: &String| TrackSource::from_str_name(&name.to_ascii_uppercase());
        let permission = ParticipantPermission {
            can_subscribe: grant.can_subscribe.unwrap_or(true),
            can_publish,
            can_publish_data: grant.can_publish_data.unwrap_or(can_publish),
            can_publish_sources: sources.filter_map(source).map(i32::from).collect(),
            hidden: grant.hidden,
            recorder: grant.recorder,
            can_update_metadata: grant.can_update_own_metadata.unwrap_or(false),
            agent: grant.agent,
            can_subscribe_metrics: grant.can_subscribe_metrics.unwrap_or(false),
            ..ParticipantPermission::default()
        };
        let kind = participant_info::Kind::from_str_name(&claims.kind.to_ascii_uppercase());
        Permissions {
            permission,
            kind: kind.unwrap_or(participant_info::Kind::Standard),
        }
    }
}

/// Returns whether media of `source` may be published.
pub(crate) fn may_publish(permission: &ParticipantPermission, source: i32) -> bool {
    let sources = &permission.can_publish_sources;
    permission.can_publish && (sources.is_empty() || sources.contains(&source))
}
