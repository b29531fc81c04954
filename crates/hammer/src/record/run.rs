//! One scenario against one server, once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ceiling, Criterion, Sample, Step, Summary};

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

impl RunRecord {
    /// The samples that lie within `step`.
    pub fn samples_of(&self, step: &Step) -> impl Iterator<Item = &Sample> {
        // Samples and steps are cut at slightly different moments.
        let (from, to) = (step.start_s - 0.1, step.end_s + 0.1);
        let within =
            move |sample: &&Sample| sample.at_s - sample.length_s >= from && sample.at_s <= to;
        self.samples.iter().filter(within)
    }

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
