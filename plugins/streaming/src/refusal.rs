//! Why a request is refused: codes and texts.

use portunus_core::{FieldError, JsepError};
use serde_json::{Value, json};

use crate::id::MountpointId;

/// Why a request is refused; the text is what the client reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The request is not a JSON object")]
    NotAnObject,
    #[error("Unknown request ({0})")]
    UnknownRequest(String),
    /// The request makes no sense for this mountpoint or with these members.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type, but not a value that can be.
    #[error("Invalid element ({name}: {reason})")]
    Element { name: String, reason: String },
    #[error("No such mountpoint ({0})")]
    NoSuchMountpoint(MountpointId),
    #[error("Not watching any mountpoint")]
    NotWatching,
    #[error("Cannot create the mountpoint: {0}")]
    CannotCreate(String),
    #[error("Unauthorized (wrong {0})")]
    Unauthorized(&'static str),
    #[error("Cannot switch: {0}")]
    CannotSwitch(String),
    #[error("Cannot record: {0}")]
    CannotRecord(String),
    #[error("{0}")]
    State(&'static str),
    #[error("{0}")]
    Sdp(String),
    #[error("{0}")]
    Unknown(String),
}

impl Refusal {
    pub(crate) fn element(name: &str, reason: impl Into<String>) -> Self {
        Refusal::Element {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }

    /// The `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 451,
            Refusal::UnknownRequest(_) | Refusal::Invalid(_) => 452,
            Refusal::Field(FieldError::Missing(_)) => 453,
            Refusal::Field(FieldError::Type { .. } | FieldError::Layer(_))
            | Refusal::Element { .. } => 454,
            Refusal::NoSuchMountpoint(_) | Refusal::NotWatching => 455,
            Refusal::CannotCreate(_) => 456,
            Refusal::Unauthorized(_) => 457,
            Refusal::CannotSwitch(_) => 458,
            Refusal::CannotRecord(_) => 459,
            Refusal::State(_) => 460,
            Refusal::Sdp(_) => 461,
            Refusal::Unknown(_) => 470,
        }
    }

    /// The event that tells it.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "streaming": "event", "error_code": self.code(), "error": self.to_string() })
    }
}

impl From<JsepError> for Refusal {
    fn from(error: JsepError) -> Self {
        match error {
            JsepError::Closing => Refusal::State("The former PeerConnection is being closed"),
            error => Refusal::Sdp(error.to_string()),
        }
    }
}
