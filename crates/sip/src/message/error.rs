//! Why a message, or a header field of it, cannot be used.

use super::{Headers, Response, StatusCode};

/// A text that does not have the required form.
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
    /// The message exceeds a limit: octets, lines or values.
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// The start line is neither a request line nor a status line.
    #[error("start line: {0}")]
    StartLine(SyntaxError),
    /// The version is not SIP/2.0.
    #[error("version is not SIP/2.0")]
    Version,
    /// The Request-URI is malformed.
    #[error("Request-URI: {0}")]
    RequestUri(SyntaxError),
    /// A line is not a header field, or the header has no end.
    #[error("header line: {0}")]
    HeaderLine(SyntaxError),
    /// A required header field is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// A header field is malformed or repeated.
    #[error("{0}")]
    Header(HeaderError),
    /// The method of CSeq is not that of the request.
    #[error("CSeq names another method")]
    Mismatch,
    /// Content-Length exceeds the size of the body.
    #[error("body is shorter than Content-Length")]
    Truncated,
}

/// A message that cannot be used, and the response to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// The header fields read so far, if this is a request that may get a response.
    pub(super) request: Option<Box<Headers>>,
}

impl ParseError {
    pub(super) fn unanswered(kind: ParseErrorKind) -> Self {
        Self {
            kind,
            request: None,
        }
    }

    /// The status of the response: 400, 505 or 513. [`Self::answer`] says whether there is one.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.kind {
            ParseErrorKind::Version => StatusCode::VERSION_NOT_SUPPORTED,
            ParseErrorKind::TooLarge(_) => StatusCode::MESSAGE_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the response, to be sent to the source of the message, since its Via may be
    /// malformed. The reason phrase names the error. Returns `None` for a response, an ACK, and a
    /// message without Via.
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
