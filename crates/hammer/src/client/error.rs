//! Why a request came to nothing.

use std::time::Duration;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not one, or of a kind that is not spoken.
    #[error("{0} is no usable URL")]
    Url(String),
    /// The server cannot be reached.
    #[error("{url}: {reason}")]
    Connect {
        /// Where it should be.
        url: String,
        /// What the system or the server says.
        reason: String,
    },
    /// The connection is gone.
    #[error("the server closed the connection")]
    Closed,
    /// The server did not answer.
    #[error("no answer to {request} in {} s", after.as_secs())]
    Timeout {
        /// What was asked.
        request: String,
        /// For how long it was waited.
        after: Duration,
    },
    /// The server refused.
    #[error("{request}: {reason} ({code})")]
    Refused {
        /// What was asked.
        request: String,
        /// The code of Janus, of a plugin, or of HTTP.
        code: i64,
        /// What the server says.
        reason: String,
    },
    /// The server's answer lacks something.
    #[error("the answer to {request} has no {missing}")]
    Malformed {
        /// What was asked.
        request: String,
        /// What is not there.
        missing: &'static str,
    },
}
