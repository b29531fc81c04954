//! Requests of users, and their refusals.

use portunus_core::record::{Format, RecordError};
use portunus_core::{
    Asked, FieldError, Fields, JsepError, Message, Untrusted, recording, requests, with,
};
use serde::{Deserialize, Deserializer, de::Error};

requests! {
    /// A request of a user.
    pub enum Request {
        List = "list": Event, Nothing;
        Register = "register": Event, Nothing, Begins;
        Call = "call": Event, Nothing, Begins;
        Accept = "accept": Event, Nothing;
        Set = "set": Event, Depends(recording);
        Hangup = "hangup": Event, Nothing;
    }
}

/// The members of `set`; all are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Changes {
    pub(crate) audio: Option<bool>,
    pub(crate) video: Option<bool>,
    /// In bit/s; 0 means no limit.
    pub(crate) bitrate: Option<u64>,
    pub(crate) record: Option<bool>,
    /// The start of the files' names.
    pub(crate) filename: Option<String>,
    /// The client restarts ICE by its offer, so there is nothing to do here.
    #[serde(rename = "restart")]
    _restart: Option<bool>,
    #[serde(deserialize_with = "layer")]
    pub(crate) substream: Option<u8>,
    #[serde(deserialize_with = "layer")]
    pub(crate) temporal: Option<u8>,
    /// In µs; 0 means the default.
    pub(crate) fallback: Option<u64>,
    /// The format of the files.
    #[serde(deserialize_with = "with::record_format")]
    pub(crate) record_format: Option<Format>,
}

/// Reads a layer. A value of a wrong type is refused like a wrong number.
fn layer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    with::layer(from).map_err(|_| D::Error::custom("should be 0, 1 or 2"))
}

/// The refusal of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Unknown request ({0})")]
    Unknown(String),
    #[error("Register a username first")]
    NotRegistered,
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Cannot record: {0}")]
    Recording(#[from] RecordError),
    #[error("Username '{0}' already taken")]
    Taken(String),
    #[error("Already registered ({0})")]
    AlreadyRegistered(String),
    #[error("Username '{0}' doesn't exist")]
    NoSuchUser(String),
    #[error("You can't call yourself... use the EchoTest for that")]
    Oneself,
    #[error("Already in a call")]
    AlreadyInCall,
    #[error("No incoming call to accept")]
    NoCall,
    #[error("Missing SDP")]
    MissingSdp,
    #[error("Error parsing offer: {0}")]
    Offer(JsepError),
    #[error("Error parsing answer: {0}")]
    Answer(JsepError),
    #[error("Error parsing {0}: unexpected type")]
    WrongType(&'static str),
    /// At another node, for this reason.
    #[error("Error parsing offer: {0}")]
    FarOffer(String),
    #[error("Cannot register: {0}")]
    Unclaimed(String),
    #[error("The node of the user does not answer")]
    Unreachable,
}

impl Refusal {
    /// Returns the `error_code` on the wire.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Refusal::Unknown(_) => 472,
            Refusal::NotRegistered => 473,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Untrusted(_)
            | Refusal::Recording(_) => 474,
            Refusal::Field(FieldError::Missing(_)) => 475,
            Refusal::Taken(_) => 476,
            Refusal::AlreadyRegistered(_) => 477,
            Refusal::NoSuchUser(_) => 478,
            Refusal::Oneself => 479,
            Refusal::AlreadyInCall => 480,
            Refusal::NoCall => 481,
            Refusal::MissingSdp => 482,
            Refusal::Offer(_)
            | Refusal::Answer(_)
            | Refusal::WrongType(_)
            | Refusal::FarOffer(_) => 483,
            Refusal::Unclaimed(_) | Refusal::Unreachable => 499,
        }
    }
}

impl Request {
    /// Returns the request of `message` if its client may make it. Its other members are read
    /// later.
    pub(crate) fn read(message: &Message) -> Result<Self, Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::Unknown(name.to_owned()))?;
        Ok(asked.permit(fields, message.rights)?)
    }
}
