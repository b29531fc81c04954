//! Failures of an allocation.

/// The reason why an allocation failed or ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Requests were not answered.
    #[error("the TURN server does not answer")]
    NoAnswer,
    /// The server does not accept the credentials.
    #[error("the TURN server refuses the user name or the password")]
    Login,
    /// An allocation of another user, or of an earlier run with other credentials, has not expired
    /// yet.
    #[error(
        "the TURN server still has another allocation for this address: it expires within 10 minutes"
    )]
    Mismatch,
    /// The server refused the request with another error.
    #[error("the TURN server refuses: {code} {reason}")]
    Refused {
        /// The code (RFC 8656 section 18).
        code: u16,
        /// The reason given by the server.
        reason: String,
    },
    /// The server no longer has the allocation.
    #[error("the TURN server has ended the allocation")]
    Ended,
    /// A response lacks a required attribute.
    #[error("the TURN server's response has no {0}")]
    Incomplete(&'static str),
}
