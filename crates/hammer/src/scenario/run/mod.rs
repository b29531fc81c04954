//! The phases of a run, the same for all scenarios: join, ramp, bisect, storm, churn.

mod join_cost;
mod recorder;
mod search;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{interval, sleep};

use super::ScenarioError;
use super::crowd::{Act, Crowd, Pace};
use super::load::{Flow, Options};
use super::stage::Stage;
use super::target::Facts;
use crate::figures;
use crate::machine::{usage, wall_clock};
use crate::progress::Progress;
use crate::record::{
    Carried, Criterion, Delays, Held, Leaving, Report, Resumed, RunRecord, Sample, Scenario,
    Server, Step, Summary, best,
};
use join_cost::{Burst, Joining};
pub(super) use recorder::cpu_cores;
use recorder::{Figures, Recorder};

/// The longest time of starting joins for a step of a ramp. A server that needs longer is
/// overloaded, and would need ever longer.
const GROWTH: Duration = Duration::from_secs(20);
/// The seconds for queues to empty after an overload.
const DRAIN_TRIES: u32 = 15;
/// The seconds for memory to settle.
const STEADY_TRIES: u32 = 10;
/// The growth of memory above which it is not freed while all come and leave.
const STEADY_MEMORY: f64 = 0.05;
/// A participant that receives nothing for this time starves.
const STARVING: Duration = Duration::from_secs(1);

/// Lets the participants of `crowd` do `acts` as the options say. Returns the record when all have
/// left.
pub(super) async fn run(
    stage: Stage<'_>,
    crowd: Crowd,
    flow: &Flow,
    acts: Acts,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let started = wall_clock();
    let Stage {
        load: options,
        facts,
        sampler,
        ..
    } = stage;
    let cores = sampler.server_cores().to_vec();
    let mut run = Run {
        options,
        in_time: options.in_time(flow),
        acts,
        anew: 0,
        recorder: Recorder::new(
            crowd.clone(),
            sampler,
            progress,
            options.in_time(flow),
            flow,
        ),
        crowd: crowd.clone(),
        joining: None,
        gap_ms: None,
        leaving: None,
        resumed: None,
        held: None,
        overloaded: false,
    };
    let outcome = run.all().await;
    crowd.leave(crowd.len(), false).await;
    outcome?;

    let (joining, gap_ms, leaving) = (run.joining, run.gap_ms, run.leaving);
    let (held, resumed) = (run.held.take(), run.resumed);
    let Figures {
        samples,
        steps,
        mut summary,
    } = run.recorder.finish();
    if let Some(joining) = joining {
        summary.joins_per_s = Some(joining.per_s);
        summary.joins_per_cpu_s = joining.per_cpu_s;
    }
    summary.longest_gap_ms = gap_ms;
    let period_ms = flow.period.as_secs_f64() * 1e3;
    summary.longest_gap_frames = gap_ms.map(|gap_ms| gap_ms / period_ms);
    summary.leaving = leaving;
    summary.resumed = resumed;
    summary.held = held;
    let most = |criterion| best(&steps, criterion);
    // A given number is carried at all if it is carried in time.
    let looked_for = options.at_all || options.ramp.is_none() && most(Criterion::InTime).is_none();
    let at_all = most(Criterion::AtAll).filter(|_| looked_for);
    summary.at_all = at_all.map(Carried::of);
    let mut record = record(options, flow, facts, started);
    record.server.cores = cores;
    record.server.srtp_profile = crowd.profile().map(|profile| profile.name().to_owned());
    Ok(RunRecord {
        samples,
        steps,
        summary,
        ..record
    })
}

/// Creates the record, without figures, of a run that started at this time since 1970.
pub(super) fn record(options: &Options, flow: &Flow, facts: Facts, started: Duration) -> RunRecord {
    let mut named = options.by_name();
    named.extend(flow.options.clone());
    let target = &options.target;
    let server = target.name.clone().or(facts.name);
    RunRecord {
        scenario: Scenario {
            name: flow.name.to_owned(),
            options: named,
        },
        server: Server {
            name: server.unwrap_or_else(|| "server".to_owned()),
            version: facts.version,
            url: Some(target.janus.clone()),
            ..Server::default()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: usage::machine(),
        started_unix_s: started.as_secs_f64(),
        round: 1,
        ceiling: None,
        lateness: Vec::new(),
        samples: Vec::new(),
        steps: Vec::new(),
        summary: Summary::default(),
        browsers: None,
        cluster: None,
    }
}

/// Writes the record to the file of the options, if any.
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

/// What participants do.
pub(super) enum Acts {
    /// Participants join one by one, and take turns at these.
    Each(Vec<Act>),
    /// A number of participants acts together. Another number needs a new set.
    Anew(Box<dyn Fn(u32) -> Act>),
}

/// A run in progress.
struct Run<'a> {
    options: &'a Options,
    /// The time within which packets count as in time.
    in_time: Duration,
    acts: Acts,
    /// The size of the current set of participants.
    anew: u32,
    crowd: Crowd,
    recorder: Recorder<'a>,
    joining: Option<Joining>,
    /// The longest gap that is of interest: in the storm, else in the best step.
    gap_ms: Option<f64>,
    leaving: Option<Leaving>,
    resumed: Option<Resumed>,
    held: Option<Held>,
    /// The last step was not carried, so queues may be full.
    overloaded: bool,
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), ScenarioError> {
        let mut last = match self.options.ramp {
            Some(step) => self.ramp(step).await?,
            None => {
                let burst = self.grow(self.options.viewers).await?;
                let step = self.step().await?;
                self.note_joins(&burst, None, &step);
                step
            }
        };
        self.gap_ms = last.longest_gap_ms;
        if let Some(share) = self.options.hold {
            self.hold(share, &last).await?;
        }
        let Options {
            storm,
            churn,
            leave,
            resume,
            ..
        } = self.options;
        if self.options.ramp.is_some()
            && (storm.is_some() || churn.is_some() || leave.is_some() || *resume)
        {
            // The storm adds to a carried load, not to an overload.
            self.resize(last.participants).await?;
            last = self.step().await?;
        }
        if let Some(more) = *storm {
            let before = self.recorder.samples().len();
            self.crowd.load().storm(true);
            let burst = self.grow(more).await?;
            self.crowd.load().storm(false);
            let stormy = self.recorder.samples().get(before..).unwrap_or_default();
            self.gap_ms = gap_ms(stormy);
            let step = self.step().await?;
            self.note_joins(&burst, Some(&last), &step);
            last = step;
        }
        if let Some(per_s) = *churn {
            self.churn(per_s, last.participants).await?;
        }
        if *resume {
            self.resume().await?;
        }
        if let Some(times) = *leave {
            self.leave_again_and_again(times).await?;
        }
        Ok(())
    }

    fn note_joins(&mut self, burst: &Burst, before: Option<&Step>, after: &Step) {
        let joining = burst.per_s(before, after);
        if joining.per_cpu_s.is_none() && burst.server_cpu_s.is_some() {
            self.recorder.warn(
                "relaying took so much of the server's CPU time that joins cannot be told from it: \
                 joins/CPU s takes less media"
                    .to_owned(),
            );
        }
        self.joining = Some(joining);
    }

    /// Measures a share of the most that were carried.
    async fn hold(&mut self, share: f64, best: &Step) -> Result<(), ScenarioError> {
        let wanted = (f64::from(best.participants) * share).round().max(1.0) as u32;
        self.recorder.note(&format!(
            "{} of what was carried: {wanted}",
            figures::percent(share)
        ));
        self.resize(wanted).await?;
        let step = self.step().await?;
        self.held = Some(Held {
            share,
            participants: step.participants,
            delivered_share: step.delivered_share,
            server_cpu_cores: step.server_cpu_cores,
            efficiency_share: None,
            delay: step.delay,
            calm: step.calm,
        });
        Ok(())
    }

    /// Breaks all connections, lets their participants resume, and watches the media meanwhile.
    async fn resume(&mut self) -> Result<(), ScenarioError> {
        self.recorder.note("all connections break, and resume");
        self.recorder.begin().await?;
        let first = self.recorder.samples().len();
        let crowd = self.crowd.clone();
        let mut resumptions = self
            .recorder
            .during(async move { crowd.resume().await })
            .await?;
        // A gap ends with the next packet.
        self.recorder.during(sleep(STARVING)).await?;
        self.recorder.sample().await?;
        let samples = self.recorder.samples().get(first..).unwrap_or_default();
        let longest_gap_ms = gap_ms(samples);
        let delay = Delays::of(&mut resumptions.delays_us);
        let failed = resumptions.failed;
        match (delay, resumptions.failure) {
            (_, Some(reason)) => {
                let warning = format!("{failed} sessions could not be resumed: {reason}");
                self.recorder.warn(warning);
            }
            (None, None) => {
                let warning = "no session can be resumed: --resume is for --livekit";
                self.recorder.warn(warning.to_owned());
            }
            (Some(_), None) => {}
        }
        self.resumed = Some(Resumed {
            failed,
            delay,
            longest_gap_ms,
        });
        Ok(())
    }

    /// Lets all participants leave and join again, and compares the server's memory.
    async fn leave_again_and_again(&mut self, times: u32) -> Result<(), ScenarioError> {
        let Some(before_bytes) = self.recorder.empty_bytes() else {
            self.recorder
                .warn("the server's memory is not watched: --server-pid says whose".to_owned());
            return Ok(());
        };
        let count = self.present();
        let mut leaving = Leaving {
            before_bytes,
            ..Leaving::default()
        };
        for time in 0..times {
            if time > 0 {
                self.grow(count).await?;
            }
            leaving.full_bytes.extend(self.steady_memory().await?);
            self.all_leave().await?;
            leaving.empty_bytes.extend(self.steady_memory().await?);
        }
        let growth = leaving
            .growth_share()
            .filter(|share| *share > STEADY_MEMORY);
        if let Some(growth) = growth {
            self.recorder.warn(format!(
                "the server's memory grew by {} while all came and left {times} times",
                figures::percent(growth)
            ));
        }
        self.leaving = Some(leaving);
        Ok(())
    }

    /// Returns the server's memory when it has settled.
    async fn steady_memory(&mut self) -> Result<Option<u64>, ScenarioError> {
        let settle = Duration::from_secs_f64(self.options.settle);
        self.recorder.during(sleep(settle)).await?;
        let mut before = self.recorder.server_memory_bytes();
        for _ in 0..STEADY_TRIES {
            self.recorder.during(sleep(Duration::from_secs(1))).await?;
            let now = self.recorder.server_memory_bytes();
            let pair = before
                .zip(now)
                .map(|(before, now)| (before as f64, now as f64));
            if pair.is_none_or(|(before, now)| (now / before.max(1.0) - 1.0).abs() < 0.005) {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }

    /// Returns the number of participants, or of units of them.
    fn present(&self) -> u32 {
        match &self.acts {
            Acts::Each(_) => self.crowd.len() as u32,
            Acts::Anew(_) if self.crowd.len() == 0 => 0,
            Acts::Anew(_) => self.anew,
        }
    }

    /// Lets participants leave or join until there are `wanted`.
    async fn resize(&mut self, wanted: u32) -> Result<(), ScenarioError> {
        let now = self.present();
        match &self.acts {
            Acts::Each(_) if now > wanted => {
                let crowd = self.crowd.clone();
                let leaving = async move { crowd.leave((now - wanted) as usize, false).await };
                self.recorder.during(leaving).await?;
            }
            _ if now == wanted => {}
            Acts::Each(_) => {
                let more = wanted - now;
                self.grow_at_most(more, Some(self.growth(more))).await?;
            }
            Acts::Anew(_) => {
                self.all_leave().await?;
                self.grow_at_most(wanted, None).await?;
            }
        }
        self.dismiss_starving().await
    }

    async fn all_leave(&mut self) -> Result<(), ScenarioError> {
        let crowd = self.crowd.clone();
        let leaving = async move { crowd.leave(crowd.len(), false).await };
        self.recorder.during(leaving).await
    }

    /// Returns the longest time for `count` joins in a ramp.
    fn growth(&self, count: u32) -> Duration {
        let rate = self.options.join_rate;
        let wished = if rate > 0.0 {
            f64::from(count) / rate
        } else {
            0.0
        };
        GROWTH + Duration::from_secs_f64(wished)
    }

    /// Removes participants that the server dropped while it was overloaded. A smaller number is
    /// measured without them.
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

    /// Lets `count` more participants join, at the pace of the options.
    async fn grow(&mut self, count: u32) -> Result<Burst, ScenarioError> {
        self.grow_at_most(count, None).await
    }

    /// Like `grow`, but starts no join after the time `at_most`.
    async fn grow_at_most(
        &mut self,
        count: u32,
        at_most: Option<Duration>,
    ) -> Result<Burst, ScenarioError> {
        self.recorder.begin().await?;
        self.recorder.note(&format!("{count} more join"));
        let first = self.recorder.samples().len();
        let (acts, joining, before): (Arc<[Act]>, usize, usize) = match &self.acts {
            Acts::Each(acts) => (
                acts.clone().into(),
                count as usize,
                self.crowd.connections(),
            ),
            Acts::Anew(act) => {
                let all = self.present() + count;
                let act = act(all);
                self.all_leave().await?;
                self.anew = all;
                (vec![act].into(), 1, 0)
            }
        };
        let first = match before {
            0 => self.recorder.samples().len(),
            _ => first,
        };
        let pace = Pace {
            per_s: self.options.join_rate,
            at_a_time: self.options.joins_at_a_time as usize,
            at_most,
        };
        let crowd = self.crowd.clone();
        let joining = crowd.join(&acts, joining, pace);
        self.recorder.during(joining).await?;
        self.recorder.sample().await?;
        if self.crowd.len() == 0 {
            let last = self.crowd.last_failure().unwrap_or_default();
            return Err(ScenarioError::Nobody(last));
        }
        let samples = self.recorder.samples().get(first..).unwrap_or_default();
        Ok(Burst {
            joined: self.crowd.connections().saturating_sub(before),
            failed: samples.iter().map(|s| s.failed).sum(),
            length_s: samples.iter().map(|s| s.length_s).sum(),
            packets: samples.iter().map(|s| s.received_packets).sum(),
            server_cpu_s: self.recorder.server_cpu_s(first),
        })
    }

    /// Measures the current participants.
    async fn step(&mut self) -> Result<Step, ScenarioError> {
        let settle = Duration::from_secs_f64(self.options.settle);
        let duration = Duration::from_secs_f64(self.options.duration);
        self.recorder.during(sleep(settle)).await?;
        if self.overloaded {
            self.drain().await?;
        }
        self.recorder.begin_step().await?;
        self.recorder.during(sleep(duration)).await?;
        let step = self.recorder.end_step().await?;
        self.overloaded = !step.in_time;
        Ok(step)
    }

    /// Waits until the queues of an overload are empty, or stay as they are. Otherwise, older
    /// packets would count for the next step.
    async fn drain(&mut self) -> Result<(), ScenarioError> {
        self.recorder.note("waiting for queues to empty");
        let on_time_us = self.in_time.as_secs_f64() * 1e6;
        for _ in 0..DRAIN_TRIES {
            self.recorder.begin().await?;
            self.recorder
                .during(sleep(Duration::from_millis(990)))
                .await?;
            self.recorder.sample().await?;
            if let [.., before, now] = self.recorder.samples()
                && has_settled(before, now, on_time_us)
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Lets participants leave and others join at the same rate.
    async fn churn(&mut self, per_s: u32, participants: u32) -> Result<(), ScenarioError> {
        let pace = Pace {
            per_s: f64::from(per_s),
            at_a_time: self.options.joins_at_a_time as usize,
            at_most: None,
        };
        let crowd = self.crowd.clone();
        let acts: Arc<[Act]> = match &self.acts {
            Acts::Each(acts) => acts.clone().into(),
            Acts::Anew(_) => return Ok(()),
        };
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

/// Returns whether queues have emptied, so that packets take at most `on_time_us`, or the server
/// does what it can.
fn has_settled(before: &Sample, now: &Sample, on_time_us: f64) -> bool {
    let share = |s: &Sample| s.received_packets as f64 / s.expected_packets.max(1) as f64;
    let median = |s: &Sample| s.delay.map(|delay| delay.p50_us);
    let close = |a: f64, b: f64, within: f64| (a / b.max(1e-9) - 1.0).abs() < within;
    let on_time = close(share(now), 1.0, 0.005) && median(now).is_none_or(|us| us < on_time_us);
    let steady = close(share(before), share(now), 0.02)
        && median(before)
            .zip(median(now))
            .is_none_or(|(before, now)| close(before, now, 0.2));
    on_time || steady
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
    use crate::record::Delays;

    #[test]
    fn a_queue_has_emptied_when_packets_are_on_time_or_nothing_changes() {
        let sample = |received, p50_us| Sample {
            expected_packets: 1_000,
            received_packets: received,
            delay: Some(Delays {
                p50_us,
                ..Delays::default()
            }),
            ..Sample::default()
        };
        let (late, later) = (sample(900, 400_000.0), sample(1_000, 250_000.0));
        assert!(!has_settled(&late, &later, 33_333.0));
        assert!(has_settled(&late, &sample(1_000, 900.0), 33_333.0));
        assert!(has_settled(&late, &sample(895, 410_000.0), 33_333.0));
        assert!(!has_settled(&late, &sample(1_000, 900.0), 500.0));
    }
}
