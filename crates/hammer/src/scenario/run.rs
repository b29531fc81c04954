//! The phases of a run, the same for all scenarios: join, ramp, bisect, storm, churn.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{interval, sleep};

use super::ScenarioError;
use super::crowd::{Act, Crowd, Pace};
use super::load::Options;
use super::recorder::Recorder;
use super::target::Facts;
use crate::progress::Progress;
use crate::record::{Report, RunRecord, Sample, Scenario, Server, Step};
use crate::usage::{self, Sampler};

/// How long joins are started for a step of a ramp: a server that needs longer for so many is
/// overloaded, and would need ever longer.
const GROWTH: Duration = Duration::from_secs(20);
/// Who gets nothing in this time starves.
const STARVING: Duration = Duration::from_secs(1);

/// Lets participants do `acts` as the options say; gives the record of it. All have left when it
/// returns.
pub(super) async fn run(
    name: &str,
    options: &Options,
    facts: Facts,
    sampler: Sampler,
    crowd: Crowd,
    acts: Vec<Act>,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let cores = sampler.server_cores().to_vec();
    let mut run = Run {
        options,
        acts: acts.into(),
        recorder: Recorder::new(crowd.clone(), sampler, progress),
        crowd: crowd.clone(),
        joining: None,
        gap_ms: None,
    };
    let outcome = run.all().await;
    crowd.leave(crowd.len(), false).await;
    outcome?;

    let (joining, gap_ms) = (run.joining, run.gap_ms);
    let (samples, steps, mut summary) = run.recorder.finish();
    if let Some(joining) = joining {
        summary.joins_per_s = Some(joining.per_s);
        summary.joins_per_cpu_s = joining.per_cpu_s;
    }
    summary.longest_gap_ms = gap_ms;
    let target = &options.target;
    let server = target.name.clone().or(facts.name);
    Ok(RunRecord {
        scenario: Scenario {
            name: name.to_owned(),
            options: options.by_name(),
        },
        server: Server {
            name: server.unwrap_or_else(|| "server".to_owned()),
            version: facts.version,
            url: Some(target.janus.clone()),
            command: None,
            cores,
            srtp_profile: crowd.profile().map(|profile| profile.name().to_owned()),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: usage::machine(),
        started_unix_s: started.as_secs_f64(),
        round: 1,
        ceiling: None,
        samples,
        steps,
        summary,
    })
}

/// Writes the record to the file that the options name, if they do.
pub(super) fn write(options: &Options, record: &RunRecord) -> Result<(), ScenarioError> {
    let Some(path) = &options.json else {
        return Ok(());
    };
    let report = Report::new(record.scenario.name.clone(), vec![record.clone()]);
    report.write(path).map_err(|source| ScenarioError::Write {
        path: path.display().to_string(),
        source,
    })
}

/// A run under way.
struct Run<'a> {
    options: &'a Options,
    acts: Arc<[Act]>,
    crowd: Crowd,
    recorder: Recorder<'a>,
    joining: Option<Joining>,
    /// The longest gap where it is of interest: in the storm, else in the best step.
    gap_ms: Option<f64>,
}

/// How fast participants joined.
#[derive(Debug, Clone, Copy)]
struct Joining {
    per_s: f64,
    per_cpu_s: Option<f64>,
}

/// What joins took, before it is known what relaying took meanwhile.
struct Burst {
    joined: usize,
    length_s: f64,
    server_cpu_s: Option<f64>,
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), ScenarioError> {
        let mut last = match self.options.ramp {
            Some(step) => self.ramp(step).await?,
            None => {
                let burst = self.grow(self.options.viewers).await?;
                let step = self.step().await?;
                self.joining = Some(burst.per_s(None, &step));
                step
            }
        };
        self.gap_ms = last.longest_gap_ms;
        if let Some(more) = self.options.storm {
            let before = self.recorder.samples().len();
            let burst = self.grow(more).await?;
            let stormy = self.recorder.samples().get(before..).unwrap_or_default();
            self.gap_ms = gap_ms(stormy);
            let step = self.step().await?;
            self.joining = Some(burst.per_s(Some(&last), &step));
            last = step;
        }
        if let Some(per_s) = self.options.churn {
            self.churn(per_s, last.participants).await?;
        }
        Ok(())
    }

    /// Ever more participants until it is too much; gives the last step that was carried, or the first.
    async fn ramp(&mut self, mut step: u32) -> Result<Step, ScenarioError> {
        let mut carried: Option<Step> = None;
        let failed = loop {
            let now = self.crowd.len() as u32;
            let more = step.min(self.options.viewers.saturating_sub(now));
            if more == 0 {
                break None;
            }
            let burst = self.grow_at_most(more, Some(self.growth(more))).await?;
            let measured = self.step().await?;
            if self.joining.is_none() {
                self.joining = Some(burst.per_s(None, &measured));
            }
            let all_came = self.crowd.len() as u32 >= now + more;
            if !measured.carried || !all_came {
                break Some(measured);
            }
            carried = Some(measured);
            step = (f64::from(step) * self.options.ramp_factor).round() as u32;
        };
        if let (Some(failed), Some(precision)) = (&failed, self.options.bisect) {
            let from = carried.as_ref().map_or(0, |step| step.participants);
            if let Some(better) = self.bisect(from, failed.participants, precision).await? {
                carried = Some(better);
            }
        }
        carried
            .or(failed)
            .ok_or_else(|| ScenarioError::Nobody("no step was measured".to_owned()))
    }

    /// Looks for the most participants that are carried, between `good` and `bad`.
    async fn bisect(
        &mut self,
        mut good: u32,
        mut bad: u32,
        precision: u32,
    ) -> Result<Option<Step>, ScenarioError> {
        let mut best = None;
        while bad.saturating_sub(good) > precision {
            let middle = good.midpoint(bad);
            let now = self.crowd.len() as u32;
            if now > middle {
                let leave = self.crowd.clone();
                let leaving = async move { leave.leave((now - middle) as usize, false).await };
                self.recorder.during(leaving).await?;
            } else {
                self.grow_at_most(middle - now, Some(self.growth(middle - now)))
                    .await?;
            }
            self.dismiss_starving().await?;
            let step = self.step().await?;
            if step.carried && step.participants > good {
                good = step.participants;
                best = Some(step);
            } else {
                bad = middle;
            }
        }
        Ok(best)
    }

    /// How long `count` may take to join in a ramp.
    fn growth(&self, count: u32) -> Duration {
        let rate = self.options.join_rate;
        let wished = if rate > 0.0 {
            f64::from(count) / rate
        } else {
            0.0
        };
        GROWTH + Duration::from_secs_f64(wished)
    }

    /// Lets those go whom the server gave up while it was overloaded: a smaller number is measured
    /// without them.
    async fn dismiss_starving(&mut self) -> Result<(), ScenarioError> {
        let crowd = self.crowd.clone();
        let mut dismissed = self.recorder.during(crowd.dismiss_starving()).await?;
        self.recorder.during(sleep(STARVING)).await?;
        dismissed += self.recorder.during(crowd.dismiss_starving()).await?;
        if dismissed > 0 {
            self.recorder.warn(format!(
                "{dismissed} participants got nothing any more after an overload, and were dismissed"
            ));
        }
        Ok(())
    }

    /// Lets `count` more join, as fast as the options say.
    async fn grow(&mut self, count: u32) -> Result<Burst, ScenarioError> {
        self.grow_at_most(count, None).await
    }

    /// The same; no more joins are started after the time `at_most`.
    async fn grow_at_most(
        &mut self,
        count: u32,
        at_most: Option<Duration>,
    ) -> Result<Burst, ScenarioError> {
        self.recorder.begin().await?;
        self.recorder.note(&format!("{count} more join"));
        let first = self.recorder.samples().len();
        let before = self.crowd.len();
        let pace = Pace {
            per_s: self.options.join_rate,
            at_a_time: self.options.joins_at_a_time as usize,
            at_most,
        };
        let crowd = self.crowd.clone();
        let joining = crowd.join(&self.acts, count as usize, pace);
        self.recorder.during(joining).await?;
        self.recorder.sample().await?;
        if self.crowd.len() == 0 {
            let last = self.crowd.last_failure().unwrap_or_default();
            return Err(ScenarioError::Nobody(last));
        }
        let cpu = self.recorder.server_cpu_s(first);
        let samples = self.recorder.samples().get(first..).unwrap_or_default();
        Ok(Burst {
            joined: self.crowd.len().saturating_sub(before),
            length_s: samples.iter().map(|s| s.length_s).sum(),
            server_cpu_s: cpu.map(|(cpu, _)| cpu),
        })
    }

    /// Measures the participants that there are.
    async fn step(&mut self) -> Result<Step, ScenarioError> {
        let settle = Duration::from_secs_f64(self.options.settle);
        let duration = Duration::from_secs_f64(self.options.duration);
        self.recorder.during(sleep(settle)).await?;
        self.recorder.begin_step().await?;
        self.recorder.during(sleep(duration)).await?;
        self.recorder.end_step().await
    }

    /// Participants leave and others join, as many each second.
    async fn churn(&mut self, per_s: u32, participants: u32) -> Result<(), ScenarioError> {
        let pace = Pace {
            per_s: f64::from(per_s),
            at_a_time: self.options.joins_at_a_time as usize,
            at_most: None,
        };
        let crowd = self.crowd.clone();
        let acts = Arc::clone(&self.acts);
        let count = (f64::from(per_s) * self.options.duration).ceil() as usize;
        let leaving = async {
            let mut clock = interval(Duration::from_secs_f64(1.0 / f64::from(per_s)));
            for _ in 0..count {
                clock.tick().await;
                crowd.leave(1, true).await;
            }
        };
        let joining = crowd.join(&acts, count, pace);
        self.recorder.begin_step().await?;
        self.recorder
            .during(async { tokio::join!(leaving, joining) })
            .await?;
        let step = self.recorder.end_step().await?;
        let lost = participants.saturating_sub(step.participants);
        if lost > 0 {
            self.recorder
                .warn(format!("{lost} participants fewer after churn than before"));
        }
        Ok(())
    }
}

impl Burst {
    /// Relaying is taken out of the CPU time: the mean of what it took before and takes after.
    fn per_s(&self, before: Option<&Step>, after: &Step) -> Joining {
        let joined = self.joined as f64;
        let relaying = |step: Option<&Step>| step.map_or(Some(0.0), |step| step.server_cpu_cores);
        let relaying = relaying(before).zip(relaying(Some(after)));
        let cpu_s = self
            .server_cpu_s
            .zip(relaying)
            .map(|(cpu, (before, after))| cpu - self.length_s * (before + after) / 2.0);
        Joining {
            per_s: joined / self.length_s.max(1e-9),
            per_cpu_s: cpu_s.filter(|cpu| *cpu > 0.0).map(|cpu| joined / cpu),
        }
    }
}

fn gap_ms(samples: &[Sample]) -> Option<f64> {
    samples
        .iter()
        .filter_map(|s| s.longest_gap_ms)
        .max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_paid_without_relaying() {
        let burst = Burst {
            joined: 1_000,
            length_s: 2.0,
            server_cpu_s: Some(1.5),
        };
        let step = |cpu| Step {
            server_cpu_cores: Some(cpu),
            ..Step::default()
        };
        let joining = burst.per_s(Some(&step(0.2)), &step(0.3));
        assert_eq!(joining.per_s, 500.0);
        assert_eq!(joining.per_cpu_s, Some(1_000.0));
        assert_eq!(burst.per_s(None, &Step::default()).per_cpu_s, None);
    }
}
