//! Errors of descriptions.

use portunus_rtp::Mid;

/// The reason why a description was refused.
///
/// Its text is that of the API's error 465. If clients know only a general text for several causes,
/// a log should show the name of the variant (its `Debug` form).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// The text is not SDP.
    #[error("Invalid SDP (doesn't start with v=)")]
    NoVersion,
    /// A line of fewer than three characters.
    #[error("Invalid line ({} bytes): {}", .0.len(), .0)]
    ShortLine(String),
    /// A line whose second character is not `=`.
    #[error("Invalid line (2nd char is not '='): {0}")]
    NotKeyValue(String),
    /// A line with a malformed value, or an m-line of an unknown media type.
    #[error("Invalid {}= line: {line}", .key)]
    InvalidLine {
        /// The type of the line.
        key: char,
        /// The whole line.
        line: String,
    },
    /// A repeated line of a type that may occur only once.
    #[error("Multiple {}= lines: {line}", .key)]
    RepeatedLine {
        /// The type of the line.
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
    /// There is no `o=`, `s=` or `m=`.
    #[error("Missing mandatory lines (o=, s= or m=)")]
    Incomplete,
    /// More m-lines than the server supports.
    #[error("Too many m= lines ({0})")]
    TooManyMedia(usize),
    /// Another error of the SDP library.
    #[error("{0}")]
    Syntax(String),

    /// The mid of an active m-line has more than 16 characters.
    #[error("")]
    LongMid,
    /// The m-line at this index has a malformed mid.
    #[error("Error processing SDP")]
    MalformedMid(usize),
    /// Two m-lines have the same mid.
    #[error("Error processing SDP")]
    DuplicateMid(Mid),
    /// The m-line at this index has an `a=msid` without two tokens.
    #[error("Error processing SDP")]
    InvalidMsid(usize),
    /// There is no usable `a=ice-ufrag` or `a=ice-pwd` where they are required.
    #[error("Error processing SDP")]
    NoIceCredentials,
    /// There is no `a=fingerprint` with an accepted hash function.
    #[error("Error processing SDP")]
    NoFingerprint,
    /// The m-line of an offer at this index has its own transport: it is in no BUNDLE group with
    /// the first.
    #[error(
        "m-line {0} is not bundled with the first one: offer all in one a=group:BUNDLE (bundlePolicy \"max-bundle\")"
    )]
    NotBundled(usize),
    /// The m-lines of an answer differ from the offer, or an offer lacks m-lines.
    #[error("Error processing SDP")]
    MediaMismatch,

    /// An answer arrived without an offer.
    #[error("Unexpected ANSWER (did we offer?)")]
    UnexpectedAnswer,
    /// A local answer without a remote offer: a bug of this side.
    #[error("There is no offer to answer")]
    NothingToAnswer,
    /// A local offer while a remote one waits for its answer: a bug of this side.
    #[error("The remote offer has to be answered first")]
    OfferPending,
    /// A local description does not fit the existing m-lines: a bug of this side.
    #[error("m-line {0} does not fit the session")]
    LocalMismatch(usize),
}
