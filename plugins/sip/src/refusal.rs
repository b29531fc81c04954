//! Refusals of requests, with their codes and texts.

use std::net::IpAddr;

use portunus_call::CallError;
use portunus_core::{FieldError, Object, Untrusted};
use serde_json::Value;

use crate::status::CallStatus;

/// The refusal of a request. Clients read the text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Unknown request ({0})")]
    UnknownRequest(String),
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A member has the right type and a wrong value.
    #[error("Invalid element ({0})")]
    Value(&'static str),
    /// One of several members is required.
    #[error("Missing element ({0})")]
    MissingOneOf(&'static str),
    /// Members that exclude each other.
    #[error("Conflicting elements ({0})")]
    Conflict(&'static str),
    #[error("Media encryption unsupported by this plugin")]
    Encrypted,
    #[error("Unauthorized ({0})")]
    Untrusted(#[from] Untrusted),
    /// The client has, or makes, too many of something.
    #[error("Unauthorized ({0})")]
    TooMany(&'static str),
    #[error("Unauthorized (nothing may be sent to {0}, see server.outgoing_networks)")]
    Destination(IpAddr),
    /// A failure of recordings, forwarders or other media.
    #[error(transparent)]
    Media(#[from] CallError),
    #[error("{0}")]
    Forward(String),
    /// The PeerConnection of the former call is just being closed.
    #[error("Wrong state (the former PeerConnection is being closed)")]
    Closing,
    #[error("Error parsing answer: the two sides have no codec in common")]
    NothingInCommon,
    #[error("Already registered ({0})")]
    AlreadyRegistered(String),
    /// A URI that cannot be used: the member, or its text.
    #[error("Invalid address ({0})")]
    Address(String),
    #[error("Wrong state ({0})")]
    State(&'static str),
    #[error("Wrong state (already in a call? status={0})")]
    Busy(CallStatus),
    #[error("Missing SDP")]
    MissingSdp,
    #[error("Missing SDP update")]
    MissingUpdate,
    #[error("The SIP plugin does not support DataChannels")]
    DataChannels,
    #[error("Error parsing {0}: {1}")]
    Sdp(&'static str, String),
    #[error("Could not allocate RTP/RTCP ports: {0}")]
    Ports(String),
    #[error(
        "Invalid request (at least one of audio, video, peer_audio and peer_video should be true)"
    )]
    NothingToRecord,
    #[error("Can't accept the call: SDES-SRTP required, but caller didn't offer it")]
    TooStrict,
    #[error("No such master session ({0})")]
    NoMaster(u64),
    #[error("{0}")]
    Helper(&'static str),
    #[error("No such call-ID {0}")]
    NoSuchCall(String),
    #[error("No such stream ({0})")]
    NoSuchStream(u64),
    #[error("No such trunk ({0})")]
    NoSuchTrunk(String),
}

/// The refusal of a request that needs a call.
pub(crate) const NOT_IN_A_CALL: Refusal = Refusal::State("not in a call?");

impl Refusal {
    /// Returns the `error_code` on the wire.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Refusal::UnknownRequest(_) => 442,
            Refusal::Field(FieldError::Missing(_)) | Refusal::MissingOneOf(_) => 443,
            Refusal::Field(FieldError::Type { .. } | FieldError::Value { .. })
            | Refusal::Value(_)
            | Refusal::Conflict(_)
            | Refusal::Encrypted
            | Refusal::Untrusted(_)
            | Refusal::TooMany(_)
            | Refusal::Destination(_)
            | Refusal::Media(_)
            | Refusal::Forward(_) => 444,
            Refusal::AlreadyRegistered(_) => 445,
            Refusal::Address(_) => 446,
            Refusal::State(_) | Refusal::Busy(_) | Refusal::Closing => 447,
            Refusal::MissingSdp
            | Refusal::MissingUpdate
            | Refusal::DataChannels
            | Refusal::NothingInCommon
            | Refusal::Sdp(..) => 448,
            Refusal::Ports(_) => 450,
            Refusal::NothingToRecord => 451,
            Refusal::TooStrict => 452,
            Refusal::NoMaster(_) | Refusal::Helper(_) => 453,
            Refusal::NoSuchCall(_) => 454,
            Refusal::NoSuchStream(_) => 455,
            Refusal::NoSuchTrunk(_) => 456,
        }
    }

    /// Makes the data of the event, with the Call-ID of the handle's call.
    pub(crate) fn to_json(&self, call_id: Option<&str>) -> Value {
        Object::new()
            .with("sip", "event")
            .with("error_code", self.code())
            .with("error", self.to_string())
            .with_some("call_id", call_id)
            .into()
    }
}
