//! The entry of an ingress's media by WHIP.

use livekit_protocol::ingress_state::Status;
use livekit_protocol::{IngressInfo, SessionDescription};
use portunus_core::Requester;

use crate::door::{Admitted, Door, EntryError};
use crate::ingress::{self, Begun, NoSession};
use crate::join_parameters::JoinParameters;
use crate::session::Permissions;
use crate::token::{Grants, Renewal, Verified, VideoGrant};

/// The reason why a request by WHIP is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WhipError {
    /// There is no such stream key.
    #[error("there is no ingress with this stream key")]
    NoKey,
    /// The ingress is turned off.
    #[error("the ingress is disabled")]
    Disabled,
    /// The offer cannot be answered.
    #[error("the offer cannot be answered")]
    Offer,
    /// The participant cannot join.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// There is no such session.
    #[error(transparent)]
    NoSession(#[from] NoSession),
}

impl Door {
    /// Lets media of an ingress in, with the offer of its client.
    pub(crate) async fn begin_whip(
        &self,
        stream_key: &str,
        offer: String,
        requester: Requester,
    ) -> Result<Begun, WhipError> {
        let ingresses = &self.ingresses;
        let info = ingresses.by_key(stream_key).ok_or(WhipError::NoKey)?;
        if !info.enabled.unwrap_or(true) {
            return Err(WhipError::Disabled);
        }
        let id = &info.ingress_id;
        // Another client takes the place of a former one.
        ingresses.whip().end_of(id);
        let resource = ingresses.begins(id);
        let joined = self.join(self.admitted(&info, offer), requester).await;
        let begun = match joined {
            Ok(joined) => ingress::begin(ingresses, id, &resource, joined)
                .await
                .ok_or(WhipError::Offer),
            Err(error) => Err(error.into()),
        };
        begun.inspect_err(|error| {
            ingresses.ends(id, &resource, Status::EndpointError, error.to_string());
        })
    }

    /// Returns the join of an ingress's participant.
    fn admitted(&self, info: &IngressInfo, offer: String) -> Admitted {
        let grant = VideoGrant {
            room_create: true,
            room_join: true,
            room: info.room_name.clone(),
            can_publish: Some(true),
            can_subscribe: Some(false),
            can_publish_data: Some(false),
            ..VideoGrant::default()
        };
        let claims = Grants {
            identity: info.participant_identity.clone(),
            name: info.participant_name.clone(),
            metadata: info.participant_metadata.clone(),
            kind: "ingress".to_owned(),
            video: Some(grant.clone()),
            ..Grants::default()
        };
        let keys = self.keys.clone();
        let verified = Verified {
            key: keys.first().unwrap_or_default(),
            grants: claims.clone(),
            expires_at: 0,
        };
        Admitted {
            token: Renewal::new(keys, verified),
            permissions: Permissions::of(&claims, &grant),
            room: info.room_name.clone(),
            identity: info.participant_identity.clone(),
            parameters: JoinParameters {
                single: true,
                add_tracks: ingress::tracks(info, &offer),
                offer: Some(SessionDescription {
                    r#type: "offer".to_owned(),
                    sdp: offer,
                    id: 1,
                    ..SessionDescription::default()
                }),
                ..JoinParameters::default()
            },
            claims,
        }
    }
}
