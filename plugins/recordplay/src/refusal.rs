//! The refusals of requests: codes and texts.

use portunus_core::record::RecordError;
use portunus_core::{FieldError, JsepError, Object, OutOfScope, Untrusted};
use portunus_files::FileError;
use serde_json::Value;

use crate::cluster::FarPlace;
use crate::opening::Busy;

/// The reason of a refusal. Its text is for the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request '{0}'")]
    Unknown(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("Invalid element ({0})")]
    Invalid(String),
    #[error("A play request can't contain an SDP")]
    PlayWithJsep,
    #[error("Missing SDP offer")]
    MissingOffer,
    #[error("Missing SDP answer")]
    MissingAnswer,
    #[error("No such recording")]
    NoSuchRecording,
    #[error("This recording is at the node {}, which plays it", .0.node)]
    Elsewhere(FarPlace),
    #[error("The recording cannot be played: {0}")]
    Unplayable(#[from] FileError),
    #[error("Not a recording session, can't update")]
    NotRecording,
    #[error("Not a playout session, can't restart")]
    NotPlaying,
    #[error("Not a playout session, can't start")]
    NothingToStart,
    #[error("Nothing is played, so there is nothing to seek in")]
    NothingToSeek,
    #[error("The recording is not played: {0}")]
    Busy(#[from] Busy),
    #[error("Something else was asked for meanwhile")]
    Superseded,
    #[error("Already recording")]
    AlreadyRecording,
    #[error("Error parsing offer: {0}")]
    Offer(String),
    #[error("Error parsing answer: {0}")]
    Answer(&'static str),
    #[error("Recording {0} already exists")]
    Exists(u64),
    #[error("Unauthorized (wrong or missing admin_key)")]
    WrongKey,
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Unauthorized ({0})")]
    OutOfScope(#[from] OutOfScope),
    #[error("The recording cannot be written: {0}")]
    Record(String),
    #[error("{0}")]
    Negotiation(#[from] JsepError),
}

impl Refusal {
    /// Returns the refusal of a member's value.
    pub(crate) fn element(name: &str, wanted: impl std::fmt::Display) -> Self {
        Refusal::Invalid(format!("{name} should be {wanted}"))
    }

    /// The file cannot be made or written. The reason is confidential.
    pub(crate) fn record(error: &RecordError, may_know_reason: bool) -> Self {
        Refusal::Record(match may_know_reason {
            true => error.to_string(),
            false => "the server has no room for it now".to_owned(),
        })
    }

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 412,
            Refusal::Unknown(_) => 413,
            Refusal::Field(FieldError::Missing(_))
            | Refusal::MissingOffer
            | Refusal::MissingAnswer => 415,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Invalid(_)
            | Refusal::PlayWithJsep => 414,
            Refusal::NoSuchRecording | Refusal::Elsewhere(_) => 416,
            Refusal::Unplayable(_) => 417,
            Refusal::NotRecording
            | Refusal::NotPlaying
            | Refusal::NothingToStart
            | Refusal::NothingToSeek
            | Refusal::Superseded
            | Refusal::AlreadyRecording => 418,
            Refusal::Offer(_) | Refusal::Answer(_) => 419,
            Refusal::Exists(_) => 420,
            Refusal::WrongKey | Refusal::Untrusted(_) | Refusal::OutOfScope(_) => 440,
            Refusal::Record(_) | Refusal::Busy(_) | Refusal::Negotiation(_) => 499,
        }
    }

    /// Returns the answer to the client.
    pub(crate) fn to_json(&self) -> Value {
        let place = match self {
            Refusal::Elsewhere(place) => Some(place),
            _ => None,
        };
        Object::new()
            .with("recordplay", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .with_some("node", place.map(|place| place.node.as_str()))
            .with_some("node_url", place.and_then(|place| place.url.as_deref()))
            .into()
    }
}
