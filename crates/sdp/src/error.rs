//! Why a description was refused.

use portunus_rtp::Mid;

/// Why a description was refused.
///
/// The text is what the API's error 465 says; where clients know only a general text for several causes, the
/// variant's name (its `Debug` form) is what a log should show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// The text is not SDP at all.
    #[error("Invalid SDP (doesn't start with v=)")]
    NoVersion,
    /// A line of fewer than three characters.
    #[error("Invalid line ({} bytes): {}", .0.len(), .0)]
    ShortLine(String),
    /// A line whose second character is not `=`.
    #[error("Invalid line (2nd char is not '='): {0}")]
    NotKeyValue(String),
    /// A line whose value does not parse, or an m-line of a media type that there is not.
    #[error("Invalid {}= line: {line}", .key)]
    InvalidLine {
        /// The line's type.
        key: char,
        /// The whole line.
        line: String,
    },
    /// A second line of a type of which there is one only.
    #[error("Multiple {}= lines: {line}", .key)]
    RepeatedLine {
        /// The line's type.
        key: char,
        /// The whole line.
        line: String,
    },
    /// An m-line of more than 200 characters.
    #[error("Invalid m= line (too long): {0}")]
    LongMediaLine(usize),
    /// An m-line without formats.
    #[error("Invalid m= line (no payload types/formats): {0}")]
    NoFormats(String),
    /// No `o=`, `s=` or `m=`.
    #[error("Missing mandatory lines (o=, s= or m=)")]
    Incomplete,
    /// More m-lines than the server handles.
    #[error("Too many m= lines ({0})")]
    TooManyMedia(usize),
    /// Anything else that the SDP library does not take.
    #[error("{0}")]
    Syntax(String),

    /// The media identification of an active m-line has more than 16 characters.
    #[error("")]
    LongMid,
    /// An m-line (its index) has a malformed media identification.
    #[error("Error processing SDP")]
    MalformedMid(usize),
    /// Two m-lines have the same identification.
    #[error("Error processing SDP")]
    DuplicateMid(Mid),
    /// An m-line (its index) has an `a=msid` without two tokens.
    #[error("Error processing SDP")]
    InvalidMsid(usize),
    /// No usable `a=ice-ufrag` and `a=ice-pwd` where they have to be.
    #[error("Error processing SDP")]
    NoIceCredentials,
    /// No `a=fingerprint` with a hash function that the server accepts.
    #[error("Error processing SDP")]
    NoFingerprint,
    /// An m-line (its index) of an offer has a transport of its own: it is in no BUNDLE group with the first.
    #[error(
        "m-line {0} is not bundled with the first one: offer all in one a=group:BUNDLE (bundlePolicy \"max-bundle\")"
    )]
    NotBundled(usize),
    /// An answer whose m-lines are not those of the offer, or an offer that drops m-lines.
    #[error("Error processing SDP")]
    MediaMismatch,

    /// An answer came without an offer to answer.
    #[error("Unexpected ANSWER (did we offer?)")]
    UnexpectedAnswer,
    /// A local answer without a remote offer: a mistake on this side.
    #[error("There is no offer to answer")]
    NothingToAnswer,
    /// A local offer while the remote side's waits for its answer: a mistake on this side.
    #[error("The remote offer has to be answered first")]
    OfferPending,
    /// A local description that does not fit the m-lines that exist: a mistake on this side.
    #[error("m-line {0} does not fit the session")]
    LocalMismatch(usize),
}
