//! Why a request is refused: codes and texts.

use std::net::IpAddr;

use portunus_core::{FieldError, JsepError, Object, OutOfScope, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, TooMany};

/// The reason for a refusal. Its text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    /// By the API.
    #[error("Unknown request '{0}'")]
    UnknownRequest(String),
    /// By a data channel.
    #[error("Unsupported request {0}")]
    Unsupported(String),
    #[error("PeerConnection already setup")]
    AlreadySetUp,
    #[error("PeerConnection not setup")]
    NotSetUp,
    #[error("No such room ({0})")]
    NoSuchRoom(Id),
    #[error("Room {0} already exists")]
    RoomExists(Id),
    /// A wrong secret, by the member that shows it.
    #[error("Unauthorized (wrong {0})")]
    Wrong(&'static str),
    #[error("Unauthorized (not in the allowed list)")]
    NotAllowed,
    /// Clients may not make more.
    #[error("Unauthorized ({0})")]
    Limit(TooMany),
    /// It may have been right, and was not looked at.
    #[error("Unauthorized ({0})")]
    Guessing(#[from] Guessing),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Unauthorized ({0})")]
    OutOfScope(#[from] OutOfScope),
    #[error("Unauthorized (nothing may be sent to {0}, see server.outgoing_networks)")]
    Destination(IpAddr),
    #[error("Username already taken")]
    UsernameTaken,
    #[error("Already in room {0}")]
    AlreadyInRoom(Id),
    #[error("Not in room {0}")]
    NotInRoom(Id),
    #[error("No such user {username} in room {room}")]
    NoSuchUser { username: String, room: Id },
    #[error("Both to and tos array provided")]
    BothAddresses,
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but not a value that can be.
    #[error("Invalid value ({name}: {reason})")]
    Value {
        name: &'static str,
        reason: &'static str,
    },
    /// A member's text is too long.
    #[error("Invalid value ({name}: {most} bytes at most)")]
    LongText { name: String, most: usize },
    #[error("Invalid value (the message has {size} bytes, and may have {most})")]
    LongMessage { size: usize, most: usize },
    #[error("Too much at once: wait for a moment and send it again")]
    TooFast,
    /// The answer does not fit into a message of a data channel.
    #[error(
        "The answer has {size} bytes, and a data channel takes {most}: ask over the Janus API, or leave the room to those who are in it"
    )]
    LongAnswer { size: usize, most: usize },
    #[error("{0}")]
    Sdp(String),
    #[error("Nothing can be posted: {0}")]
    NoPosts(String),
    #[error("No file is configured for permanent rooms (textroom.save)")]
    NoFile,
    #[error("The node of the cluster that has the room does not answer")]
    Unreachable,
}

impl Refusal {
    pub(crate) const fn value(name: &'static str, reason: &'static str) -> Self {
        Refusal::Value { name, reason }
    }

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 412,
            Refusal::Field(FieldError::Missing(_)) => 413,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value { .. }
            | Refusal::LongText { .. }
            | Refusal::LongMessage { .. }
            | Refusal::BothAddresses => 414,
            Refusal::UnknownRequest(_) | Refusal::Unsupported(_) => 415,
            Refusal::AlreadySetUp | Refusal::NotSetUp => 416,
            Refusal::NoSuchRoom(_) => 417,
            Refusal::RoomExists(_) => 418,
            Refusal::Wrong(_)
            | Refusal::NotAllowed
            | Refusal::Limit(_)
            | Refusal::Guessing(_)
            | Refusal::Untrusted(_)
            | Refusal::OutOfScope(_)
            | Refusal::Destination(_) => 419,
            Refusal::UsernameTaken => 420,
            Refusal::AlreadyInRoom(_) => 421,
            Refusal::NotInRoom(_) => 422,
            Refusal::NoSuchUser { .. } => 423,
            Refusal::TooFast
            | Refusal::LongAnswer { .. }
            | Refusal::Sdp(_)
            | Refusal::NoPosts(_)
            | Refusal::NoFile
            | Refusal::Unreachable => 499,
        }
    }

    /// Returns the answer for the client.
    pub(crate) fn to_object(&self) -> Object {
        self.to_form("error")
    }

    /// Returns the answer of the API to a request that could not be read.
    pub(crate) fn to_event(&self) -> Object {
        self.to_form("event")
    }

    fn to_form(&self, kind: &str) -> Object {
        Object::new()
            .with("textroom", kind)
            .with("error_code", self.code())
            .with("error", self.to_string())
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
            resources::Refusal::Wrong("token") | resources::Refusal::TokenNeeded => {
                Refusal::NotAllowed
            }
            resources::Refusal::Wrong(name) => Refusal::Wrong(name),
            resources::Refusal::NoSuch(id) => Refusal::NoSuchRoom(id),
            resources::Refusal::Exists(id) => Refusal::RoomExists(id),
            resources::Refusal::TooMany(limit) => Refusal::Limit(limit),
            resources::Refusal::NoFile => Refusal::NoFile,
        }
    }
}

impl From<JsepError> for Refusal {
    fn from(error: JsepError) -> Self {
        Refusal::Sdp(error.to_string())
    }
}
