//! Why a description of or for a far end is refused.

use crate::negotiated::Kind;

use super::crypto::CryptoRefusal;

/// Why a description of or for a far end is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// The text does not begin with `v=0`.
    #[error("it does not begin with v=0")]
    NotSdp,
    /// The text is longer than descriptions are.
    #[error("it has {0} bytes, {max} are the most", max = super::read::MAX_TEXT)]
    TooLong(usize),
    /// A line is not a letter, `=` and a value.
    #[error("line {0} is no SDP: {1}")]
    NotKeyValue(usize, String),
    /// A line whose value cannot be read.
    #[error("line {line} cannot be read ({what}): {text}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
        /// The line.
        text: String,
    },
    /// A line that has to be there.
    #[error("there is no {0}= line")]
    Missing(char),
    /// More m-lines than are taken.
    #[error("it has more than {0} m= lines")]
    TooManyMedia(usize),
    /// An address that nothing can be sent to.
    #[error("{0} is no address to send to ({1})")]
    Address(String, &'static str),

    /// No audio and no video is in use.
    #[error("No audio and no video being negotiated")]
    NoMedia,
    /// Audio or video is in use, but by a protocol that is not spoken here.
    #[error("No audio and no video being negotiated: {0} instead of RTP/AVP or RTP/SAVP")]
    Protocol(String),
    /// There is a data m-line.
    #[error("DataChannels are not supported")]
    Data,
    /// No `c=` says where to send.
    #[error("No remote IP addresses")]
    NoAddress,
    /// SRTP is needed, and the far end has no key that can be used.
    #[error("SDES-SRTP required, but there is no key for {kind}{}", reasons(.refusals))]
    NoKey {
        /// Of what.
        kind: &'static str,
        /// Why its keys cannot be used, with their tags.
        refusals: Vec<CryptoRefusal>,
    },

    /// An answer without an offer.
    #[error("there is no offer to answer")]
    NoOffer,
    /// An m-line in use of an answer (its index) is not of the kind that was offered there, or was not offered at all.
    #[error("m-line {0} of the answer does not match the offer")]
    Mismatch(usize),
    /// There is no port for this kind of media: a mistake on this side.
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

    /// Whether SRTP is the reason.
    pub fn is_for_lack_of_srtp(&self) -> bool {
        matches!(self, PlainError::NoKey { .. })
    }

    /// Whether there is nothing to talk about, or nowhere to send it, in a description that can be read.
    pub fn is_unusable(&self) -> bool {
        matches!(
            self,
            PlainError::NoMedia | PlainError::Protocol(_) | PlainError::NoAddress
        )
    }
}

/// What kind of media is called in m-lines.
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
