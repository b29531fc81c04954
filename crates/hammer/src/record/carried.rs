//! When a number of participants counts as carried, in time and at all.

use serde::{Deserialize, Serialize};

use super::{Delays, RunRecord, Step, Summary};

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

impl Summary {
    /// The most that was carried by a criterion; none if that is not known.
    pub fn most(&self, criterion: Criterion) -> Option<Carried> {
        if criterion != self.criterion {
            return self
                .at_all
                .clone()
                .filter(|_| criterion == Criterion::AtAll);
        }
        Some(Carried {
            participants: self.carried_participants,
            peer_connections: self.peer_connections,
            received_bps: self.carried_bps,
            received_pps: self.carried_pps,
            delivered_share: self.delivered_share,
            server_cpu_cores: self.server_cpu_cores,
            cpu_ns_per_packet: self.cpu_ns_per_packet,
            delay: self.delay,
            // Older versions compared what was carried at all with what is now the ceiling in time.
            ceiling_share: self
                .ceiling_share
                .filter(|_| criterion == Criterion::InTime),
            efficiency_share: self.efficiency_share,
        })
    }
}

impl RunRecord {
    /// Tells how the figures compare with the ceilings that belong to them.
    pub fn compare(&mut self) {
        let Some(ceiling) = &self.ceiling else {
            return;
        };
        let share = |pps: f64, criterion| Some(pps / ceiling.of(criterion)?.delivered_pps.max(1.0));
        let summary = &mut self.summary;
        summary.ceiling_share = share(summary.carried_pps, summary.criterion);
        let efficiency = |participants| {
            let steps = self.steps.iter().rev();
            let mut of = steps.filter(|step| step.participants == participants);
            of.find_map(Step::efficiency_share)
        };
        summary.efficiency_share = efficiency(summary.carried_participants);
        if let Some(at_all) = &mut summary.at_all {
            at_all.ceiling_share = share(at_all.received_pps, Criterion::AtAll);
            at_all.efficiency_share = efficiency(at_all.participants);
        }
        if let Some(held) = &mut summary.held {
            held.efficiency_share = efficiency(held.participants);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::example;

    #[test]
    fn each_figure_is_compared_with_the_ceiling_of_its_criterion() {
        let mut run = example::report().runs.swap_remove(0);
        let ceiling = run.ceiling.clone().unwrap();
        for step in &mut run.steps {
            step.loop_cpu_ns_per_packet = step.cpu_ns_per_packet().map(|ns| ns * 0.8);
        }
        run.compare();
        let most = |criterion| run.summary.most(criterion).unwrap();
        let (in_time, at_all) = (most(Criterion::InTime), most(Criterion::AtAll));
        assert_eq!((in_time.participants, at_all.participants), (6_000, 7_000));
        let share = in_time.received_pps / ceiling.in_time.delivered_pps;
        assert_eq!(in_time.ceiling_share, Some(share));
        let share = at_all.received_pps / ceiling.at_all.unwrap().delivered_pps;
        assert_eq!(at_all.ceiling_share, Some(share));
        assert!((at_all.efficiency_share.unwrap() - 0.8).abs() < 1e-9);
    }

    #[test]
    fn what_older_versions_counted_is_carried_at_all() {
        let old = Summary {
            carried_participants: 7,
            ceiling_share: Some(1.39),
            ..Summary::default()
        };
        assert_eq!(old.most(Criterion::InTime), None);
        let at_all = old.most(Criterion::AtAll).unwrap();
        assert_eq!((at_all.participants, at_all.ceiling_share), (7, None));
    }
}
