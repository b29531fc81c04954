//! The configuration of the far end, and its record of SIP messages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use portunus_sdp::CodecName;

/// The configuration.
#[derive(Debug, Clone)]
pub(crate) struct FarConfig {
    /// The address.
    pub(crate) local: IpAddr,
    /// The codec to accept.
    pub(crate) codec: CodecName,
    /// The longest registration.
    pub(crate) expires: Duration,
    /// The lifetime of a nonce.
    pub(crate) nonce: Duration,
}

/// The record of SIP messages.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Answered calls by their Call-IDs.
    pub(super) calls: HashMap<String, Answered>,
    /// The counts since the last call of `take_counts`.
    pub(super) counts: SipCounts,
}

/// When a call arrived, and when it was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) came: Instant,
    pub(crate) left: Instant,
}

/// The counts of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SipCounts {
    /// Granted REGISTER requests.
    pub(crate) granted: u64,
    /// Challenged REGISTER requests.
    pub(crate) challenged: u64,
    /// Repeated requests.
    pub(crate) repeated: u64,
}
