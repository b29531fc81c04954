//! The permissions of a participant, from its token.

use livekit_protocol::{ParticipantPermission, participant_info};

use crate::token::{Grants, VideoGrant};

/// What a token says of its participant.
#[derive(Debug, Clone)]
pub(crate) struct Permissions {
    pub(crate) permission: ParticipantPermission,
    pub(crate) kind: participant_info::Kind,
    /// Details of the kind.
    pub(crate) kind_details: Vec<i32>,
}

impl Permissions {
    /// Returns the permissions of a token with this grant.
    pub(crate) fn of(claims: &Grants, grant: &VideoGrant) -> Self {
        Permissions {
            permission: grant.permission(),
            kind: claims.participant_kind(),
            kind_details: {
                let details = claims.participant_kind_details().into_iter();
                details.map(i32::from).collect()
            },
        }
    }
}

/// Returns whether media of `source` may be published.
pub(crate) fn may_publish(permission: &ParticipantPermission, source: i32) -> bool {
    let sources = &permission.can_publish_sources;
    permission.can_publish && (sources.is_empty() || sources.contains(&source))
}
