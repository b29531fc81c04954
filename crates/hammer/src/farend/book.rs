//! How the far end answers, and what it keeps of what came by SIP.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use portunus_sdp::CodecName;

/// How it answers.
#[derive(Debug, Clone)]
pub(crate) struct FarConfig {
    /// Its address.
    pub(crate) local: IpAddr,
    /// The codec that it takes of those that are offered.
    pub(crate) codec: CodecName,
    /// Registrations are granted for no longer than this.
    pub(crate) expires: Duration,
    /// An answer to a digest challenge serves for so long.
    pub(crate) nonce: Duration,
}

/// What has come by SIP.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Calls that have been answered, by their Call-IDs.
    pub(super) calls: HashMap<String, Answered>,
    /// Since the last time.
    pub(super) counts: SipCounts,
}

/// When a call came, and when the answer left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) came: Instant,
    pub(crate) left: Instant,
}

/// Requests since the last time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SipCounts {
    /// REGISTERs that were granted.
    pub(crate) granted: u64,
    /// REGISTERs that were asked for a digest.
    pub(crate) challenged: u64,
    /// Requests that came again.
    pub(crate) repeated: u64,
}
