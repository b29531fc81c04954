//! What is this side's of a negotiation: offers, answers, a restart of ICE, and why there are none.

use portunus_rtp::Mid;
use portunus_sdp::{IceCredentials, SdpError};
use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::Value;

use crate::plugin::JsepKind;
use crate::{Object, OverBudget};

/// Our offer or answer, to be pushed to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalJsep {
    pub(super) kind: JsepKind,
    pub(super) sdp: String,
    pub(super) e2ee: bool,
    /// Our candidates as events, if they are not in the description.
    pub(super) trickled: Vec<Value>,
}

impl LocalJsep {
    /// Tells the client that the media is encrypted end to end.
    #[must_use]
    pub fn with_e2ee(mut self, e2ee: bool) -> Self {
        self.e2ee |= e2ee;
        self
    }

    /// The description's text.
    pub fn sdp(&self) -> &str {
        &self.sdp
    }

    pub(super) fn to_json(&self) -> Value {
        Object::new()
            .with("type", self.kind.as_str())
            .with("sdp", self.sdp.as_str())
            .with_some("e2ee", self.e2ee.then_some(true))
            .into()
    }
}

/// Our side of ICE after a restart, see [`crate::Gateway::restart_ice`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalIce {
    /// Our new credentials.
    pub ice: IceCredentials,
    /// Our candidates, as the text after `a=`.
    pub candidates: Vec<String>,
    /// The m-line that they are for: the first, whose transport all share.
    pub mid: Mid,
}

/// Why an offer or answer of ours could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsepError {
    /// There is no offer to answer: none came, or its PeerConnection is gone.
    #[error("there is no offer to answer")]
    NoOffer,
    /// The client is gone.
    #[error("the handle is detached")]
    Detached,
    /// The former PeerConnection is just being closed; a moment later there can be another.
    #[error("the former PeerConnection is being closed")]
    Closing,
    /// The client cannot have another PeerConnection now.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The description does not fit.
    #[error(transparent)]
    Sdp(#[from] SdpError),
}

/// ICE credentials of ours: 48 and 144 bits from the system's generator (RFC 8445 section 5.3 wants 24 and 128).
pub(super) fn new_credentials() -> IceCredentials {
    let random = |length| -> String {
        rand::rng()
            .sample_iter(Alphanumeric)
            .take(length)
            .map(char::from)
            .collect()
    };
    IceCredentials {
        ufrag: random(8),
        pwd: random(24),
    }
}
