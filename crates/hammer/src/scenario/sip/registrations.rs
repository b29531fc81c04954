//! Accounts registered at the far end, and refreshed by the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::client::{Handle, Session};
use crate::farend::{FarEnd, SipCounts};
use crate::figures;
use crate::machine::{usage::Sampler, wall_clock};
use crate::progress::Progress;
use crate::record::{Criterion, Registered, RunRecord, Sample, Step};
use crate::scenario::ScenarioError;
use crate::scenario::crowd::{JoinError, Line, Pace, SIP};
use crate::scenario::load::Flow;
use crate::scenario::run::{cpu_cores, record};
use crate::scenario::stage::Stage;

/// The accounts to register.
pub(super) struct Accounts {
    /// Their number.
    pub(super) count: u32,
    /// The line that they register by.
    pub(super) line: Arc<Line>,
    /// The registrar.
    pub(super) far: Arc<FarEnd>,
    /// The granted lifetime of a registration, in seconds.
    pub(super) granted_s: u64,
}

/// Samples while accounts are registered and refreshed.
struct Samples<'a> {
    sampler: Sampler,
    far: &'a FarEnd,
    progress: &'a Progress,
    started: Instant,
    last: Instant,
    taken: Vec<Sample>,
    counts: SipCounts,
}

/// Registers the accounts, waits, and measures what the server needs to keep them.
pub(super) async fn measure(
    stage: Stage<'_>,
    flow: &Flow,
    accounts: Accounts,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let Stage {
        load: options,
        facts,
        sampler,
        connections,
        ..
    } = stage;
    let (started, cores) = (wall_clock(), sampler.server_cores().to_vec());
    let (line, empty_bytes) = (&accounts.line, sampler.server_memory_bytes());
    let mut sessions = Vec::new();
    for connection in &connections {
        sessions.push(connection.create().await?);
    }
    progress.note(&format!("{} accounts register", accounts.count));
    let pace = Pace {
        per_s: options.join_rate,
        at_a_time: options.joins_at_a_time as usize,
        at_most: None,
    };
    let (mut handles, failure) = register(line, &sessions, accounts.count as usize, pace).await;
    if handles.is_empty() {
        let last = failure.map_or_else(String::new, |error| error.to_string());
        return Err(ScenarioError::Nobody(last));
    }
    let now = Instant::now();
    let mut samples = Samples {
        sampler,
        far: &accounts.far,
        progress,
        started: now,
        last: now,
        taken: Vec::new(),
        counts: SipCounts::default(),
    };
    let registered = handles.len() as u32;
    samples
        .during(options.settle, registered, &mut handles)
        .await?;
    samples.counts = SipCounts::default();
    let (first, start_s) = (samples.taken.len(), samples.at_s());
    samples.sampler.refresh_memory();
    samples
        .during(options.duration, registered, &mut handles)
        .await?;

    let measured = samples.taken.get(first..).unwrap_or_default();
    let length_s: f64 = measured
        .iter()
        .map(|sample| sample.length_s)
        .sum::<f64>()
        .max(1e-9);
    let last = measured.last().and_then(|sample| sample.server.as_ref());
    let share = f64::from(registered) / f64::from(accounts.count);
    let step = Step {
        start_s,
        end_s: samples.at_s(),
        participants: registered,
        delivered_share: share,
        carried: registered == accounts.count,
        in_time: registered == accounts.count,
        server_cpu_cores: cpu_cores(measured, |s| Some(s.server.as_ref()?.cpu_cores)),
        server_rss_bytes: last.map(|server| server.rss_bytes),
        server_pss_bytes: last.and_then(|server| server.pss_bytes),
        server_threads: last.map(|server| server.threads),
        load_cpu_cores: cpu_cores(measured, |s| Some(s.load.as_ref()?.cpu_cores)),
        ..Step::default()
    };
    let granted = samples.counts.granted as f64;
    let figures = Registered {
        accounts: registered,
        granted_s: accounts.granted_s,
        refreshes_per_s: granted / length_s,
        challenges_per_s: samples.counts.challenged as f64 / length_s,
        cpu_us_per_refresh: step
            .server_cpu_cores
            .filter(|_| granted > 0.0)
            .map(|cores| cores * length_s * 1e6 / granted),
    };
    progress.keep(&figures.to_text(step.server_cpu_cores));
    let mut record = record(options, flow, facts, started);
    record.server.cores = cores;
    let summary = &mut record.summary;
    summary.criterion = Criterion::InTime;
    summary.carried_participants = if step.in_time { registered } else { 0 };
    summary.delivered_share = share;
    summary.server_cpu_cores = step.server_cpu_cores;
    let memory = step.server_pss_bytes.or(step.server_rss_bytes);
    let grown = memory.zip(empty_bytes);
    summary.bytes_per_participant =
        grown.map(|(now, before)| (now as f64 - before as f64) / f64::from(registered));
    summary.registered = Some(figures);
    if let Some(failure) = failure {
        let failed = accounts.count - registered;
        summary.failed_joins = failed.into();
        let text = format!("{failed} accounts could not register, the last one: {failure}");
        summary.warnings.push(text);
    }
    record.samples = samples.taken;
    record.steps = vec![step];
    for session in sessions {
        // The server may be gone, so errors are ignored.
        let _ = session.destroy().await;
    }
    Ok(record)
}

/// Registers accounts in shared sessions, so that keep-alives of sessions do not count.
async fn register(
    line: &Arc<Line>,
    sessions: &[Session],
    count: usize,
    pace: Pace,
) -> (Vec<Handle>, Option<JoinError>) {
    let mut under_way = JoinSet::new();
    let mut outcomes = Vec::new();
    let mut clock = pace.clock();
    for session in sessions.iter().cycle().take(count) {
        if let Some(clock) = &mut clock {
            clock.tick().await;
        }
        while under_way.len() >= pace.at_a_time.max(1) {
            outcomes.extend(under_way.join_next().await.and_then(Result::ok));
        }
        let (line, session) = (Arc::clone(line), session.clone());
        under_way.spawn(async move {
            let mut handle = session.attach(SIP).await?;
            line.register(&mut handle).await?;
            Ok::<_, JoinError>(handle)
        });
    }
    while let Some(outcome) = under_way.join_next().await {
        outcomes.extend(outcome.ok());
    }
    let (mut handles, mut failure) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(handle) => handles.push(handle),
            Err(error) => failure = Some(error),
        }
    }
    (handles, failure)
}

impl Samples<'_> {
    /// Takes a sample each second for this time.
    async fn during(
        &mut self,
        seconds: f64,
        registered: u32,
        handles: &mut [Handle],
    ) -> Result<(), ScenarioError> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            let due = end.min(self.last + Duration::from_secs(1));
            sleep_until(due.into()).await;
            // Events about refreshes are discarded.
            for handle in &mut *handles {
                while handle.events.try_recv().is_ok() {}
            }
            let usage = self.sampler.sample()?;
            let now = Instant::now();
            let length_s = (now - std::mem::replace(&mut self.last, now)).as_secs_f64();
            let counts = self.far.take_counts();
            self.counts.granted += counts.granted;
            self.counts.challenged += counts.challenged;
            self.counts.repeated += counts.repeated;
            let sample = Sample {
                at_s: self.at_s(),
                length_s,
                participants: registered,
                server: usage.server,
                link: usage.link,
                load: Some(usage.load),
                ..Sample::default()
            };
            self.progress.sample(&sample);
            self.taken.push(sample);
        }
        Ok(())
    }

    fn at_s(&self) -> f64 {
        (self.last - self.started).as_secs_f64()
    }
}

impl Registered {
    /// Formats the figures in one line.
    fn to_text(self, cores: Option<f64>) -> String {
        let Self {
            accounts,
            granted_s,
            refreshes_per_s,
            challenges_per_s,
            cpu_us_per_refresh,
        } = self;
        let (accounts, refreshes) = (
            figures::count(f64::from(accounts)),
            figures::digits(refreshes_per_s),
        );
        let challenges = figures::digits(challenges_per_s);
        let mut text = format!(
            "{accounts} accounts registered for {granted_s} s: {refreshes} refreshes and {challenges} challenges a second"
        );
        if let Some((cores, us)) = cores.zip(cpu_us_per_refresh) {
            let (cores, each) = (figures::percent(cores), figures::time_us(us));
            text += &format!(", {cores} of a core, {each} for each");
        }
        text
    }
}
