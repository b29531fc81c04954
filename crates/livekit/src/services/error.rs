//! Errors of the services, as Twirp has them.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The operation was given up.
    Aborted,
    /// There is one already.
    AlreadyExists,
    /// The path or the content type has no handler.
    BadRoute,
    /// The operation has ended without a result.
    Canceled,
    /// The caller's time is over.
    DeadlineExceeded,
    /// The state does not allow it.
    FailedPrecondition,
    /// The server has failed.
    Internal,
    /// A member of the request is wrong.
    InvalidArgument,
    /// The body cannot be read.
    Malformed,
    /// There is no such room, participant or track.
    NotFound,
    /// The operation is forbidden.
    PermissionDenied,
    /// A limit is reached.
    ResourceExhausted,
    /// The token lacks a grant.
    Unauthenticated,
    /// The server cannot serve now.
    Unavailable,
    /// The server does not have it.
    Unimplemented,
    /// Another error.
    Unknown,
}

impl Code {
    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Aborted => "aborted",
            Code::AlreadyExists => "already_exists",
            Code::BadRoute => "bad_route",
            Code::Canceled => "canceled",
            Code::DeadlineExceeded => "deadline_exceeded",
            Code::FailedPrecondition => "failed_precondition",
            Code::Internal => "internal",
            Code::InvalidArgument => "invalid_argument",
            Code::Malformed => "malformed",
            Code::NotFound => "not_found",
            Code::PermissionDenied => "permission_denied",
            Code::ResourceExhausted => "resource_exhausted",
            Code::Unauthenticated => "unauthenticated",
            Code::Unavailable => "unavailable",
            Code::Unimplemented => "unimplemented",
            Code::Unknown => "unknown",
        }
    }

    /// All kinds.
    const ALL: [Self; 16] = [
        Code::Aborted,
        Code::AlreadyExists,
        Code::BadRoute,
        Code::Canceled,
        Code::DeadlineExceeded,
        Code::FailedPrecondition,
        Code::Internal,
        Code::InvalidArgument,
        Code::Malformed,
        Code::NotFound,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::Unauthenticated,
        Code::Unavailable,
        Code::Unimplemented,
        Code::Unknown,
    ];

    /// Returns the kind with this name on the wire.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Code::ALL.into_iter().find(|code| code.name() == name)
    }

    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Code::InvalidArgument | Code::Malformed => 400,
            Code::Unauthenticated => 401,
            Code::PermissionDenied => 403,
            Code::BadRoute | Code::NotFound => 404,
            Code::Canceled | Code::DeadlineExceeded => 408,
            Code::Aborted | Code::AlreadyExists => 409,
            Code::FailedPrecondition => 412,
            Code::ResourceExhausted => 429,
            Code::Internal | Code::Unknown => 500,
            Code::Unimplemented => 501,
            Code::Unavailable => 503,
        }
    }
}

/// An error of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    code: Code,
    message: Cow<'static, str>,
    /// A further fact, by name.
    meta: Option<(&'static str, String)>,
}

impl ServiceError {
    /// Returns an error with this text.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        ServiceError {
            code,
            message: message.into(),
            meta: None,
        }
    }

    /// There is no such room.
    pub fn no_room() -> Self {
        ServiceError::new(Code::NotFound, "requested room does not exist")
    }

    /// There is no such participant in the room.
    pub fn no_participant() -> Self {
        ServiceError::new(Code::NotFound, "participant does not exist")
    }

    /// The participant publishes no such track.
    pub fn no_track() -> Self {
        ServiceError::new(Code::NotFound, "track is not found")
    }

    /// Tracks are not unmuted by others.
    pub fn no_remote_unmute() -> Self {
        ServiceError::new(Code::FailedPrecondition, "remote unmute not enabled")
    }

    /// A telephone was not reached, with this status of SIP.
    pub(crate) fn sip(status: u16, reason: &str) -> Self {
        let code = match status {
            404 | 484 | 604 => Code::NotFound,
            403 | 603 => Code::PermissionDenied,
            408 | 487 => Code::DeadlineExceeded,
            486 | 600 => Code::ResourceExhausted,
            _ => Code::Unavailable,
        };
        ServiceError {
            code,
            message: format!("the call was not answered: {status} {reason}").into(),
            meta: Some(("sip_status_code", status.to_string())),
        }
    }

    /// The token lacks a grant.
    pub fn denied() -> Self {
        ServiceError::new(Code::Unauthenticated, "permissions denied")
    }

    /// The server does not have it.
    pub fn unimplemented(message: impl Into<Cow<'static, str>>) -> Self {
        ServiceError::new(Code::Unimplemented, message)
    }

    /// A text exceeds its limit.
    pub(crate) fn exceeds(what: &'static str, limit: usize) -> Self {
        ServiceError {
            code: Code::InvalidArgument,
            message: format!("{what} {limit}").into(),
            meta: Some(("argument", what.to_owned())),
        }
    }

    /// An argument is wrong.
    pub(crate) fn argument(what: &'static str) -> Self {
        ServiceError {
            code: Code::InvalidArgument,
            // The text has room for a reason, which is empty.
            message: format!("{what} ").into(),
            meta: Some(("argument", what.to_owned())),
        }
    }

    /// The path or the content type has no handler.
    pub(crate) fn bad_route(message: String, method: &str, path: &str) -> Self {
        ServiceError {
            code: Code::BadRoute,
            message: message.into(),
            meta: Some(("twirp_invalid_route", format!("{method} {path}"))),
        }
    }

    /// Returns the kind.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the body of the answer.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("code".to_owned(), self.code.name().into());
        members.insert("msg".to_owned(), self.message.as_ref().into());
        if let Some((name, value)) = &self.meta {
            let meta = Map::from_iter([((*name).to_owned(), Value::from(value.as_str()))]);
            members.insert("meta".to_owned(), meta.into());
        }
        members.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_body_has_a_code_a_text_and_facts() {
        let error = ServiceError::no_room();
        let expected = json!({"code": "not_found", "msg": "requested room does not exist"});
        assert_eq!(error.to_json(), expected);
        assert_eq!(error.code().status(), 404);
        let error = ServiceError::exceeds("metadata size exceeds limits", 5);
        let expected = json!({
            "code": "invalid_argument",
            "msg": "metadata size exceeds limits 5",
            "meta": {"argument": "metadata size exceeds limits"},
        });
        assert_eq!(error.to_json(), expected);
    }
}
