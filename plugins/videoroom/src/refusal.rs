//! Why a request is refused: codes and texts.

use std::net::IpAddr;

use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Object, OutOfScope, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, TooMany};
use portunus_room as room;
use serde_json::Value;

/// The reason for a refusal. Its text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request ({0})")]
    UnknownRequest(String),
    /// The request does not fit the state or the role of the client.
    #[error("{0}")]
    Invalid(&'static str),
    #[error("Join a room first")]
    JoinFirst,
    #[error("This handle has joined a room already")]
    AlreadyJoined,
    #[error("No such room ({0})")]
    NoSuchRoom(Id),
    #[error("{}", text(.0))]
    Room(#[from] room::Refusal),
    #[error("Room {0} already exists")]
    RoomExists(Id),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but not a value that can be.
    #[error("Invalid value ({name}: {reason})")]
    Value { name: String, reason: &'static str },
    /// A member is missing that only the room's secret replaces.
    #[error("Unauthorized ({0})")]
    NotShown(&'static str),
    /// A wrong secret, by the member that shows it.
    #[error("Unauthorized (wrong {0})")]
    Wrong(&'static str),
    /// Clients may not make more.
    #[error("Unauthorized ({0})")]
    Limit(TooMany),
    /// It may have been right, and was not looked at.
    #[error("Unauthorized ({0})")]
    Guessing(#[from] Guessing),
    /// A token that was signed for something else, or has expired. It is not a guess.
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
    /// The codec of a remote stream is missing or unknown.
    #[error("Missing mandatory element (codec: {0})")]
    Codec(&'static str),
    #[error("{0}")]
    Unknown(&'static str),
    /// The cluster cannot say where the room is at home.
    #[error("{0}")]
    Cluster(String),
    /// The node of the room's home has not answered.
    #[error("The node {0} of this room does not answer")]
    Silent(String),
}

impl Refusal {
    pub(crate) fn value(name: &str, reason: &'static str) -> Self {
        Refusal::Value {
            name: name.to_owned(),
            reason,
        }
    }

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 422,
            Refusal::UnknownRequest(_) | Refusal::Invalid(_) => 423,
            Refusal::JoinFirst => 424,
            Refusal::AlreadyJoined => 425,
            Refusal::NoSuchRoom(_) => 426,
            Refusal::RoomExists(_) => 427,
            Refusal::Room(refusal) => code_and_member(refusal).0,
            Refusal::Field(FieldError::Missing(_)) | Refusal::Codec(_) => 429,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value { .. } => 430,
            Refusal::NotShown(_)
            | Refusal::Wrong(_)
            | Refusal::Limit(_)
            | Refusal::Guessing(_)
            | Refusal::NotSigned
            | Refusal::Untrusted(_)
            | Refusal::OutOfScope(_)
            | Refusal::Destination(_) => 433,
            Refusal::AlreadyPublished => 434,
            Refusal::Unknown(_) | Refusal::Cluster(_) | Refusal::Silent(_) => 499,
        }
    }

    /// Returns the answer for the client.
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
        // The right secret replaces all others, so a shown one was wrong.
        let or_secret = member == "secret";
        match self {
            Refusal::Wrong(name) => *name == member || or_secret,
            Refusal::Field(FieldError::Missing(name)) => name == "pin" && or_secret,
            Refusal::NotShown(_)
            | Refusal::NotSigned
            | Refusal::Room(room::Refusal::OwnerNeeded) => or_secret,
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

/// Returns the `error_code` of a refusal of the room, and the member that it concerns.
const fn code_and_member(refusal: &room::Refusal) -> (u16, Option<&'static str>) {
    match refusal {
        room::Refusal::LinesOfClient => (423, None),
        room::Refusal::NotInRoom => (426, None),
        room::Refusal::NoSuchFeed(_)
        | room::Refusal::NoSuchUser { .. }
        | room::Refusal::NoSuchStream(_) => (428, None),
        room::Refusal::ForeignCodec(Kind::Audio) => (430, Some("audiocodec")),
        room::Refusal::ForeignCodec(_) => (430, Some("videocodec")),
        room::Refusal::TooFewSeats => (430, Some("last_n")),
        room::Refusal::TooManyForwarders => (430, Some("streams")),
        room::Refusal::NotRemote => (430, Some("id")),
        room::Refusal::NotOurs => (430, Some("publisher_id")),
        room::Refusal::TooManyRemotes => (430, Some("remote_id")),
        room::Refusal::Recording(_) => (430, None),
        room::Refusal::WrongSdpType => (431, None),
        room::Refusal::PublishersFull(_) => (432, None),
        room::Refusal::E2eeNeeded | room::Refusal::OwnerNeeded | room::Refusal::OwnerKicked => {
            (433, None)
        }
        room::Refusal::NotPublished => (435, None),
        room::Refusal::IdExists(_) => (436, None),
        room::Refusal::NothingToOffer
        | room::Refusal::SubscribeFirst
        | room::Refusal::NothingToReceive
        | room::Refusal::Negotiation(_) => (437, None),
        room::Refusal::MixedFeeds | room::Refusal::Encrypted => (438, None),
        room::Refusal::TooManyLines
        | room::Refusal::TooManyJoins
        | room::Refusal::Closing
        | room::Refusal::Socket(_) => (499, None),
    }
}

/// Returns the text of a refusal of the room.
fn text(refusal: &room::Refusal) -> String {
    match code_and_member(refusal) {
        (_, Some(member)) => format!("Invalid value ({member}: {refusal})"),
        (433, None) => format!("Unauthorized ({refusal})"),
        (_, None) => refusal.to_string(),
    }
}
