//! The grants of a token: who somebody is, and what they may do.

use std::collections::HashMap;

use livekit_protocol::participant_info::{Kind, KindDetail};
use livekit_protocol::{ParticipantPermission, RoomConfiguration, TrackSource};
use serde::{Deserialize, Serialize};

use super::JoinFault;
use crate::limits;

/// The claims of a token, without those that every JSON Web Token has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Grants {
    /// Who it is: the claim `sub`, or `jti` if that is empty.
    #[serde(skip)]
    pub identity: String,
    /// The name that others see.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind of participant, in lower case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Details of the kind, in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kind_details: Vec<String>,
    /// Rights of rooms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoGrant>,
    /// Rights of telephony.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sip: Option<SipGrant>,
    /// The options of the room, if this participant is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_config: Option<RoomConfiguration>,
    /// The name of such options.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub room_preset: String,
    /// The digest of a body, in webhooks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Text of the application.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metadata: String,
    /// Texts of the application by name.
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    pub attributes: HashMap<String, String>,
}

/// Rights of rooms.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VideoGrant {
    /// Creates and deletes rooms.
    #[serde(skip_serializing_if = "is_false")]
    pub room_create: bool,
    /// Lists rooms.
    #[serde(skip_serializing_if = "is_false")]
    pub room_list: bool,
    /// Records.
    #[serde(skip_serializing_if = "is_false")]
    pub room_record: bool,
    /// Moderates `room`.
    #[serde(skip_serializing_if = "is_false")]
    pub room_admin: bool,
    /// Joins `room`.
    #[serde(skip_serializing_if = "is_false")]
    pub room_join: bool,
    /// The room of the two rights above.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub room: String,
    /// Publishes tracks. Unset means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_publish: Option<bool>,
    /// Subscribes to tracks. Unset means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_subscribe: Option<bool>,
    /// Sends data. Unset means as `can_publish`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_publish_data: Option<bool>,
    /// The sources that may be published, in lower case. Empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub can_publish_sources: Vec<String>,
    /// Changes the own name, metadata and attributes. Unset means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_update_own_metadata: Option<bool>,
    /// Manages ingresses.
    #[serde(skip_serializing_if = "is_false")]
    pub ingress_admin: bool,
    /// Others do not see the participant.
    #[serde(skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// The participant records.
    #[serde(skip_serializing_if = "is_false")]
    pub recorder: bool,
    /// Registers as a worker of agents.
    #[serde(skip_serializing_if = "is_false")]
    pub agent: bool,
    /// Receives metrics. Unset means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_subscribe_metrics: Option<bool>,
    /// Controls the session of an agent. Unset means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_manage_agent_session: Option<bool>,
    /// The room that participants of `room` may be forwarded or moved to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub destination_room: String,
}

/// Rights of telephony.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SipGrant {
    /// Manages trunks and dispatch rules.
    #[serde(skip_serializing_if = "is_false")]
    pub admin: bool,
    /// Calls.
    #[serde(skip_serializing_if = "is_false")]
    pub call: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Grants {
    /// Returns the room that the token lets its bearer join.
    pub fn join(&self) -> Result<&str, JoinFault> {
        let video = self.video.as_ref().ok_or(JoinFault::NoGrant)?;
        let room = video.room.as_str();
        if !video.room_join {
            return Err(JoinFault::Denied);
        }
        if self.identity.is_empty() {
            Err(JoinFault::NoIdentity)
        } else if self.identity.len() > limits::IDENTITY {
            Err(JoinFault::LongIdentity)
        } else if room.is_empty() {
            Err(JoinFault::NoRoom)
        } else if room.len() > limits::ROOM_NAME {
            Err(JoinFault::LongRoom)
        } else {
            Ok(room)
        }
    }

    /// Returns the kind of participant. An unknown one is a standard participant.
    pub fn participant_kind(&self) -> Kind {
        Kind::from_str_name(&self.kind.to_ascii_uppercase()).unwrap_or(Kind::Standard)
    }

    /// Returns the details of the kind, without unknown ones.
    pub fn participant_kind_details(&self) -> Vec<KindDetail> {
        let details = self.kind_details.iter();
        details
            .filter_map(|detail| KindDetail::from_str_name(&detail.to_ascii_uppercase()))
            .collect()
    }
}

impl VideoGrant {
    /// Returns whether its bearer moderates `room`.
    pub fn is_admin_of(&self, room: &str) -> bool {
        self.room_admin && self.room == room
    }

    /// Returns the permissions in the room, with the defaults of those that are unset.
    pub fn permission(&self) -> ParticipantPermission {
        let can_publish = self.can_publish.unwrap_or(true);
        #[expect(deprecated, reason = "SDKs still read these members")]
        ParticipantPermission {
            can_subscribe: self.can_subscribe.unwrap_or(true),
            can_publish,
            can_publish_data: self.can_publish_data.unwrap_or(can_publish),
            can_publish_sources: self.sources(),
            hidden: self.hidden,
            recorder: self.recorder,
            can_update_metadata: self.can_update_own_metadata.unwrap_or(false),
            agent: self.agent,
            can_subscribe_metrics: self.can_subscribe_metrics.unwrap_or(false),
            can_manage_agent_session: self.can_manage_agent_session.unwrap_or(false),
        }
    }

    /// Takes over permissions that were changed in the room.
    #[expect(deprecated, reason = "SDKs still write these members")]
    pub fn set_permission(&mut self, permission: &ParticipantPermission) {
        self.can_subscribe = Some(permission.can_subscribe);
        self.can_publish = Some(permission.can_publish);
        self.can_publish_data = Some(permission.can_publish_data);
        let sources = permission.can_publish_sources.iter();
        let name = |source: &i32| {
            let source = TrackSource::try_from(*source).unwrap_or(TrackSource::Unknown);
            source.as_str_name().to_ascii_lowercase()
        };
        self.can_publish_sources = sources.map(name).collect();
        self.can_update_own_metadata = Some(permission.can_update_metadata);
        self.hidden = permission.hidden;
        self.recorder = permission.recorder;
        self.agent = permission.agent;
        self.can_subscribe_metrics = Some(permission.can_subscribe_metrics);
        self.can_manage_agent_session = Some(permission.can_manage_agent_session);
    }

    fn sources(&self) -> Vec<i32> {
        let source = |name: &String| {
            let name = name.to_ascii_uppercase();
            TrackSource::from_str_name(&name).unwrap_or(TrackSource::Unknown) as i32
        };
        self.can_publish_sources.iter().map(source).collect()
    }
}
