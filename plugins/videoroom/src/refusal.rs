//! Why a request is refused: codes and texts.

use std::borrow::Cow;
use std::net::IpAddr;

use portunus_core::sdp::Kind;
use portunus_core::{FieldError, Object, OutOfScope, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, TooMany};
use portunus_room as room;
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
    #[error(transparent)]
    Room(room::Refusal),
    #[error("Room {0} already exists")]
    RoomExists(Id),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but not a value that can be.
    #[error("Invalid value ({name}: {reason})")]
    Value {
        name: String,
        reason: Cow<'static, str>,
    },
    #[error("Unauthorized ({0})")]
    Unauthorized(room::Refusal),
    /// Something is asked for that is not shown, unless the room's secret is: what.
    #[error("Unauthorized ({0})")]
    NotShown(Cow<'static, str>),
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
    /// What a remote stream has to say is missing or not known.
    #[error("Missing mandatory element (codec: {0})")]
    Codec(&'static str),
    #[error("{0}")]
    Unknown(&'static str),
}

impl Refusal {
    pub(crate) fn value(name: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Refusal::Value {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }

    /// The `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 422,
            Refusal::UnknownRequest(_) | Refusal::Invalid(_) => 423,
            Refusal::JoinFirst => 424,
            Refusal::AlreadyJoined => 425,
            Refusal::NoSuchRoom(_) => 426,
            Refusal::RoomExists(_) => 427,
            Refusal::Room(refusal) => code_of(refusal),
            Refusal::Field(FieldError::Missing(_)) | Refusal::Codec(_) => 429,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value { .. } => 430,
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
            Refusal::Unknown(_) => 499,
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
            resources::Refusal::TokenNeeded => Refusal::NotShown("a token is needed".into()),
            resources::Refusal::NoSuch(id) => Refusal::NoSuchRoom(id),
            resources::Refusal::Exists(id) => Refusal::RoomExists(id),
            resources::Refusal::TooMany(limit) => Refusal::Limit(limit),
            resources::Refusal::NoFile => {
                Refusal::Unknown("No file is configured for permanent rooms")
            }
        }
    }
}

/// What a room refuses, as this plugin's clients know it.
impl From<room::Refusal> for Refusal {
    fn from(refusal: room::Refusal) -> Self {
        let member = match &refusal {
            room::Refusal::ForeignCodec(Kind::Audio) => "audiocodec",
            room::Refusal::ForeignCodec(_) => "videocodec",
            room::Refusal::TooFewSeats => "last_n",
            room::Refusal::TooManyForwarders => "streams",
            room::Refusal::NotRemote => "id",
            room::Refusal::NotOurs => "publisher_id",
            room::Refusal::TooManyRemotes => "remote_id",
            room::Refusal::E2eeNeeded | room::Refusal::OwnerKicked => {
                return Refusal::Unauthorized(refusal);
            }
            room::Refusal::OwnerNeeded => return Refusal::NotShown(refusal.to_string().into()),
            _ => return Refusal::Room(refusal),
        };
        Refusal::value(member, refusal.to_string())
    }
}

/// The `error_code` of what a room refuses.
const fn code_of(refusal: &room::Refusal) -> u16 {
    match refusal {
        room::Refusal::LinesOfClient => 423,
        room::Refusal::NotInRoom => 426,
        room::Refusal::NoSuchFeed(_)
        | room::Refusal::NoSuchUser { .. }
        | room::Refusal::NoSuchStream(_) => 428,
        room::Refusal::ForeignCodec(_)
        | room::Refusal::TooFewSeats
        | room::Refusal::TooManyForwarders
        | room::Refusal::NotRemote
        | room::Refusal::NotOurs
        | room::Refusal::TooManyRemotes
        | room::Refusal::Recording(_) => 430,
        room::Refusal::WrongSdpType => 431,
        room::Refusal::PublishersFull(_) => 432,
        room::Refusal::E2eeNeeded | room::Refusal::OwnerNeeded | room::Refusal::OwnerKicked => 433,
        room::Refusal::NotPublished => 435,
        room::Refusal::IdExists(_) => 436,
        room::Refusal::NothingToOffer
        | room::Refusal::SubscribeFirst
        | room::Refusal::NothingToReceive
        | room::Refusal::Negotiation(_) => 437,
        room::Refusal::MixedFeeds | room::Refusal::Encrypted => 438,
        room::Refusal::TooManyLines | room::Refusal::Closing | room::Refusal::Socket(_) => 499,
    }
}
