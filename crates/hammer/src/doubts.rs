//! Doubts about the figures of a run, besides hammer's own limits, which the scenarios check.

use crate::figures::{percent, time_us};
use crate::record::{Criterion, DELIVERED_AT_LEAST, RunRecord, Sample};

/// The least share of the time for which the loop has to have its core. Otherwise something else
/// ran there.
pub(crate) const UNDISTURBED: f64 = 0.97;
/// The most of a core that the hypervisor may take.
const STOLEN: f64 = 0.02;
/// The least idle share of a server's cores from which something else was the limit.
const SPARE: f64 = 0.85;

/// The 99th percentile of a core's lateness above which it distorts the delays, in microseconds.
const LATE_US: f64 = 200.0;

/// The doubt about hammer itself.
pub(crate) const NOT_OPTIMISED: &str =
    "hammer was built without optimisation: its ceiling and its own limit are too low";

/// Adds a warning for each new doubt.
pub fn add(run: &mut RunRecord) {
    for doubt in of(run) {
        if !run.summary.warnings.contains(&doubt) {
            run.summary.warnings.push(doubt);
        }
    }
}

/// Returns one line for each doubt.
fn of(run: &RunRecord) -> Vec<String> {
    let mut doubts = Vec::new();
    if cfg!(debug_assertions) {
        doubts.push(NOT_OPTIMISED.to_owned());
    }
    if let Some(ceiling) = &run.ceiling {
        for criterion in Criterion::BOTH {
            let (name, Some(bare)) = (criterion.name(), ceiling.of(criterion)) else {
                continue;
            };
            if bare.delivered_share < DELIVERED_AT_LEAST {
                let share = percent(bare.delivered_share);
                doubts.push(format!(
                    "of what the ceiling's loop sent {name} only {share} was counted"
                ));
            }
            if let Some(share) = bare.cpu_share.filter(|share| *share < UNDISTURBED) {
                doubts.push(format!(
                    "the ceiling's loop {name} had its core for only {} of the time",
                    percent(share)
                ));
            }
        }
    }
    for late in &run.lateness {
        if late.p99_us >= LATE_US {
            let (core, p99) = (late.core, time_us(late.p99_us));
            doubts.push(format!(
                "core {core} without any load answers 1 % of the time after more than {p99}: so late are packets too"
            ));
        }
    }
    let failed = run.steps.iter().find(|step| !step.in_time);
    if let Some(failed) = failed {
        let samples: Vec<&Sample> = run.samples_of(failed).collect();
        let busy = mean(&samples, |sample| {
            highest(&sample.server.as_ref()?.core_busy_share)
        });
        if let Some(busy) = busy.filter(|busy| *busy < SPARE) {
            let busy = percent(busy);
            doubts.push(format!(
                "the server's cores were only {busy} busy when not all came in time any more"
            ));
        }
    }
    let all: Vec<&Sample> = run.samples.iter().collect();
    let stolen = mean(&all, |sample| Some(sample.load.as_ref()?.stolen_cores));
    if let Some(stolen) = stolen.filter(|stolen| *stolen >= STOLEN) {
        doubts.push(format!("the hypervisor took {} of a core", percent(stolen)));
    }
    doubts
}

fn mean(samples: &[&Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = samples.iter().filter_map(|sample| of(sample)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn highest(shares: &[f64]) -> Option<f64> {
    shares.iter().copied().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;
    use crate::record::{Lateness, LoadUse, ServerUse};

    #[test]
    fn a_clean_run_has_none_and_a_disturbed_one_says_why() {
        let Some(mut run) = example::report().runs.into_iter().next() else {
            unreachable!("the example has runs");
        };
        let own: &[&str] = match cfg!(debug_assertions) {
            true => &[NOT_OPTIMISED],
            false => &[],
        };
        assert_eq!(of(&run), own);
        for sample in &mut run.samples {
            sample.server = Some(ServerUse {
                core_busy_share: vec![0.2, 0.5],
                ..ServerUse::default()
            });
            sample.load = Some(LoadUse {
                stolen_cores: 0.1,
                ..LoadUse::default()
            });
        }
        if let Some(ceiling) = &mut run.ceiling {
            ceiling.in_time.cpu_share = Some(0.5);
            ceiling.in_time.delivered_share = 0.9;
        }
        run.lateness = [100.0, 1_500.0]
            .into_iter()
            .enumerate()
            .map(|(core, p99_us)| Lateness {
                core,
                p99_us,
                max_us: 20_000.0,
            })
            .collect();
        add(&mut run);
        add(&mut run);
        assert_eq!(
            run.summary.warnings.len(),
            5 + own.len(),
            "{:?}",
            run.summary.warnings
        );
    }
}
