//! Measurements of SIP calls and of registered accounts.

use serde::{Deserialize, Serialize};

use super::Delays;

/// What the far end of calls received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Far {
    /// Received packets.
    pub received_packets: u64,
    /// The share of the numbered packets that arrived.
    pub delivered_share: f64,
    /// The delay from a participant's sending to the arrival at the far end, of a sample of
    /// packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
}

/// The time that servers took to set calls up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// The time from the request `call` to the event `accepted`, without the time between the
    /// INVITE's arrival at the far end and the sending of the answer: the sum of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Delays>,
    /// The time from the request to the INVITE's arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<Delays>,
    /// The time from the sending of the answer to the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Delays>,
}

/// Accounts that are registered and refreshed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// The number of accounts.
    pub accounts: u32,
    /// The lifetime of registrations that the registrar grants, in seconds.
    pub granted_s: u64,
    /// REGISTER requests granted per second.
    pub refreshes_per_s: f64,
    /// REGISTER requests challenged (401) per second.
    pub challenges_per_s: f64,
    /// CPU time of the server per granted request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_refresh: Option<f64>,
}
