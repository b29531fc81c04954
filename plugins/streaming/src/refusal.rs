//! Why a request is refused: codes and texts.

use portunus_core::{FieldError, JsepError, OutOfScope, Right, Rights, Untrusted};
use portunus_resources::{self as resources, Guessing, Id, Refused, SavedError};
use serde_json::{Value, json};

/// The reason for a refusal. Its text is for the client.
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
    NoSuchMountpoint(Id),
    /// It is one of another node of the cluster.
    #[error("The mountpoint is one of the node {0}, which has to be asked")]
    Elsewhere(String),
    #[error("Not watching any mountpoint")]
    NotWatching,
    #[error("Cannot create the mountpoint: {0}")]
    CannotCreate(String),
    /// The ports of a stream cannot be had.
    #[error("Cannot create the mountpoint: stream {mid}: {error}")]
    Ports { mid: String, error: String },
    #[error("Unauthorized (wrong {0})")]
    Unauthorized(&'static str),
    /// It may have been right, and was not looked at.
    #[error("Unauthorized ({0})")]
    Guessing(#[from] Guessing),
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    #[error("Unauthorized ({0})")]
    OutOfScope(#[from] OutOfScope),
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

    /// Returns the `error_code` on the wire.
    pub(crate) const fn code(&self) -> u16 {
        match self {
            Refusal::NotAnObject => 451,
            Refusal::UnknownRequest(_) | Refusal::Invalid(_) => 452,
            Refusal::Field(FieldError::Missing(_)) => 453,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Element { .. } => 454,
            Refusal::NoSuchMountpoint(_) | Refusal::NotWatching => 455,
            Refusal::CannotCreate(_) | Refusal::Ports { .. } => 456,
            Refusal::Unauthorized(_)
            | Refusal::Guessing(_)
            | Refusal::Untrusted(_)
            | Refusal::OutOfScope(_) => 457,
            Refusal::CannotSwitch(_) => 458,
            Refusal::CannotRecord(_) => 459,
            Refusal::State(_) | Refusal::Elsewhere(_) => 460,
            Refusal::Sdp(_) => 461,
            Refusal::Unknown(_) => 470,
        }
    }

    /// Hides which ports are in use from a client without the right to create: it may not inspect
    /// the server's network.
    pub(crate) fn shown_to(self, rights: Rights) -> Self {
        match self {
            Refusal::Ports { mid, error } if !rights.may(Right::Create) => {
                tracing::debug!(mid, error, "a mountpoint's ports cannot be had");
                let error = "its ports cannot be had".to_owned();
                Refusal::Ports { mid, error }
            }
            refusal => refusal,
        }
    }

    /// Returns the event with the refusal.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "streaming": "event", "error_code": self.code(), "error": self.to_string() })
    }
}

impl Refused for Refusal {
    fn blames(&self, member: &str) -> bool {
        match self {
            // A publisher shows a token or the secret.
            Refusal::Unauthorized("token") => member != "pin",
            Refusal::Unauthorized(name) => *name == member,
            _ => false,
        }
    }
}

/// Translates the refusals that all plugins share.
impl From<resources::Refusal> for Refusal {
    fn from(refusal: resources::Refusal) -> Self {
        match refusal {
            resources::Refusal::Field(error) => Refusal::Field(error),
            resources::Refusal::Value(name, reason) => Refusal::element(name, reason),
            resources::Refusal::Wrong(name) => Refusal::Unauthorized(name),
            resources::Refusal::TokenNeeded => Refusal::Unauthorized("token"),
            resources::Refusal::NoSuch(id) => Refusal::NoSuchMountpoint(id),
            resources::Refusal::Exists(id) => {
                Refusal::CannotCreate(format!("there is a mountpoint {id} already"))
            }
            resources::Refusal::TooMany(limit) => Refusal::CannotCreate(limit.to_string()),
            resources::Refusal::NoFile => Refusal::Unknown(
                "Nothing can be permanent: streaming.save is not configured".to_owned(),
            ),
        }
    }
}

impl From<SavedError> for Refusal {
    fn from(error: SavedError) -> Self {
        Refusal::Unknown(error.to_string())
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
