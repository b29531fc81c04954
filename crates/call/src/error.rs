//! Errors of the media of a call.

use std::net::IpAddr;

use portunus_core::JsepError;
use portunus_core::record::RecordError;
use portunus_core::sdp::plain::PlainError;
use portunus_leg::LegError;

/// An error of the media of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A description cannot be used.
    #[error(transparent)]
    Sdp(#[from] PlainError),
    /// There are no ports.
    #[error("Could not allocate RTP ports: {0}")]
    Ports(#[from] LegError),
    /// The client's negotiation refuses it.
    #[error(transparent)]
    Jsep(#[from] JsepError),
    /// Media may not be sent there.
    #[error("media may not be sent to {0}: it is not in server.outgoing_networks")]
    Network(IpAddr),
    /// No address takes media of this far end's family.
    #[error("{0} cannot be answered: no address of its family takes RTP")]
    Family(IpAddr),
    /// It cannot be recorded.
    #[error("Cannot record: {0}")]
    Recording(#[from] RecordError),
    /// The call has the maximum number of forwarders.
    #[error("a call has {max} forwarders at most", max = crate::MAX_FORWARDERS)]
    Forwarders,
}
