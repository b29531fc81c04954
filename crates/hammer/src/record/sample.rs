//! One second of a run.

use serde::{Deserialize, Serialize};

use super::{Delays, Far};

/// One second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its end, since the start of the run.
    pub at_s: f64,
    /// Its length: close to 1.
    pub length_s: f64,
    /// Participants with media at its end.
    pub participants: u32,
    /// PeerConnections that were up at its end, those included that publish; more than participants where
    /// one has several.
    #[serde(default)]
    pub peer_connections: u32,
    /// Those that told the server of a limit, with media at its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub limited: u32,
    /// UDP payload that those with a limit got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bytes: Option<u64>,
    /// Participants that got their first packet in it.
    pub joined: u32,
    /// Participants that left in it.
    pub left: u32,
    /// Joins that failed in it.
    pub failed: u32,
    /// Packets that all participants together should have got.
    pub expected_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Their UDP payload.
    pub received_bytes: u64,
    /// Packets that decrypting participants found missing.
    #[serde(default)]
    pub lost_packets: u64,
    /// Packets that decrypting participants got behind a later one.
    #[serde(default)]
    pub reordered_packets: u64,
    /// Packets that decrypting participants got again.
    #[serde(default)]
    pub repeated_packets: u64,
    /// Packets that decrypting participants could not make sense of: not authentic, or not hammer's.
    #[serde(default)]
    pub refused_packets: u64,
    /// The longest time that a participant with media got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// From the moment in which the source gives a packet to its kernel to that in which the kernel of the
    /// load's side has it for a participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// What came at the far end of calls; `delay` is that of what it sends back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// How much later than they were due frames left hammer; not a part of `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_late: Option<Delays>,
    /// From a participant's first request to its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay: Option<Delays>,
    /// What the server used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUse>,
    /// What went over the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkUse>,
    /// What hammer itself used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadUse>,
    /// For how long each core stood still, if that was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stalls>,
}

/// What the server's processes used in one second, from /proc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time of all threads.
    pub cpu_cores: f64,
    /// How busy its cores were with anything, 0 to 1 for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_busy_share: Vec<f64>,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory, shared pages counted in proportion; read less often than the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
    /// All threads there are.
    pub threads: u32,
    /// The threads that used the most CPU time, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<ThreadUse>,
}

/// What one thread used in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Its name, as the kernel has it.
    pub name: String,
    /// Its id.
    pub id: i32,
    /// CPU time.
    pub cpu_cores: f64,
}

/// What went over the link between server and load in one second, as the interface counts it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    /// From the server, with all headers.
    pub from_server_bps: f64,
    /// Frames from the server; a segmented send counts once where the interface segments.
    pub from_server_pps: f64,
    /// To the server, with all headers.
    pub to_server_bps: f64,
    /// Frames to the server.
    pub to_server_pps: f64,
    /// Frames that the interface dropped, both ways.
    pub dropped: u64,
    /// Datagrams that found a socket's buffer full on the load's side.
    #[serde(default)]
    pub load_buffer_drops: u64,
}

/// What hammer used in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUse {
    /// CPU time of all of hammer's threads.
    pub cpu_cores: f64,
    /// How busy its cores were with anything, 0 to 1 for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_busy_share: Vec<f64>,
    /// The share of its time that the busiest thread which runs participants did not sleep, 0 to 1.
    #[serde(default)]
    pub thread_busy_share: f64,
    /// Time that the hypervisor took from any core, as a share of one core.
    #[serde(default)]
    pub stolen_cores: f64,
}

/// For how long a core stood still in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// Which core.
    pub core: usize,
    /// How often.
    pub count: u32,
    /// For how long altogether.
    pub total_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// For how long it was slow, besides.
    #[serde(default)]
    pub slow_ms: f64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
