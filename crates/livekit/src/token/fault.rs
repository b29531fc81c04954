//! Why a token or a request is refused, with the texts that LiveKit answers.

use portunus_config::Secret;

/// The reason why a token is not accepted. The status is always 401.
///
/// Its text is for logs: it does not contain the token, which may become valid later. The text for
/// the client is [`TokenFault::answer`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// The header `Authorization` has no bearer token.
    #[error("invalid authorization header. Must start with Bearer ")]
    NoBearer,
    /// It is not a JSON Web Token.
    #[error("invalid authorization token")]
    Malformed,
    /// There is no such API key.
    #[error("invalid API key: {0}")]
    UnknownKey(String),
    /// The token does not hold.
    #[error("invalid token: {reason}")]
    Invalid {
        /// The whole token.
        token: Secret,
        /// The reason.
        reason: InvalidToken,
    },
}

impl TokenFault {
    /// Returns the text that LiveKit answers. It may contain the whole token: do not log it.
    pub fn answer(&self) -> String {
        match self {
            TokenFault::Invalid { token, reason } => {
                format!("invalid token: {}, error: {reason}", &**token)
            }
            _ => self.to_string(),
        }
    }
}

/// The reason why a token that can be read does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// Its header names another algorithm than HS256.
    #[error("token signature is invalid: signing method {0} is invalid")]
    Algorithm(String),
    /// The signature is not that of the API key.
    #[error("token signature is invalid: signature is invalid")]
    Signature,
    /// It has expired.
    #[error("token has invalid claims: token is expired")]
    Expired,
    /// It is not valid yet.
    #[error("token has invalid claims: token is not valid yet")]
    NotYet,
    /// It has no expiry.
    #[error("token has invalid claims: token is missing required claim: exp claim is required")]
    NoExpiry,
    /// A claim has the wrong type.
    #[error("token is malformed: could not JSON decode claim: {0}")]
    Claims(String),
}

/// The reason why a valid token does not let somebody join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinFault {
    /// There is no token, or it has no rights of rooms.
    #[error("no permissions to access the room")]
    NoGrant,
    /// It does not grant joining.
    #[error("permissions denied")]
    Denied,
    /// It names no room.
    #[error("no room name")]
    NoRoom,
    /// It names no identity.
    #[error("identity cannot be empty")]
    NoIdentity,
    /// The identity is too long.
    #[error("participant identity length exceeds limits: max length 256")]
    LongIdentity,
    /// The name of the room is too long.
    #[error("room name length exceeds limits: max length 256")]
    LongRoom,
}

impl JoinFault {
    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            JoinFault::NoGrant | JoinFault::Denied => 401,
            _ => 400,
        }
    }
}
