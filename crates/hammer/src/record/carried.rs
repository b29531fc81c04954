//! When a number of participants counts as carried, in time and at all.

use serde::{Deserialize, Serialize};

use super::{Delays, Step};

/// The share of expected packets that has to arrive for a number of participants to count as carried.
pub const DELIVERED_AT_LEAST: f64 = 0.995;
/// In time are participants of whose packets, as those who decrypt see them, no more is missing ...
pub const LOST_AT_MOST: f64 = 0.001;
/// ... and so many arrive within one frame interval. Half would let a server pass that joins every two frames, since one of
/// the two is in time.
pub const IN_TIME_AT_LEAST: f64 = 0.9;

/// What a number of participants has to meet to count as carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// [`DELIVERED_AT_LEAST`] arrived, no more than [`LOST_AT_MOST`] was lost, and [`IN_TIME_AT_LEAST`] arrived within one
    /// frame interval, or the time that was set.
    InTime,
    /// [`DELIVERED_AT_LEAST`] arrived, however late. What older versions counted.
    #[default]
    AtAll,
}

/// The most participants that were carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// How many.
    pub participants: u32,
    /// PeerConnections, those included that publish.
    pub peer_connections: u32,
    /// What arrived, UDP payload.
    pub received_bps: f64,
    /// What arrived.
    pub received_pps: f64,
    /// Packets that arrived of those that should have.
    pub delivered_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
    /// The server's CPU time for each packet that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// From the source's sending to a participant's receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delays>,
    /// [`Self::received_pps`] of the ceiling's by the same criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_share: Option<f64>,
    /// The bare loop's CPU time for each packet of the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efficiency_share: Option<f64>,
}

impl Criterion {
    /// The stricter one first.
    pub const BOTH: [Self; 2] = [Self::InTime, Self::AtAll];

    /// As figures are told by it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InTime => "in time",
            Self::AtAll => "at all",
        }
    }
}

impl Step {
    /// Whether it meets the criterion.
    pub fn meets(&self, criterion: Criterion) -> bool {
        match criterion {
            Criterion::InTime => self.in_time,
            Criterion::AtAll => self.carried,
        }
    }

    /// The server's CPU time for each packet that arrived.
    pub fn cpu_ns_per_packet(&self) -> Option<f64> {
        let ns = self.server_cpu_cores? * 1e9 / self.received_pps;
        Some(ns).filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// The bare loop's CPU time for each packet of the server's.
    pub fn efficiency_share(&self) -> Option<f64> {
        Some(self.loop_cpu_ns_per_packet? / self.cpu_ns_per_packet()?)
    }
}

/// The step with the most participants that meets the criterion.
pub fn best(steps: &[Step], criterion: Criterion) -> Option<&Step> {
    let meet = steps.iter().filter(|step| step.meets(criterion));
    meet.max_by_key(|step| step.participants)
}

impl Carried {
    /// In this step.
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
