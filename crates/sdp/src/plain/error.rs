//! Errors of descriptions of or for a far end.

use crate::negotiated::Kind;

use super::crypto::CryptoRefusal;

/// The reason why a description of or for a far end is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// The text does not start with `v=0`.
    #[error("it does not begin with v=0")]
    NotSdp,
    /// The text is too long.
    #[error("it has {0} bytes, {max} are the most", max = super::parser::MAX_TEXT)]
    TooLong(usize),
    /// A line is not a letter, `=` and a value.
    #[error("line {0} is no SDP: {1}")]
    NotKeyValue(usize, String),
    /// A line with a malformed value.
    #[error("line {line} cannot be read ({what}): {text}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The error.
        what: &'static str,
        /// The text of the line.
        text: String,
    },
    /// A required line is missing.
    #[error("there is no {0}= line")]
    Missing(char),
    /// Too many m-lines.
    #[error("it has more than {0} m= lines")]
    TooManyMedia(usize),
    /// An address that cannot be sent to.
    #[error("{0} is no address to send to ({1})")]
    Address(String, &'static str),

    /// Neither audio nor video is active.
    #[error("No audio and no video being negotiated")]
    NoMedia,
    /// Audio or video is active, but with an unsupported protocol.
    #[error("No audio and no video being negotiated: {0} instead of RTP/AVP or RTP/SAVP")]
    Protocol(String),
    /// There is a data m-line.
    #[error("DataChannels are not supported")]
    Data,
    /// No `c=` line has an address.
    #[error("No remote IP addresses")]
    NoAddress,
    /// SRTP is required, and the far end has no usable key.
    #[error("SDES-SRTP required, but there is no key for {kind}{}", reasons(.refusals))]
    NoKey {
        /// The kind of media.
        kind: &'static str,
        /// The reasons why its keys cannot be used, with their tags.
        refusals: Vec<CryptoRefusal>,
    },

    /// An answer without an offer.
    #[error("there is no offer to answer")]
    NoOffer,
    /// The active m-line of an answer at this index is not of the offered kind, or was not offered.
    #[error("m-line {0} of the answer does not match the offer")]
    Mismatch(usize),
    /// There is no port for this kind of media: a bug of this side.
    #[error("there is no port for {0}")]
    NoPort(&'static str),
}

impl PlainError {
    pub(super) fn no_key(kind: Kind, refusals: &[CryptoRefusal]) -> Self {
        PlainError::NoKey {
            kind: kind_name(kind),
            refusals: refusals.to_vec(),
        }
    }

    /// Returns whether SRTP is the reason.
    pub fn is_for_lack_of_srtp(&self) -> bool {
        matches!(self, PlainError::NoKey { .. })
    }

    /// Returns whether a readable description has no media, or no address for it.
    pub fn is_unusable(&self) -> bool {
        matches!(
            self,
            PlainError::NoMedia | PlainError::Protocol(_) | PlainError::NoAddress
        )
    }
}

/// Returns the name of a kind in m-lines.
pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Audio => "audio",
        Kind::Video => "video",
        Kind::Data => "application",
    }
}

fn reasons(refusals: &[CryptoRefusal]) -> String {
    let reasons: Vec<String> = refusals.iter().map(CryptoRefusal::to_string).collect();
    match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join("; ")),
    }
}
