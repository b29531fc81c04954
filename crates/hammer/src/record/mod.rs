//! What one run measured, as it is kept and exchanged.
//!
//! Each name ends in its unit: `_s`, `_ms`, `_us` (times), `_bytes`, `_bps` (bits per second), `_pps`
//! (packets per second), `_cores` (CPU time per time: 1 is one core's whole), `_share` (0 to 1). Traffic is
//! counted as UDP payload: RTP with its SRTP tag, without IP and UDP headers. What was not measured is
//! `None`, never 0.

mod calls;
mod carried;
mod ceiling;
mod file;
mod recorded;
mod sound;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stalls::Stalls;
pub use calls::{Far, Registered, SetUp};
pub use carried::{Carried, Criterion, DELIVERED_AT_LEAST, IN_TIME_AT_LEAST, LOST_AT_MOST, best};
pub use ceiling::{BareLoad, BareLoop, Ceiling};
pub use file::ReadError;
pub use recorded::Recorded;
pub use sound::{Quality, Sound};

/// The form of the records that this version writes. Fields may be added within a form; a field that
/// goes or changes its meaning makes a new one.
pub const FORM: u32 = 1;

/// All runs of one call of hammer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORM`] of the program that wrote it.
    pub form: u32,
    /// One line that says what was compared.
    pub title: String,
    /// In the order in which they ran.
    pub runs: Vec<RunRecord>,
}

/// One scenario against one server, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// What was done.
    pub scenario: Scenario,
    /// To which server.
    pub server: Server,
    /// hammer's own version.
    pub version: String,
    /// Where it ran.
    #[serde(default)]
    pub machine: Machine,
    /// When it started, in seconds since 1970 (UTC).
    pub started_unix_s: f64,
    /// Counts the rounds of one call, from 1.
    pub round: u32,
    /// What the server's core can do at most with such packets, measured in the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// How late the cores of server and load answered before the load was there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lateness: Vec<Lateness>,
    /// One a second.
    pub samples: Vec<Sample>,
    /// The times of constant load; a scenario without such has one for all of it.
    pub steps: Vec<Step>,
    /// What is left of it all.
    pub summary: Summary,
}

/// What was done to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The command's name, such as `streaming`.
    pub name: String,
    /// Its options, by their names on the command line without the dashes.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
}

/// The server under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// What the reports call it; `ceiling` for the bare loop.
    pub name: String,
    /// What it says of itself: name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How `hammer lab` started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The cores that it may use, if they were pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<usize>,
    /// The SRTP profile that was negotiated, by its name in OpenSSL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtp_profile: Option<String>,
    /// What it told of itself by its webhook, if `hammer lab` listened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// What came by a server's webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Events.
    pub events: u64,
    /// Requests that these came in.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// The machine that server and hammer ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that the kernel shows.
    pub cores: u32,
    /// The kernel's release.
    pub kernel: String,
}

/// How late a core answers by itself: the least delay that anything on it can have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Which core.
    pub core: usize,
    /// 99 % of all moments are answered earlier.
    pub p99_us: f64,
    /// The latest.
    pub max_us: f64,
}

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

/// How a set of delays is distributed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// How many were measured.
    pub count: u64,
    /// The smallest.
    pub min_us: f64,
    /// Half are below it.
    pub p50_us: f64,
    /// 90 % are below it.
    pub p90_us: f64,
    /// 99 % are below it.
    pub p99_us: f64,
    /// The largest.
    pub max_us: f64,
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
    /// Whether it counts as carried at all: [`DELIVERED_AT_LEAST`] arrived.
    pub carried: bool,
    /// Whether it counts as carried in time, too ([`Criterion::InTime`]).
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

/// Packets that no stall of a watched core can have delayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// Their share of all packets whose delay is known.
    pub share: f64,
    /// From the source's sending to a participant's receiving; none without such packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
}

/// The figures that a run is quoted with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What the figures of carried participants mean: in time, but in records of older versions.
    #[serde(default)]
    pub criterion: Criterion,
    /// The most that were carried at all, if that was looked for; [`Summary::most`] gives both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_all: Option<Carried>,
    /// The most participants in a step that was carried; 0 if none was.
    pub carried_participants: u32,
    /// PeerConnections in that step, those included that publish.
    #[serde(default)]
    pub peer_connections: u32,
    /// What arrived in that step, UDP payload.
    pub carried_bps: f64,
    /// What arrived in that step.
    pub carried_pps: f64,
    /// The share that arrived in that step.
    pub delivered_share: f64,
    /// CPU time of the server in that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's memory for one more participant: from the step with the fewest to that with the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_participant: Option<f64>,
    /// The same for one more PeerConnection; with one step only, from the server without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_peer_connection: Option<f64>,
    /// The server's CPU time for each packet that arrived in the best step, with all that is around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// UDP payload that each of those with a limit got in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_bps: Option<f64>,
    /// The server's memory when all had left, again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
    /// Joins until media.
    #[serde(default)]
    pub joins: u64,
    /// Joins that failed.
    #[serde(default)]
    pub failed_joins: u64,
    /// PeerConnections that came in each second of time while joins were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_s: Option<f64>,
    /// The same for each second of the server's CPU time, relaying excluded as far as it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_per_cpu_s: Option<f64>,
    /// From a participant's first request to its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_delay: Option<Delays>,
    /// From the source's sending to a participant's receiving, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The same of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
    /// The longest time that a participant with media got none: in a storm or churn, one of those who were
    /// there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ms: Option<f64>,
    /// The same in times between two frames; 1 is none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_frames: Option<f64>,
    /// [`Self::carried_pps`] of the ceiling's by the same criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_share: Option<f64>,
    /// The bare loop's CPU time for each packet of the server's, with these participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// What was measured once more with a share of the most that were carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// What was heard in audio rooms, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sound: Option<Sound>,
    /// What came at the far end of calls, in the best step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    /// How long calls took to be set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<SetUp>,
    /// Accounts that were registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// How well sentences were heard that came over a bad way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// What a server that recorded has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// What makes figures doubtful: hammer's own limits, stolen time, refused joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A share of the most participants that were carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Which share, 0 to 1.
    pub share: f64,
    /// So many they were.
    pub participants: u32,
    /// The share of packets that arrived.
    pub delivered_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The bare loop's CPU time for each packet of the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
    /// From the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// The same of packets that no stall delayed, if stalls were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
}

/// A server's memory over times in which all came and left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Leaving {
    /// Before anybody came.
    pub before_bytes: u64,
    /// With everybody there, each time.
    pub full_bytes: Vec<u64>,
    /// When all had left, each time.
    pub empty_bytes: Vec<u64>,
}

impl Leaving {
    /// By how much more memory is in use after the last time than after the first; the larger one of
    /// those with everybody there and with nobody. None of fewer than two times.
    pub fn growth_share(&self) -> Option<f64> {
        let growth = |bytes: &[u64]| match bytes {
            [first, .., last] => Some(*last as f64 / (*first).max(1) as f64 - 1.0),
            _ => None,
        };
        let growths = [growth(&self.full_bytes), growth(&self.empty_bytes)];
        growths.into_iter().flatten().max_by(f64::total_cmp)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Report {
    /// A report with these runs.
    pub fn new(title: impl Into<String>, runs: Vec<RunRecord>) -> Self {
        Self {
            form: FORM,
            title: title.into(),
            runs,
        }
    }
}

impl RunRecord {
    /// The samples that lie within `step`.
    pub fn samples_of(&self, step: &Step) -> impl Iterator<Item = &Sample> {
        // Samples and steps are cut at slightly different moments.
        let (from, to) = (step.start_s - 0.1, step.end_s + 0.1);
        let within =
            move |sample: &&Sample| sample.at_s - sample.length_s >= from && sample.at_s <= to;
        self.samples.iter().filter(within)
    }
}

impl Delays {
    /// Sorts `delays_us` and takes the percentiles; none of nothing.
    pub fn of(delays_us: &mut [f64]) -> Option<Self> {
        delays_us.sort_unstable_by(f64::total_cmp);
        let last = delays_us.len().checked_sub(1)?;
        let at = |share: f64| {
            delays_us
                .get((share * last as f64).round() as usize)
                .copied()
        };
        Some(Self {
            count: delays_us.len() as u64,
            min_us: at(0.0)?,
            p50_us: at(0.5)?,
            p90_us: at(0.9)?,
            p99_us: at(0.99)?,
            max_us: at(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut delays: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let delays = Delays::of(&mut delays).unwrap();
        assert_eq!(
            (delays.min_us, delays.max_us, delays.count),
            (0.0, 100.0, 101)
        );
        assert_eq!(
            (delays.p50_us, delays.p90_us, delays.p99_us),
            (50.0, 90.0, 99.0)
        );
        assert_eq!(Delays::of(&mut []), None);
    }

    #[test]
    fn memory_that_stays_is_told_from_memory_that_grows() {
        let mut leaving = Leaving {
            before_bytes: 10,
            full_bytes: vec![100, 100, 101],
            empty_bytes: vec![50],
        };
        assert!((leaving.growth_share().unwrap() - 0.01).abs() < 1e-9);
        leaving.empty_bytes = vec![50, 60];
        assert!((leaving.growth_share().unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(Leaving::default().growth_share(), None);
    }
}
