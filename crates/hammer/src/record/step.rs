//! A time of constant load.

use serde::{Deserialize, Serialize};

use super::{Calm, Delays, Far, Sound};

/// A time of constant load: its figures are over the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its start, since the start of the run; the settling time before it is not in it.
    pub start_s: f64,
    /// Its end, since the start of the run.
    pub end_s: f64,
    /// Participants with media.
    pub participants: u32,
    /// PeerConnections, those included that publish.
    #[serde(default)]
    pub peer_connections: u32,
    /// UDP payload that each of those with a limit got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bps: Option<f64>,
    /// Packets that arrived of those that should have.
    pub delivered_share: f64,
    /// What arrived, UDP payload.
    pub received_bps: f64,
    /// What arrived.
    pub received_pps: f64,
    /// Whether it counts as carried at all: [`DELIVERED_AT_LEAST`](super::DELIVERED_AT_LEAST) arrived.
    pub carried: bool,
    /// Whether it counts as carried in time, too ([`Criterion::InTime`](super::Criterion::InTime)).
    #[serde(default)]
    pub in_time: bool,
    /// CPU time of the bare loop for each packet, with the same participants and what they get.
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
    /// From the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The same of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
    /// What was heard in audio rooms. In these `delay` is how much later each packet came than the earliest did, for its place
    /// on the clock of 20 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// What came at the far end of calls; `delay` is that of what it sends back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// How much later than they were due frames left hammer; not a part of `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_late: Option<Delays>,
    /// The longest time that a participant with media got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
}
