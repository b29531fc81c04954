//! Errors of requests.

use std::time::Duration;

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is malformed, or has an unsupported scheme.
    #[error("{0} is no usable URL")]
    Url(String),
    /// The server cannot be reached.
    #[error("{url}: {reason}")]
    Connect {
        /// The URL.
        url: String,
        /// The error of the system or of the server.
        reason: String,
    },
    /// The connection has closed.
    #[error("the server closed the connection")]
    Closed,
    /// The server did not answer.
    #[error("no answer to {request} in {} s", after.as_secs())]
    Timeout {
        /// The request.
        request: String,
        /// The wait.
        after: Duration,
    },
    /// The server refused the request.
    #[error("{request}: {reason} ({code})")]
    Refused {
        /// The request.
        request: String,
        /// The error code of Janus, of a plugin, or of HTTP.
        code: i64,
        /// The reason given by the server.
        reason: String,
    },
    /// The server's answer lacks a part.
    #[error("the answer to {request} has no {missing}")]
    Malformed {
        /// The request.
        request: String,
        /// The missing part.
        missing: &'static str,
    },
    /// No access token can be made.
    #[error("no access token: {0}")]
    Token(String),
}
