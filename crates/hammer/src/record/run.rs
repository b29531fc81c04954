//! The record of one run: one scenario against one server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Browsers, Ceiling, Cluster, Criterion, Sample, Step, Summary};

/// One scenario against one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The scenario.
    pub scenario: Scenario,
    /// The server.
    pub server: Server,
    /// hammer's own version.
    pub version: String,
    /// The machine.
    #[serde(default)]
    pub machine: Machine,
    /// The start, in seconds since 1970 (UTC).
    pub started_unix_s: f64,
    /// The number of the round within one call, from 1.
    pub round: u32,
    /// The most that the server's core can do with such packets, measured in the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// The delay with which the cores of server and load answered before there was load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lateness: Vec<Lateness>,
    /// Samples, one per second.
    pub samples: Vec<Sample>,
    /// The times of constant load. A scenario without such times has one step for the whole run.
    pub steps: Vec<Step>,
    /// The summary.
    pub summary: Summary,
    /// The real browsers that took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browsers: Option<Browsers>,
    /// The nodes, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
}

/// What was done to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The command's name, such as `streaming`.
    pub name: String,
    /// The options, by their names on the command line without the dashes.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
}

/// The server under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The name in reports. `ceiling` for the bare loop.
    pub name: String,
    /// The name and version that the server reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The command by which `hammer lab` started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The cores that it may use, if pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<usize>,
    /// The negotiated SRTP profile, by its name in OpenSSL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtp_profile: Option<String>,
    /// The events of its webhook, if `hammer lab` listened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// What came by a server's webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// The number of events.
    pub events: u64,
    /// The number of requests that carried them.
    pub requests: u64,
    /// The size of their bodies.
    pub bytes: u64,
}

/// The machine of server and hammer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that the kernel reports.
    pub cores: u32,
    /// The kernel's release.
    pub kernel: String,
}

/// The delay with which a core answers by itself: the least delay of anything on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The core's number.
    pub core: usize,
    /// 99 % of the answers were faster.
    pub p99_us: f64,
    /// The slowest answer.
    pub max_us: f64,
}

impl RunRecord {
    /// Returns the samples within `step`.
    pub fn samples_of(&self, step: &Step) -> impl Iterator<Item = &Sample> {
        // Samples and steps are cut at slightly different moments.
        let (from, to) = (step.start_s - 0.1, step.end_s + 0.1);
        let within =
            move |sample: &&Sample| sample.at_s - sample.length_s >= from && sample.at_s <= to;
        self.samples.iter().filter(within)
    }

    /// Compares the figures with the matching ceilings.
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
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::record::example;

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
}
