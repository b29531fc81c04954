//! Why a request is refused: codes and texts.

use std::net::IpAddr;

use portunus_core::{FieldError, JsepError, Object, OutOfScope, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, TooMany};
use serde_json::Value;

/// Why a request is refused; the text is what the client reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request ({0})")]
    UnknownRequest(String),
    /// The request makes no sense for who sends it, or there is no such thing yet.
    #[error("{0}")]
    Invalid(&'static str),
    #[error("Join a room first")]
    JoinFirst,
    #[error("This handle has joined a room already")]
    AlreadyJoined,
    #[error("No such room ({0})")]
    NoSuchRoom(Id),
    #[error("No longer in the room")]
    NotInRoom,
    #[error("Room {0} already exists")]
    RoomExists(Id),
    #[error("No such feed ({0})")]
    NoSuchFeed(String),
    #[error("No such user {id} in room {room}")]
    NoSuchUser { id: Id, room: Id },
    #[error("No such stream {0}")]
    NoSuchStream(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but not a value that can be.
    #[error("Invalid value ({name}: {reason})")]
    Value { name: String, reason: &'static str },
    #[error("Cannot record: {0}")]
    Recording(String),
    #[error("Unexpected {0} of this side's description")]
    WrongSdpType(&'static str),
    #[error("The maximum of {0} publishers is reached")]
    PublishersFull(u64),
    #[error("Unauthorized ({0})")]
    Unauthorized(&'static str),
    /// Something is asked for that is not shown, unless the room's secret is: what.
    #[error("Unauthorized ({0})")]
    NotShown(&'static str),
    /// A secret that is not the one that is asked for: the member that shows it.
    #[error("Unauthorized (wrong {0})")]
    Wrong(&'static str),
    /// Clients may not make more.
    #[error("Unauthorized ({0})")]
    Limit(TooMany),
    /// It may have been right, and was not looked at.
    #[error("Unauthorized ({0})")]
    Guessing(#[from] Guessing),
    /// A token that was signed for something else, or is no more valid. Nobody guesses those.
    #[error("Unauthorized (wrong token)")]
    NotSigned,
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Unauthorized ({0})")]
    OutOfScope(#[from] OutOfScope),
    #[error("Unauthorized (nothing may be sent to {0}, see server.outgoing_networks)")]
    Destination(IpAddr),
    #[error("Already published")]
    AlreadyPublished,
    #[error("Not published")]
    NotPublished,
    #[error("The id {0} is taken")]
    IdExists(Id),
    /// What a remote stream has to say is missing or not known.
    #[error("Missing mandatory element (codec: {0})")]
    Codec(&'static str),
    #[error("{0}")]
    Socket(String),
    #[error("{0}")]
    Sdp(String),
    #[error("Feeds with and without end-to-end encryption cannot be mixed")]
    MixedFeeds,
    #[error(
        "This is encrypted end to end, and whoever watches it has to say that it can decrypt that (e2ee)"
    )]
    Encrypted,
    #[error("{0}")]
    Unknown(&'static str),
}

impl Refusal {
    pub(crate) fn value(name: &str, reason: &'static str) -> Self {
        Refusal::Value {
            name: name.to_owned(),
            reason,
        }
    }

    /// The `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 422,
            Refusal::UnknownRequest(_) | Refusal::Invalid(_) => 423,
            Refusal::JoinFirst => 424,
            Refusal::AlreadyJoined => 425,
            Refusal::NoSuchRoom(_) | Refusal::NotInRoom => 426,
            Refusal::RoomExists(_) => 427,
            Refusal::NoSuchFeed(_) | Refusal::NoSuchUser { .. } | Refusal::NoSuchStream(_) => 428,
            Refusal::Field(FieldError::Missing(_)) | Refusal::Codec(_) => 429,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value { .. }
            | Refusal::Recording(_) => 430,
            Refusal::WrongSdpType(_) => 431,
            Refusal::PublishersFull(_) => 432,
            Refusal::Unauthorized(_)
            | Refusal::NotShown(_)
            | Refusal::Wrong(_)
            | Refusal::Limit(_)
            | Refusal::Guessing(_)
            | Refusal::NotSigned
            | Refusal::Untrusted(_)
            | Refusal::OutOfScope(_)
            | Refusal::Destination(_) => 433,
            Refusal::AlreadyPublished => 434,
            Refusal::NotPublished => 435,
            Refusal::IdExists(_) => 436,
            Refusal::Sdp(_) => 437,
            Refusal::MixedFeeds | Refusal::Encrypted => 438,
            Refusal::Unknown(_) | Refusal::Socket(_) => 499,
        }
    }

    /// What the client gets.
    pub(crate) fn to_json(&self) -> Value {
        Object::new()
            .with("videoroom", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .into()
    }
}

impl Refused for Refusal {
    fn blames(&self, member: &str) -> bool {
        // With the right secret nothing else is asked for: one that is shown was wrong.
        let or_secret = member == "secret";
        match self {
            Refusal::Wrong(name) => *name == member || or_secret,
            Refusal::Field(FieldError::Missing(name)) => name == "pin" && or_secret,
            Refusal::NotShown(_) | Refusal::NotSigned => or_secret,
            _ => false,
        }
    }
}

/// What all plugins refuse alike, as this one's clients know it.
impl From<resources::Refusal> for Refusal {
    fn from(refusal: resources::Refusal) -> Self {
        match refusal {
            resources::Refusal::Field(error) => Refusal::Field(error),
            resources::Refusal::Value(name, reason) => Refusal::value(name, reason),
            resources::Refusal::Wrong(name) => Refusal::Wrong(name),
            resources::Refusal::TokenNeeded => Refusal::NotShown("a token is needed"),
            resources::Refusal::NoSuch(id) => Refusal::NoSuchRoom(id),
            resources::Refusal::Exists(id) => Refusal::RoomExists(id),
            resources::Refusal::TooMany(limit) => Refusal::Limit(limit),
            resources::Refusal::NoFile => {
                Refusal::Unknown("No file is configured for permanent rooms")
            }
        }
    }
}

impl From<JsepError> for Refusal {
    fn from(error: JsepError) -> Self {
        match error {
            JsepError::Closing => Refusal::Unknown("The former PeerConnection is being closed"),
            error => Refusal::Sdp(error.to_string()),
        }
    }
}
