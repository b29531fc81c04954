//! One source to many viewers, through mountpoints of the streaming plugin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::time::{interval, sleep};

use super::crowd::{Act, Crowd, Pace};
use super::mountpoint::Maker;
use super::recorder::Recorder;
use super::target::{Facts, Target};
use super::{ScenarioError, block_on, raise_descriptor_limit, seconds};
use crate::progress::Progress;
use crate::record::{Machine, Report, RunRecord, Sample, Scenario, Server, Step};
use crate::source::{Source, SourceConfig, VideoCodec};
use crate::traffic::Traffic;
use crate::usage::{self, Sampler};
use crate::viewer::{Factory, LoadThreads};

/// What to do.
#[derive(Debug, Clone, Args)]
#[group(id = "streaming")]
pub struct Options {
    /// Which server
    #[command(flatten)]
    pub target: Target,
    /// What each viewer gets
    #[command(flatten)]
    pub traffic: Traffic,
    /// What the video looks like
    #[arg(long, value_enum, default_value_t)]
    pub codec: VideoCodec,
    /// Time between two keyframes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub keyframes: f64,
    /// Viewers; with --ramp: the most that are tried
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub viewers: u32,
    /// Stress test: so many more viewers each time, until less than 99.5 % is delivered
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ramp: Option<u32>,
    /// After --ramp: look for the maximum between the last number that was carried and the first that
    /// was not, to within this many viewers
    #[arg(long, value_name = "N", requires = "ramp", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub bisect: Option<u32>,
    /// Afterwards: so many more join as fast as they can, while the others' media is watched
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub storm: Option<u32>,
    /// Afterwards: so many viewers a second leave and others join in their place
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub churn: Option<u32>,
    /// How long each number of viewers is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub duration: f64,
    /// How long to wait before that, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub settle: f64,
    /// Joins started in a second; 0: as many as go
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    pub join_rate: f64,
    /// Joins under way at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub joins_at_a_time: u32,
    /// The share of viewers that decrypt and check all that they get; the others count
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    pub check_share: f64,
    /// Mountpoints that the viewers are spread over, each with a source of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub mountpoints: u32,
    /// A further member of the request that makes a mountpoint; VALUE is JSON
    #[arg(long, value_name = "KEY=VALUE", value_parser = member)]
    pub mountpoint_option: Vec<(String, Value)>,
    /// The streaming plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
    /// Threads that run the viewers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub load_threads: u32,
    /// The core that all of hammer runs on
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
    /// What to watch meanwhile
    #[command(flatten)]
    pub watch: usage::Options,
    /// Write the record as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

/// Measures, shows `progress`, and writes the record if that is asked for.
pub fn run(options: &Options, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let record = block_on(options.core, measure(options, progress))?;
    if let Some(path) = &options.json {
        let report = Report::new("streaming", vec![record.clone()]);
        report.write(path).map_err(|source| ScenarioError::Write {
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(record)
}

/// Measures.
pub async fn measure(options: &Options, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    options.traffic.check()?;
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // With fewer descriptors fewer viewers can join, which is reported then.
    let _ = raise_descriptor_limit();
    let sampler = Sampler::new(options.watch.clone())?;
    let server_cores = sampler.server_cores().to_vec();
    let (local, remote) = options.target.way()?;
    let connections = options.target.connect().await?;
    let Some(first) = connections.first().cloned() else {
        return Err(ScenarioError::Nobody("there is no connection".to_owned()));
    };
    let facts = Facts::of(&first).await;
    let factory = Factory::new(local, options.target.profiles())?;

    let mut maker = Maker::new(&first, options.admin_key.clone()).await?;
    let extra: Map<String, Value> = options.mountpoint_option.iter().cloned().collect();
    let (mut acts, mut destinations) = (Vec::new(), Vec::new());
    for source in 0..options.mountpoints as usize {
        let made = maker
            .make(&options.traffic, options.codec, remote, &extra)
            .await?;
        acts.push(Act::Watch {
            mountpoint: made.id,
            source,
        });
        destinations.push(made.destination);
    }
    let config = SourceConfig {
        traffic: options.traffic.clone(),
        codec: options.codec,
        keyframes: Duration::from_secs_f64(options.keyframes),
    };
    let source = Source::start(&config, local, &destinations).map_err(ScenarioError::Source)?;
    let (load, events) =
        LoadThreads::start(options.load_threads as usize).map_err(ScenarioError::Load)?;
    for index in 0..destinations.len() {
        if let Some(sent) = source.sent(index) {
            load.add_source(&sent);
        }
    }
    let crowd = Crowd::new(load, events, factory, connections, options.check_share);
    let mut run = Run {
        options,
        acts: acts.into(),
        recorder: Recorder::new(crowd.clone(), sampler, progress),
        crowd: crowd.clone(),
        joining: None,
        gap_ms: None,
    };
    let outcome = run.all().await;
    let everyone = crowd.len();
    run.crowd.leave(everyone, false).await;
    drop(source);
    maker.finish().await;
    outcome?;

    let Run {
        recorder,
        joining,
        gap_ms,
        ..
    } = run;
    let (samples, steps, mut summary) = recorder.finish();
    if let Some(joining) = joining {
        summary.joins_per_s = Some(joining.per_s);
        summary.joins_per_cpu_s = joining.per_cpu_s;
    }
    summary.longest_gap_ms = gap_ms.or(summary.longest_gap_ms);
    let name = options
        .target
        .name
        .clone()
        .or(facts.name)
        .unwrap_or_else(|| "server".to_owned());
    Ok(RunRecord {
        scenario: Scenario {
            name: "streaming".to_owned(),
            options: options_by_name(options),
        },
        server: Server {
            name,
            version: facts.version,
            url: Some(options.target.janus.clone()),
            command: None,
            cores: server_cores,
            srtp_profile: crowd.profile().map(|profile| profile.name().to_owned()),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine::default(),
        started_unix_s: started.as_secs_f64(),
        round: 1,
        ceiling: None,
        samples,
        steps,
        summary,
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

    /// Ever more viewers until it is too much; gives the last step that was carried, or the first.
    async fn ramp(&mut self, step: u32) -> Result<Step, ScenarioError> {
        let mut carried: Option<Step> = None;
        let failed = loop {
            let now = self.crowd.len() as u32;
            let more = step.min(self.options.viewers.saturating_sub(now));
            if more == 0 {
                break None;
            }
            let burst = self.grow(more).await?;
            let measured = self.step().await?;
            if self.joining.is_none() {
                self.joining = Some(burst.per_s(None, &measured));
            }
            if !measured.carried || self.crowd.len() as u32 <= now {
                break Some(measured);
            }
            carried = Some(measured);
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

    /// Looks for the most viewers that are carried, between `good` and `bad`.
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
                self.grow(middle - now).await?;
            }
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

    /// Lets `count` more join, as fast as the options say.
    async fn grow(&mut self, count: u32) -> Result<Burst, ScenarioError> {
        self.recorder.sample().await?;
        self.recorder.note(&format!("{count} more viewers join"));
        let first = self.recorder.samples().len();
        let before = self.crowd.len();
        let pace = Pace {
            per_s: self.options.join_rate,
            at_a_time: self.options.joins_at_a_time as usize,
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

    /// Measures the viewers that there are.
    async fn step(&mut self) -> Result<Step, ScenarioError> {
        let settle = Duration::from_secs_f64(self.options.settle);
        let duration = Duration::from_secs_f64(self.options.duration);
        self.recorder.during(sleep(settle)).await?;
        self.recorder.begin_step().await?;
        self.recorder.during(sleep(duration)).await?;
        self.recorder.end_step().await
    }

    /// Viewers leave and others join, as many each second.
    async fn churn(&mut self, per_s: u32, viewers: u32) -> Result<(), ScenarioError> {
        let pace = Pace {
            per_s: f64::from(per_s),
            at_a_time: self.options.joins_at_a_time as usize,
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
        let lost = viewers.saturating_sub(step.participants);
        if lost > 0 {
            self.recorder
                .warn(format!("{lost} viewers fewer after churn than before"));
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

/// The options that make a difference to the figures.
fn options_by_name(options: &Options) -> BTreeMap<String, Value> {
    let traffic = &options.traffic;
    let pairs = [
        ("bitrate", json!(traffic.video_bps)),
        ("fps", json!(traffic.fps)),
        ("packets-per-frame", json!(traffic.packets_per_frame)),
        ("sizes", json!(traffic.sizes)),
        ("audio-bitrate", json!(traffic.audio_bps)),
        ("codec", json!(options.codec)),
        ("keyframes", json!(options.keyframes)),
        ("viewers", json!(options.viewers)),
        ("ramp", json!(options.ramp)),
        ("bisect", json!(options.bisect)),
        ("storm", json!(options.storm)),
        ("churn", json!(options.churn)),
        ("duration", json!(options.duration)),
        ("settle", json!(options.settle)),
        ("join-rate", json!(options.join_rate)),
        ("joins-at-a-time", json!(options.joins_at_a_time)),
        ("check-share", json!(options.check_share)),
        ("mountpoints", json!(options.mountpoints)),
        (
            "profile",
            json!(options.target.profile.map(|profile| profile.name())),
        ),
        ("load-threads", json!(options.load_threads)),
    ];
    let given = pairs.into_iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share from 0 to 1 is expected".to_owned()),
    }
}

fn member(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is expected")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    #[test]
    fn further_members_are_json_or_text() {
        assert_eq!(member("threads=2").unwrap().1, json!(2));
        assert_eq!(member("secret=abc").unwrap().1, json!("abc"));
        assert!(member("threads").is_err());
    }
}
