//! The runs of all jobs, and the numbers that plots and tables take from them.

use std::collections::BTreeMap;

use super::figure::{Load, X, Y};
use super::peers::Peer;
use super::plan::Job;
use crate::record::{Criterion, RunRecord, Step, best};

/// The runs by the names of their jobs.
#[derive(Debug, Default)]
pub(super) struct Measured {
    runs: BTreeMap<String, Vec<RunRecord>>,
}

impl Measured {
    pub(super) fn add(&mut self, job: &Job, runs: Vec<RunRecord>) {
        self.runs.insert(job.name(), runs);
    }

    /// Returns the runs of a load against a server.
    pub(super) fn of(&self, load: &'static Load, peer: Peer) -> &[RunRecord] {
        let runs = self.runs.get(&Job { load, peer }.name());
        runs.map_or(&[], Vec::as_slice)
    }
}

/// Returns the points of a line over participants, streams or seconds.
pub(super) fn points(load: &Load, runs: &[RunRecord], x: X, y: Y) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = match x {
        X::Seconds | X::Progression => runs.first().map_or_else(Vec::new, |run| over_time(run, y)),
        X::Participants | X::Streams => {
            let of = |run: &RunRecord| over_steps(load, run, x, y);
            runs.iter().flat_map(of).collect()
        }
        X::At(_) => at(runs, y)
            .map(|value| (load.at, value))
            .into_iter()
            .collect(),
        X::Servers => Vec::new(),
    };
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn over_time(run: &RunRecord, y: Y) -> Vec<(f64, f64)> {
    let points = run.samples.iter().filter_map(|sample| {
        let value = match y {
            Y::Cpu => sample.server.as_ref()?.cpu_cores,
            Y::Memory => mib(sample.server.as_ref()?.rss_bytes),
            Y::In => sample.link.as_ref()?.to_server_bps / 1e6,
            Y::Out => sample.link.as_ref()?.from_server_bps / 1e6,
            _ => return None,
        };
        Some((sample.at_s, value))
    });
    points.collect()
}

/// The line goes on to the first number of participants that was not in time.
fn over_steps(load: &Load, run: &RunRecord, x: X, y: Y) -> Vec<(f64, f64)> {
    let most = best(&run.steps, Criterion::InTime).map_or(0, |step| step.participants);
    // Of a server that lost participants, those that are left say nothing.
    let late = run
        .steps
        .iter()
        .filter(|step| !step.in_time && step.participants > most);
    let first_late = late.map(|step| step.participants).min();
    let shown = run
        .steps
        .iter()
        .filter(|step| step.in_time || Some(step.participants) == first_late);
    let points = shown.filter_map(|step| {
        let count = f64::from(step.participants);
        let place = match x {
            X::Streams => count * (count - 1.0),
            _ => count + f64::from(load.besides),
        };
        Some((place, of_step(run, step, y)?))
    });
    points.collect()
}

/// Returns the figure of a step.
pub(super) fn of_step(run: &RunRecord, step: &Step, y: Y) -> Option<f64> {
    let link = |of: fn(&crate::record::LinkUse) -> f64| {
        let values = run
            .samples_of(step)
            .filter_map(|sample| Some(of(sample.link.as_ref()?)));
        let values: Vec<f64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64 / 1e6)
    };
    let value = match y {
        Y::Cpu => step.server_cpu_cores?,
        Y::Memory => mib(step.server_pss_bytes.or(step.server_rss_bytes)?),
        Y::In => link(|link| link.to_server_bps)?,
        Y::Out => link(|link| link.from_server_bps)?,
        Y::Both => link(|link| link.to_server_bps + link.from_server_bps)?,
        Y::DelayHalf => step.delay?.p50_us / 1e3,
        Y::Delay99 => step.delay?.p99_us / 1e3,
        Y::Gap => step.longest_gap_ms?,
        Y::Throughput => step.received_bps / 1e9,
        Y::Carried(times) => f64::from(step.participants * times),
        Y::CpuPerPacket => step.cpu_ns_per_packet()? / 1e3,
        Y::Joins | Y::MemoryEach | Y::TimesOne | Y::Hop | Y::RelayCost | Y::Gone => return None,
    };
    value.is_finite().then_some(value)
}

/// Returns the one figure of a run: that of the most in time. What is a maximum is 0 if nothing was
/// in time; the rest is that of the largest step then.
pub(super) fn at(runs: &[RunRecord], y: Y) -> Option<f64> {
    let run = runs.last()?;
    match y {
        Y::Joins => return run.summary.joins_per_cpu_s,
        Y::MemoryEach => return Some(run.summary.bytes_per_participant? / 1_024.0),
        Y::TimesOne => return run.cluster.as_ref()?.times_one,
        Y::Hop => return Some(run.cluster.as_ref()?.hop_p99_us()? / 1e3),
        Y::RelayCost => return run.cluster.as_ref()?.relay.as_ref()?.in_viewers(),
        Y::Gone => return run.cluster.as_ref()?.gone_s().max_by(f64::total_cmp),
        _ => {}
    }
    let in_time = best(&run.steps, Criterion::InTime);
    match y {
        Y::Throughput | Y::Carried(_) => match in_time {
            Some(step) => of_step(run, step, y),
            None => Some(0.0),
        },
        _ => {
            let largest = run.steps.iter().max_by_key(|step| step.participants);
            of_step(run, in_time.or(largest)?, y)
        }
    }
}

/// Returns the bare loop's figure in the same run, if it was measured and has one.
pub(super) fn ceiling(runs: &[RunRecord], y: Y) -> Option<f64> {
    let bare = &runs.last()?.ceiling.as_ref()?.in_time;
    match y {
        Y::Throughput => Some(bare.delivered_bps / 1e9),
        Y::Carried(times) => Some(bare.participants.unwrap_or(bare.viewers) * f64::from(times)),
        Y::CpuPerPacket => Some(bare.cpu_ns_per_packet() / 1e3),
        _ => None,
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::catalogue::entries;
    use crate::record::example;

    #[test]
    fn a_line_ends_at_the_first_number_that_is_late() {
        let run = example::report().runs.swap_remove(0);
        let viewers = entries::all()
            .find(|figure| figure.name == "viewers")
            .unwrap();
        let load = viewers.loads.first().unwrap();
        let runs = [run];
        let line = points(load, &runs, X::Participants, Y::Cpu);
        let last = line.last().unwrap().0;
        assert!((last - 7_000.0).abs() < 1.0, "{line:?}");
        assert_eq!(at(&runs, Y::Carried(8)), Some(48_000.0));
        assert!(ceiling(&runs, Y::Throughput).unwrap() > 19.0);
        assert_eq!(at(&runs, Y::Joins), Some(1_700.0));
    }
}
