//! The sample of one second of a run.

use serde::{Deserialize, Serialize};

use super::{Delays, Far};

/// One second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its end, since the start of the run.
    pub at_s: f64,
    /// Its length, close to 1.
    pub length_s: f64,
    /// Participants with media at its end.
    pub participants: u32,
    /// PeerConnections that were up at its end, including publishing ones. More than participants
    /// if some have several.
    #[serde(default)]
    pub peer_connections: u32,
    /// Participants that asked the server for a limit, with media at its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub limited: u32,
    /// UDP payload that participants with a limit received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bytes: Option<u64>,
    /// Participants that received their first packet.
    pub joined: u32,
    /// Participants that left.
    pub left: u32,
    /// Joins that failed.
    pub failed: u32,
    /// Packets that all participants together should have received.
    pub expected_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// The UDP payload of these packets.
    pub received_bytes: u64,
    /// Packets that decrypting participants missed.
    #[serde(default)]
    pub lost_packets: u64,
    /// Packets that decrypting participants received after a later one.
    #[serde(default)]
    pub reordered_packets: u64,
    /// Packets that decrypting participants received twice.
    #[serde(default)]
    pub repeated_packets: u64,
    /// Packets that decrypting participants could not use: not authentic, or not hammer's.
    #[serde(default)]
    pub refused_packets: u64,
    /// The longest time in which a participant with media received no packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// The time from the moment in which the source passes a packet to its kernel to the moment in
    /// which the kernel of the load's side has it for a participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// What the far end of calls received. `delay` is that of what it sends back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// The delay with which frames left hammer after they were due. It is not a part of `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_late: Option<Delays>,
    /// The time from a participant's first request to its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay: Option<Delays>,
    /// The server's usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUse>,
    /// The link's usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkUse>,
    /// hammer's own usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadUse>,
    /// The stalls of each core, if they were watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stalls>,
}

/// The usage of the server's processes in one second, from /proc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time of all threads.
    pub cpu_cores: f64,
    /// The busy share of each of its cores, by any process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_busy_share: Vec<f64>,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory, with shared pages in proportion. It is read less often than the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// The number of threads.
    pub threads: u32,
    /// The threads with the most CPU time, in descending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<ThreadUse>,
}

/// The usage of one thread in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The thread's name in the kernel.
    pub name: String,
    /// The thread's id.
    pub id: i32,
    /// CPU time.
    pub cpu_cores: f64,
}

/// The traffic of the link between server and load in one second, as the interface counts it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    /// From the server, including all headers.
    pub from_server_bps: f64,
    /// Frames from the server. A segmented send counts once if the interface segments it.
    pub from_server_pps: f64,
    /// To the server, including all headers.
    pub to_server_bps: f64,
    /// Frames to the server.
    pub to_server_pps: f64,
    /// Frames that the interface dropped, in both directions.
    pub dropped: u64,
    /// Datagrams dropped on the load's side because a socket's buffer was full.
    #[serde(default)]
    pub load_buffer_drops: u64,
}

/// hammer's usage in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUse {
    /// CPU time of all of hammer's threads.
    pub cpu_cores: f64,
    /// The busy share of each of its cores, by any process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_busy_share: Vec<f64>,
    /// The share of time in which the busiest thread with participants did not sleep, 0 to 1.
    #[serde(default)]
    pub thread_busy_share: f64,
    /// Time that the hypervisor took from any core, as a share of one core.
    #[serde(default)]
    pub stolen_cores: f64,
}

/// The stalls of a core within a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// The core's number.
    pub core: usize,
    /// The number of stalls.
    pub count: u32,
    /// Their total length.
    pub total_ms: f64,
    /// The longest stall.
    pub longest_ms: f64,
    /// The time in which the core was slow, in addition to the stalls.
    #[serde(default)]
    pub slow_ms: f64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
