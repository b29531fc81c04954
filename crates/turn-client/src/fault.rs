//! Why there is no allocation.

/// Why an allocation was not made, or has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Requests were sent again and again, and not answered.
    #[error("the TURN server does not answer")]
    NoAnswer,
    /// The credentials are not those that the server knows.
    #[error("the TURN server refuses the user name or the password")]
    Login,
    /// An allocation of somebody else, or of a former run with other credentials, has not expired yet.
    #[error(
        "the TURN server still has another allocation for this address: it expires within 10 minutes"
    )]
    Mismatch,
    /// The server refuses the request with another error.
    #[error("the TURN server refuses: {code} {reason}")]
    Refused {
        /// The code (RFC 8656 section 18).
        code: u16,
        /// What it says of it.
        reason: String,
    },
    /// The server says that it has the allocation no longer.
    #[error("the TURN server has ended the allocation")]
    Ended,
    /// A response without what it has to have.
    #[error("the TURN server's response has no {0}")]
    Incomplete(&'static str),
}
