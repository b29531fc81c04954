//! The refusals of requests: codes and texts.

use std::net::IpAddr;

use portunus_core::{FieldError, JsepError, Object, OutOfScope, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, TooMany};
use portunus_telephony::DialError;
use serde_json::Value;

/// The reason of a refusal. Its text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request '{0}'")]
    UnknownRequest(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but an invalid value.
    #[error("Invalid value ({name}: {reason})")]
    Value { name: String, reason: &'static str },
    /// An array contains something other than text.
    #[error("Invalid element in the {0} array (not a string)")]
    NotAString(&'static str),
    #[error("Unsupported action '{0}' (allowed)")]
    Action(String),
    #[error("Unsupported codec ({0})")]
    Codec(String),
    #[error("Could not resolve address ({0})")]
    Host(String),
    #[error("Media encryption unsupported by this plugin")]
    Encrypted,
    #[error("Cannot record: {0}")]
    Recording(String),
    /// 0 or an empty text if the request names no room.
    #[error("No such room ({0})")]
    NoSuchRoom(Id),
    #[error("Room {0} already exists")]
    RoomExists(Id),
    /// The client is in no room. The text says for which action that is needed.
    #[error("Can't {0} (not in a room)")]
    NotInRoom(&'static str),
    /// The member holds a wrong secret.
    #[error("Unauthorized (wrong {0})")]
    Wrong(&'static str),
    #[error("Unauthorized ({0})")]
    Unauthorized(&'static str),
    /// The token is missing, or is not in the list.
    #[error("Unauthorized (not in the allowed list)")]
    NotAllowed,
    /// A client may not create more.
    #[error("Unauthorized ({0})")]
    Limit(TooMany),
    /// The secret was not checked, because of too many wrong ones.
    #[error("Unauthorized ({0})")]
    Guessing(#[from] Guessing),
    /// The token was signed for something else, or has expired. This does not count as guessing.
    #[error("Unauthorized (wrong token)")]
    NotSigned,
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Unauthorized ({0})")]
    OutOfScope(#[from] OutOfScope),
    #[error("Unauthorized (nothing may be sent to {0}, see server.outgoing_networks)")]
    Destination(IpAddr),
    #[error("User ID {0} already exists")]
    UserExists(Id),
    #[error("File ID exists ({0})")]
    FileExists(String),
    #[error("Already in a room")]
    AlreadyJoined,
    #[error("Already in this room")]
    SameRoom,
    #[error("This handle listens to a room")]
    Listening,
    #[error("No such user {id} in room {room}")]
    NoSuchUser { id: Id, room: Id },
    #[error("Cannot negotiate: {0}")]
    Sdp(String),
    #[error("Received an offer on a plugin-offered session")]
    OfferOnOffered,
    #[error("Received an answer when we didn't send an offer")]
    AnswerWithoutOffer,
    #[error("The client has offered this session")]
    OfferOnClients,
    #[error("No such group ({0})")]
    NoSuchGroup(String),
    #[error("Unsupported sampling rate {0}")]
    SamplingRate(u64),
    #[error("This server has no trunk to call telephones by")]
    NoTelephone,
    #[error("Cannot call: {0}")]
    Dial(DialError),
    #[error("No such call ({0})")]
    NoSuchCall(u64),
    #[error("Error opening file")]
    File,
    /// The server cannot do this now.
    #[error("{0}")]
    Unknown(String),
}

impl Refusal {
    pub(crate) fn value(name: &str, reason: &'static str) -> Self {
        Refusal::Value {
            name: name.to_owned(),
            reason,
        }
    }

    /// Adds a prefix to the member's name.
    pub(crate) fn of_member_with(self, prefix: &str) -> Self {
        let name = |name: String| format!("{prefix}{name}");
        match self {
            Refusal::Value { name: it, reason } => Refusal::Value {
                name: name(it),
                reason,
            },
            Refusal::Field(FieldError::Type { name: it, wanted }) => {
                Refusal::Field(FieldError::Type {
                    name: name(it),
                    wanted,
                })
            }
            refusal => refusal,
        }
    }

    pub(crate) fn missing(name: &str) -> Self {
        Refusal::Field(FieldError::Missing(name.to_owned()))
    }

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 481,
            Refusal::UnknownRequest(_) => 482,
            Refusal::Field(FieldError::Missing(_)) => 483,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value { .. }
            | Refusal::NotAString(_)
            | Refusal::Action(_)
            | Refusal::Codec(_)
            | Refusal::Host(_)
            | Refusal::Encrypted
            | Refusal::Recording(_) => 484,
            Refusal::NoSuchRoom(_) => 485,
            Refusal::RoomExists(_) => 486,
            Refusal::NotInRoom(_) => 487,
            Refusal::Wrong(_)
            | Refusal::Unauthorized(_)
            | Refusal::NotAllowed
            | Refusal::Limit(_)
            | Refusal::Guessing(_)
            | Refusal::NotSigned
            | Refusal::Untrusted(_)
            | Refusal::OutOfScope(_)
            | Refusal::Destination(_) => 489,
            Refusal::UserExists(_) | Refusal::FileExists(_) => 490,
            Refusal::AlreadyJoined | Refusal::SameRoom | Refusal::Listening => 491,
            Refusal::NoSuchUser { .. } => 492,
            Refusal::Sdp(_)
            | Refusal::OfferOnOffered
            | Refusal::OfferOnClients
            | Refusal::AnswerWithoutOffer => 493,
            Refusal::NoSuchGroup(_) => 494,
            Refusal::NoSuchCall(_) => 492,
            Refusal::SamplingRate(_)
            | Refusal::NoTelephone
            | Refusal::Dial(_)
            | Refusal::File
            | Refusal::Unknown(_) => 499,
        }
    }

    /// Returns the answer to the client.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("audiobridge", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .into()
    }
}

impl Refused for Refusal {
    fn blames(&self, member: &str) -> bool {
        match self {
            Refusal::Wrong(name) => *name == member,
            Refusal::NotAllowed => member == "token",
            _ => false,
        }
    }
}

/// Translates the refusals that all plugins share.
impl From<resources::Refusal> for Refusal {
    fn from(refusal: resources::Refusal) -> Self {
        match refusal {
            resources::Refusal::Field(error) => Refusal::Field(error),
            resources::Refusal::Value(name, reason) => Refusal::value(name, reason),
            resources::Refusal::Wrong(name) => Refusal::Wrong(name),
            resources::Refusal::TokenNeeded => Refusal::NotAllowed,
            resources::Refusal::NoSuch(id) => Refusal::NoSuchRoom(id),
            resources::Refusal::Exists(id) => Refusal::RoomExists(id),
            resources::Refusal::TooMany(limit) => Refusal::Limit(limit),
            resources::Refusal::NoFile => Refusal::Unknown(
                "No file is configured for permanent rooms (audiobridge.save)".to_owned(),
            ),
        }
    }
}

impl From<JsepError> for Refusal {
    fn from(error: JsepError) -> Self {
        match error {
            JsepError::Closing => Refusal::Unknown(
                "The former PeerConnection is being closed: try again once its hangup is told"
                    .to_owned(),
            ),
            error => Refusal::Sdp(error.to_string()),
        }
    }
}
