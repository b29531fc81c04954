//! The errors of the Janus API: their codes and texts.

use serde_json::Value;

use crate::{FieldError, HandleId, Object, OtherNode, OverBudget, SessionId};

/// The reason why a request was refused. The text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The API secret or token is wrong or missing.
    #[error("Unauthorized request (wrong or missing secret/token)")]
    Unauthorized,
    /// The Admin API has no secret, and the requester is not trusted.
    #[error(
        "Unauthorized request (without admin.secret only programs on the server's own machine are let in)"
    )]
    NoAdminSecret,
    /// The token does not open this plugin.
    #[error("Provided token can't access plugin '{0}'")]
    UnauthorizedPlugin(String),
    /// The transport refuses the request.
    #[error("{0}")]
    Transport(String),
    /// The client makes more requests than it may.
    #[error(
        "Too many requests from your address (at most {0} per second): wait, or show the API secret or a token with the right to administer"
    )]
    TooManyRequests(u32),
    /// A client at this address guesses the secret of the Admin API.
    #[error("Too many wrong secrets from your address: wait for some seconds")]
    TooManyGuesses,
    /// Clients hold all memory of the budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// A text is too long. The fields are its member and the limit in bytes.
    #[error("Invalid element ({0} should have {1} bytes at most)")]
    TooLong(String, usize),
    /// The verb does not exist.
    #[error("Unknown request '{0}'")]
    UnknownRequest(String),
    /// The message is not JSON, or contradicts itself.
    #[error("{0}")]
    InvalidJson(String),
    /// A member is not an object.
    #[error("{0}")]
    InvalidJsonObject(&'static str),
    /// A member is missing. The text names it.
    #[error("{0}")]
    MissingElement(String),
    /// The verb does not exist at this level (server, session, handle).
    #[error("Unhandled request '{0}' at this path")]
    InvalidPath(String),
    /// The ids in the path and in the message contradict each other.
    #[error("{0}")]
    PathConflict(&'static str),
    /// The session id is missing or malformed.
    #[error("Session not found")]
    NoSession,
    /// There is no session with this id.
    #[error("No such session {0}")]
    SessionNotFound(SessionId),
    /// The handle id is malformed.
    #[error("Handle not found")]
    NoHandle,
    /// There is no handle with this id.
    #[error("No such handle {0} in session {1}")]
    HandleNotFound(HandleId, SessionId),
    /// There is no such plugin.
    #[error("No such plugin '{0}'")]
    PluginNotFound(String),
    /// There is no such plugin, transport or other module. The field names its kind.
    #[error("Invalid {0}")]
    ModuleNotFound(&'static str),
    /// The session has too many handles.
    #[error("Couldn't attach to plugin: {0}")]
    PluginAttach(&'static str),
    /// The plugin refuses the message, or is gone.
    #[error("{0}")]
    PluginMessage(String),
    /// The type of a jsep is neither offer nor answer.
    #[error("JSEP error: unknown message type '{0}'")]
    JsepUnknownType(String),
    /// The SDP of a jsep is refused.
    #[error("{0}")]
    InvalidSdp(String),
    /// A member has the wrong type. The text names it.
    #[error("{0}")]
    InvalidElement(String),
    /// The session id that the client asked for is in use.
    #[error("Session ID already in use")]
    SessionConflict,
    /// There is no such stored token.
    #[error("Token {0} not found")]
    TokenNotFound(String),
    /// An answer arrived without an offer.
    #[error("Unexpected ANSWER (did we offer?)")]
    UnexpectedAnswer,
    /// The PeerConnection is in the wrong state for this.
    #[error("{0}")]
    WebRtcState(&'static str),
    /// The server accepts no new sessions, or has the most that it may have.
    #[error("Currently not accepting new sessions")]
    NotAcceptingSessions,
    /// The server is being drained. The field is the node of the cluster to go to.
    #[error(
        "The server is being drained and takes nobody new: use another one, or try again later"
    )]
    Draining(Option<Box<OtherNode>>),
    /// Any other error.
    #[error("{0}")]
    Unknown(String),
}

impl ApiError {
    /// Returns the code on the wire.
    pub const fn code(&self) -> u16 {
        match self {
            ApiError::Unauthorized | ApiError::NoAdminSecret => 403,
            ApiError::UnauthorizedPlugin(_) => 405,
            ApiError::Transport(_)
            | ApiError::TooManyRequests(_)
            | ApiError::TooManyGuesses
            | ApiError::OverBudget(_) => 450,
            ApiError::UnknownRequest(_) => 453,
            ApiError::InvalidJson(_) => 454,
            ApiError::InvalidJsonObject(_) => 455,
            ApiError::MissingElement(_) => 456,
            ApiError::InvalidPath(_) | ApiError::PathConflict(_) => 457,
            ApiError::NoSession | ApiError::SessionNotFound(_) => 458,
            ApiError::NoHandle | ApiError::HandleNotFound(..) => 459,
            ApiError::PluginNotFound(_) | ApiError::ModuleNotFound(_) => 460,
            ApiError::PluginAttach(_) => 461,
            ApiError::PluginMessage(_) => 462,
            ApiError::JsepUnknownType(_) => 464,
            ApiError::InvalidSdp(_) => 465,
            ApiError::InvalidElement(_) | ApiError::TooLong(..) => 467,
            ApiError::SessionConflict => 468,
            ApiError::UnexpectedAnswer => 469,
            ApiError::TokenNotFound(_) => 470,
            ApiError::WebRtcState(_) => 471,
            ApiError::NotAcceptingSessions | ApiError::Draining(_) => 472,
            ApiError::Unknown(_) => 490,
        }
    }

    /// Returns the whole reply, with `session` and `transaction` if they are known.
    pub fn reply(&self, session: Option<Value>, transaction: Option<&str>) -> Value {
        let error = Object::new()
            .with("code", self.code())
            .with("reason", self.to_string());
        let error = match self {
            ApiError::Draining(Some(node)) => error.with_all(node.to_object()),
            _ => error,
        };
        Object::new()
            .with("janus", "error")
            .with_some("session_id", session)
            .with_some("transaction", transaction)
            .with("error", error)
            .into()
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        match &error {
            FieldError::Missing(_) => ApiError::MissingElement(error.to_string()),
            FieldError::Type { .. } | FieldError::Value { .. } => {
                ApiError::InvalidElement(error.to_string())
            }
        }
    }
}
