//! The criteria by which a server carries a number of participants: in time, or at all.

use serde::{Deserialize, Serialize};

use super::{Delays, Step};

/// The share of expected packets that must arrive.
pub const DELIVERED_AT_LEAST: f64 = 0.995;
/// The largest share of packets that decrypting participants may miss, for "in time".
pub const LOST_AT_MOST: f64 = 0.001;
/// The share of packets that must arrive within one frame interval, for "in time". With half, a
/// server would pass that joins every two frames, since one of the two is in time. Versions that did
/// not record it had [`IN_TIME_BEFORE`].
pub const IN_TIME_AT_LEAST: f64 = 0.99;
/// The share of older versions.
pub const IN_TIME_BEFORE: f64 = 0.9;

/// The criterion by which a number of participants counts as carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// [`DELIVERED_AT_LEAST`] arrived, at most [`LOST_AT_MOST`] was lost, and [`IN_TIME_AT_LEAST`]
    /// arrived within one frame interval, or within the configured time.
    InTime,
    /// [`DELIVERED_AT_LEAST`] arrived, however late. Older versions used only this one.
    #[default]
    AtAll,
}

/// The most participants that were carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The number of participants.
    pub participants: u32,
    /// PeerConnections, including publishing ones.
    pub peer_connections: u32,
    /// The received rate of UDP payload.
    pub received_bps: f64,
    /// The received rate of packets.
    pub received_pps: f64,
    /// The share of expected packets that arrived.
    pub delivered_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's CPU time per packet that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// The delay from the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// [`Self::received_pps`], relative to the ceiling by the same criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_share: Option<f64>,
    /// The bare loop's CPU time per packet, relative to the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
}

impl Criterion {
    /// All criteria, the strictest first.
    pub const BOTH: [Self; 2] = [Self::InTime, Self::AtAll];

    /// Returns the criterion's name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InTime => "in time",
            Self::AtAll => "at all",
        }
    }
}

impl Step {
    /// Returns whether the step meets the criterion.
    pub fn meets(&self, criterion: Criterion) -> bool {
        match criterion {
            Criterion::InTime => self.in_time,
            Criterion::AtAll => self.carried,
        }
    }

    /// Returns the server's CPU time per packet that arrived.
    pub fn cpu_ns_per_packet(&self) -> Option<f64> {
        let ns = self.server_cpu_cores? * 1e9 / self.received_pps;
        Some(ns).filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Returns the bare loop's CPU time per packet, relative to the server's.
    pub fn efficiency_share(&self) -> Option<f64> {
        Some(self.loop_cpu_ns_per_packet? / self.cpu_ns_per_packet()?)
    }
}

/// Returns the step with the most participants that meets the criterion.
pub fn best(steps: &[Step], criterion: Criterion) -> Option<&Step> {
    let meet = steps.iter().filter(|step| step.meets(criterion));
    meet.max_by_key(|step| step.participants)
}

impl Carried {
    /// Returns the figures of a step.
    pub fn of(step: &Step) -> Self {
        Self {
            participants: step.participants,
            peer_connections: step.peer_connections,
            received_bps: step.received_bps,
            received_pps: step.received_pps,
            delivered_share: step.delivered_share,
            server_cpu_cores: step.server_cpu_cores,
            cpu_ns_per_packet: step.cpu_ns_per_packet(),
            delay: step.delay,
            ceiling_share: None,
            efficiency_share: step.efficiency_share(),
        }
    }
}
