//! What is measured of calls by SIP, and of accounts that are registered.

use serde::{Deserialize, Serialize};

use super::Delays;

/// What came at the far end of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Far {
    /// Packets.
    pub received_packets: u64,
    /// The share of the packets that came, of those that were numbered.
    pub delivered_share: f64,
    /// From a participant's sending to the arrival at the far end, of some packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
}

/// How long servers took to set calls up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// From the request `call` to the event `accepted`, without the time between the INVITE's arrival at the far end and the answer's
    /// leaving: the sum of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Delays>,
    /// From the request to the INVITE's arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<Delays>,
    /// From the answer's leaving to the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Delays>,
}

/// Accounts that are registered and refreshed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// Accounts.
    pub accounts: u32,
    /// How long the registrar grants a registration, in seconds.
    pub granted_s: u64,
    /// REGISTERs that were granted in each second.
    pub refreshes_per_s: f64,
    /// REGISTERs that were asked for a digest in each second.
    pub challenges_per_s: f64,
    /// CPU time of the server for each that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_refresh: Option<f64>,
}
