//! The server's side of a negotiation: descriptions, candidates, ICE credentials, and errors.

use portunus_rtp::Mid;
use portunus_sdp::{IceCredentials, LocalJsep, SdpError};
use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::Value;

use crate::{Object, OverBudget, client_event};

/// Returns the `jsep` of a message to the client.
pub(super) fn to_json(local: &LocalJsep) -> Value {
    Object::new()
        .with("type", local.kind.as_str())
        .with("sdp", local.sdp.as_str())
        .with_some("e2ee", local.e2ee.then_some(true))
        .into()
}

/// Returns the events with the server's candidates, if they are not in the description.
pub(super) fn trickled(local: LocalJsep) -> impl Iterator<Item = Value> {
    local.trickled.into_iter().flat_map(|trickled| {
        let event = move |candidate: Option<String>| {
            let mid = trickled.mid.as_ref().map_or("0", Mid::as_str);
            client_event::trickle(mid, candidate.as_deref())
        };
        let candidates = trickled.candidates.into_iter().map(Some);
        candidates.chain([None]).map(event)
    })
}

/// The server's side of ICE after a restart, see [`crate::Gateway::restart_ice`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalIce {
    /// The new credentials.
    pub ice: IceCredentials,
    /// The candidates, as the text after `a=`.
    pub candidates: Vec<String>,
    /// The m-line of the candidates: the first one, whose transport all share.
    pub mid: Mid,
}

/// The reason why an offer or answer could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsepError {
    /// There is no offer to answer.
    #[error("there is no offer to answer")]
    NoOffer,
    /// The client is gone.
    #[error("the handle is detached")]
    Detached,
    /// The former PeerConnection is being closed. Another can be made a moment later.
    #[error("the former PeerConnection is being closed")]
    Closing,
    /// The client exceeds its memory.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The description does not fit.
    #[error(transparent)]
    Sdp(#[from] SdpError),
}

/// Makes ICE credentials of 48 and 144 random bits (RFC 8445 section 5.3 requires 24 and 128).
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
