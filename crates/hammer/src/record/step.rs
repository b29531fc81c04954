//! A time of constant load.

use serde::{Deserialize, Serialize};

use super::{Calm, Delays, Far, Sound};

/// A time of constant load. Its figures are over the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its start, since the start of the run. It excludes the time of settling.
    pub start_s: f64,
    /// Its end, since the start of the run.
    pub end_s: f64,
    /// Participants with media.
    pub participants: u32,
    /// PeerConnections, including publishing ones.
    #[serde(default)]
    pub peer_connections: u32,
    /// The UDP payload that each participant with a limit received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bps: Option<f64>,
    /// The share of expected packets that arrived.
    pub delivered_share: f64,
    /// The received rate of UDP payload.
    pub received_bps: f64,
    /// The received rate of packets.
    pub received_pps: f64,
    /// Whether the load was carried at all: [`DELIVERED_AT_LEAST`](super::DELIVERED_AT_LEAST)
    /// arrived.
    pub carried: bool,
    /// Whether the load was carried in time ([`Criterion::InTime`](super::Criterion::InTime)).
    #[serde(default)]
    pub in_time: bool,
    /// The bare loop's CPU time per packet, with the same participants and traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_cpu_ns_per_packet: Option<f64>,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's resident memory at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_rss_bytes: Option<u64>,
    /// The server's proportional memory at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_pss_bytes: Option<u64>,
    /// The server's threads at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u32>,
    /// CPU time of hammer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu_cores: Option<f64>,
    /// The delay from the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The delay of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
    /// The sound in audio rooms. In these, `delay` is how much later than the earliest one each
    /// packet came, relative to the clock of 20 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// What the far end of calls received. `delay` is that of what it sends back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// The delay with which frames left hammer after they were due. It is not a part of `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_late: Option<Delays>,
    /// The longest time in which a participant with media received no packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
}
