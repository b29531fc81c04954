//! Why a message, or a header field of it, cannot be used.

use super::{Headers, Response, StatusCode};

/// A text that does not have the form that it should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub &'static str);

/// A header field that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("header {name}: {problem}")]
pub struct HeaderError {
    /// The full name of the header field.
    pub name: &'static str,
    /// What is wrong with it.
    pub problem: SyntaxError,
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// It has more octets, lines or values than are taken.
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// The start line is neither that of a request nor of a response.
    #[error("start line: {0}")]
    StartLine(SyntaxError),
    /// The version is another one than SIP/2.0.
    #[error("version is not SIP/2.0")]
    Version,
    /// The Request-URI is malformed.
    #[error("Request-URI: {0}")]
    RequestUri(SyntaxError),
    /// A line is not a header field, or the headers do not end.
    #[error("header line: {0}")]
    HeaderLine(SyntaxError),
    /// A header field that must be there is not.
    #[error("no {0}")]
    Missing(&'static str),
    /// A header field is malformed, or is there twice.
    #[error("{0}")]
    Header(HeaderError),
    /// The method of CSeq is not that of the request.
    #[error("CSeq names another method")]
    Mismatch,
    /// Content-Length promises more than there is.
    #[error("body is shorter than Content-Length")]
    Truncated,
}

/// A message that cannot be used, and how it is answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// The headers as far as they were read, if this is a request that may be answered.
    pub(super) request: Option<Box<Headers>>,
}

impl ParseError {
    pub(super) fn unanswered(kind: ParseErrorKind) -> Self {
        Self {
            kind,
            request: None,
        }
    }

    /// The status that answers it: 400, 505, 513. Whether an answer can be sent, [`Self::answer`] tells.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.kind {
            ParseErrorKind::Version => StatusCode::VERSION_NOT_SUPPORTED,
            ParseErrorKind::TooLarge(_) => StatusCode::MESSAGE_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The response to be sent where the message came from: its Via may be what is malformed. There is none to a
    /// response, to an ACK, and to what has no Via. The reason phrase says what is wrong.
    #[must_use]
    pub fn answer(&self) -> Option<Response> {
        let request = self.request.as_deref()?;
        request.get("Via")?;
        let status = self.status();
        let mut response = Response::new(status);
        response.headers.copy_for_response(request, status);
        if status == StatusCode::BAD_REQUEST {
            response.reason = format!("{} ({})", status.reason(), self.kind);
        }
        Some(response)
    }
}
