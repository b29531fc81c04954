//! Records figures: a sample each second, steps for the times of constant load, and a summary.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use crate::farend::FarWindow;
use crate::figures;
use crate::machine::{Disturbance, usage::Sampler};
use crate::progress::Progress;
use crate::record::{
    Calm, Criterion, DELIVERED_AT_LEAST, Delays, IN_TIME_AT_LEAST, LOST_AT_MOST, Sample, SetUp,
    Stalls, Step, Summary, best,
};
use crate::scenario::ScenarioError;
use crate::scenario::crowd::{CallSetUp, Crowd};
use crate::scenario::load::Flow;
use crate::sound_check;
use crate::source::Delayed;
use crate::viewer::Heard;

/// The shortest meaningful sample.
const SHORTEST: Duration = Duration::from_millis(100);

/// Above this share of its time, hammer itself may limit the figures.
const OWN_LIMIT: f64 = 0.9;

/// Frames that leave later than this after they are due meet those of other sources.
const LATE_US: f64 = 1_000.0;

/// Records the figures of a run.
pub(super) struct Recorder<'a> {
    crowd: Crowd,
    sampler: Sampler,
    progress: &'a Progress,
    started: Instant,
    last: Instant,
    samples: Vec<Sample>,
    steps: Vec<Step>,
    open: Option<Gathered>,
    join_delays: Vec<f64>,
    ended: u32,
    /// The stalls and slow times of watched cores in this sample and the previous one.
    disturbances: Vec<Disturbance>,
    /// How many of them belong to the last sample.
    last_disturbances: usize,
    warnings: Vec<String>,
    /// Packets that arrive later are not in time.
    in_time_us: f64,
    /// The server's memory before anybody joined.
    empty_bytes: Option<u64>,
    /// The participants' traffic.
    flow: &'a Flow,
    set_ups: Vec<CallSetUp>,
}

/// All recorded figures.
pub(super) struct Figures {
    pub(super) samples: Vec<Sample>,
    pub(super) steps: Vec<Step>,
    pub(super) summary: Summary,
}

/// The data of a step.
#[derive(Debug, Default)]
struct Gathered {
    start_s: f64,
    first_sample: usize,
    delays_us: Vec<f64>,
    late_us: Vec<f64>,
    /// Delays of packets that no stall can have delayed.
    calm_us: Vec<f64>,
    /// The sound in audio rooms.
    heard: Heard,
    /// What the far end of calls received.
    far: FarWindow,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        crowd: Crowd,
        sampler: Sampler,
        progress: &'a Progress,
        in_time: Duration,
        flow: &'a Flow,
    ) -> Self {
        let now = Instant::now();
        Self {
            empty_bytes: sampler.server_memory_bytes(),
            crowd,
            sampler,
            progress,
            started: now,
            last: now,
            samples: Vec::new(),
            steps: Vec::new(),
            open: None,
            join_delays: Vec::new(),
            ended: 0,
            disturbances: Vec::new(),
            last_disturbances: 0,
            warnings: Vec::new(),
            in_time_us: in_time.as_secs_f64() * 1e6,
            flow,
            set_ups: Vec::new(),
        }
    }

    /// Does `work`, and takes samples meanwhile.
    pub(super) async fn during<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, ScenarioError> {
        let mut work = std::pin::pin!(work);
        loop {
            let due = self.last + Duration::from_secs(1);
            tokio::select! {
                done = &mut work => return Ok(done),
                () = sleep_until(due.into()) => self.sample().await?,
            }
        }
    }

    /// Takes a sample before a new phase, so that it does not mix with the previous one. Right
    /// after a sample, this does nothing.
    pub(super) async fn begin(&mut self) -> Result<(), ScenarioError> {
        if self.last.elapsed() < SHORTEST {
            return Ok(());
        }
        self.sample().await
    }

    /// Takes a sample of the time since the last one.
    pub(super) async fn sample(&mut self) -> Result<(), ScenarioError> {
        let mut window = self.crowd.load().window().await;
        let usage = self.sampler.sample()?;
        let now = Instant::now();
        let length_s = (now - std::mem::replace(&mut self.last, now)).as_secs_f64();
        let mut far = self.flow.far.as_ref().map(|far| far.take_window());
        let mut joins = self.crowd.take_joins();
        self.set_ups.append(&mut joins.set_ups);
        self.join_delays.extend_from_slice(&joins.delays_us);
        self.ended += joins.ended;
        let stalls = self.note_disturbances(usage.disturbances);
        let findings = &mut window.findings;
        let mut delays: Vec<f64> = findings.delays.iter().map(|delayed| delayed.us).collect();
        if let Some(open) = &mut self.open {
            open.calm_us
                .extend(calm_us(&findings.delays, &self.disturbances));
            open.delays_us.extend_from_slice(&delays);
            open.late_us.extend_from_slice(&window.late_us);
            open.heard.merge(std::mem::take(&mut window.heard));
        }
        let told = far.as_mut().map(FarWindow::take_figures);
        if let Some((open, far)) = self.open.as_mut().zip(far) {
            open.far.merge(far);
        }
        let mut load = usage.load;
        load.thread_busy_share = window.busy_share;
        let sample = Sample {
            at_s: self.at_s(),
            length_s,
            participants: window.participants,
            peer_connections: window.peer_connections,
            limited: window.limited,
            limited_bytes: (window.limited > 0).then_some(window.limited_bytes),
            joined: window.joined,
            left: window.left,
            failed: joins.failed,
            expected_packets: window.expected,
            received_packets: window.packets,
            received_bytes: window.bytes,
            lost_packets: u64::try_from(findings.lost).unwrap_or(0),
            reordered_packets: findings.reordered,
            repeated_packets: findings.repeated,
            refused_packets: findings.strange,
            longest_gap_ms: (findings.packets > 0)
                .then_some(window.longest_gap.as_secs_f64() * 1e3),
            delay: Delays::of(&mut delays),
            far: told,
            send_late: Delays::of(&mut window.late_us),
            join_delay: Delays::of(&mut joins.delays_us),
            server: usage.server,
            link: usage.link,
            load: Some(load),
            stalls,
        };
        self.progress.sample(&sample);
        self.samples.push(sample);
        Ok(())
    }

    /// Forgets the disturbances before the last sample. Returns those since then, by core.
    fn note_disturbances(&mut self, new: Vec<Disturbance>) -> Vec<Stalls> {
        let cores = self.sampler.watched_cores().iter();
        let stalls = cores.map(|core| Stalls::of(*core, &new)).collect();
        let old = self
            .disturbances
            .len()
            .saturating_sub(self.last_disturbances);
        self.disturbances.drain(..old);
        self.last_disturbances = new.len();
        self.disturbances.extend(new);
        stalls
    }

    /// Starts a time of constant load.
    pub(super) async fn begin_step(&mut self) -> Result<(), ScenarioError> {
        self.begin().await?;
        self.open = Some(Gathered {
            start_s: self.at_s(),
            first_sample: self.samples.len(),
            ..Gathered::default()
        });
        Ok(())
    }

    /// Ends a time of constant load.
    pub(super) async fn end_step(&mut self) -> Result<Step, ScenarioError> {
        // A step has the memory at its end, not that of some samples before.
        self.sampler.refresh_memory();
        self.sample().await?;
        let mut open = self.open.take().unwrap_or_default();
        let samples = self.samples.get(open.first_sample..).unwrap_or_default();
        let mut step = step(open.start_s, samples);
        step.delay = Delays::of(&mut open.delays_us);
        step.send_late = Delays::of(&mut open.late_us);
        if !self.sampler.watched_cores().is_empty() {
            step.calm = Some(Calm {
                share: open.calm_us.len() as f64 / open.delays_us.len().max(1) as f64,
                delay: Delays::of(&mut open.calm_us),
            });
        }
        if let Some(hall) = &self.flow.hall {
            let sound = sound_check::findings(&hall.roster(), hall.layout.codec, &open.heard)?;
            self.warnings.extend(sound.doubts(step.participants));
            step.sound = Some(sound);
        }
        let lost = samples.iter().map(|sample| sample.lost_packets).sum();
        step.in_time = step.carried && in_time(lost, step.delay, self.in_time_us);
        if self.flow.far.is_some() {
            let missing = u64::try_from(open.far.missing).unwrap_or(0);
            let far = open.far.take_figures();
            let arrived = Delays {
                count: far.received_packets,
                ..far.delay.unwrap_or_default()
            };
            step.in_time &= in_time(missing, Some(arrived), self.in_time_us);
            step.far = Some(far);
            let transcodes = self.flow.options.contains_key("far-codec");
            if open.far.strange > 0 && !transcodes {
                let strange = figures::count(open.far.strange as f64);
                self.warnings.push(format!(
                    "{strange} packets were changed on their way to the far end"
                ));
            }
        }
        self.progress.step(&step);
        self.steps.push(step.clone());
        Ok(step)
    }

    /// Returns the server's current memory, with shared pages in proportion.
    pub(super) fn server_memory_bytes(&self) -> Option<u64> {
        self.sampler.server_memory_bytes()
    }

    /// Returns the server's memory before anybody joined.
    pub(super) fn empty_bytes(&self) -> Option<u64> {
        self.empty_bytes
    }

    /// Returns the CPU time of the server in the samples from index `first` on, in seconds.
    pub(super) fn server_cpu_s(&self, first: usize) -> Option<f64> {
        let samples = self.samples.get(first..)?;
        let cpu = cpu_cores(samples, |s| Some(s.server.as_ref()?.cpu_cores))?;
        let length: f64 = samples.iter().map(|s| s.length_s).sum();
        Some(cpu * length)
    }

    /// Returns the largest step so far that was carried.
    pub(super) fn best(&self, criterion: Criterion) -> Option<&Step> {
        best(&self.steps, criterion)
    }

    /// Returns the first step, whether it was carried or not.
    pub(super) fn first_step(&self) -> Option<&Step> {
        self.steps.first()
    }

    /// Returns the samples so far.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Reports progress.
    pub(super) fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Adds a reason to doubt the figures.
    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns all recorded figures.
    pub(super) fn finish(mut self) -> Figures {
        let mut summary = summary(&self.samples, &self.steps, self.empty_bytes);
        summary.joins = self.join_delays.len() as u64;
        summary.join_delay = Delays::of(&mut self.join_delays);
        summary.set_up = set_up(&self.set_ups);
        summary.failed_joins = self.samples.iter().map(|s| u64::from(s.failed)).sum();
        if summary.failed_joins > 0 || self.ended > 0 {
            let last = self.crowd.last_failure().unwrap_or_default();
            let (failed, ended) = (summary.failed_joins, self.ended);
            self.warnings.push(format!(
                "{failed} joins failed and {ended} participants were ended, the last one: {last}"
            ));
        }
        self.warnings.extend(own_limits(&self.samples, &self.steps));
        summary.warnings = self.warnings;
        Figures {
            samples: self.samples,
            steps: self.steps,
            summary,
        }
    }

    fn at_s(&self) -> f64 {
        (self.last - self.started).as_secs_f64()
    }
}

fn step(start_s: f64, samples: &[Sample]) -> Step {
    let last = samples.last();
    let length_s: f64 = samples.iter().map(|s| s.length_s).sum::<f64>().max(1e-9);
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>() as f64;
    let received = sum(|s| s.received_packets);
    let delivered_share = match sum(|s| s.expected_packets) {
        0.0 => 0.0,
        expected => (received / expected).min(1.0),
    };
    let server = last.and_then(|s| s.server.as_ref());
    Step {
        start_s,
        end_s: last.map_or(start_s, |s| s.at_s),
        participants: last.map_or(0, |s| s.participants),
        peer_connections: last.map_or(0, |s| s.peer_connections),
        limited_bps: last.filter(|s| s.limited > 0).map(|s| {
            let bytes = sum(|s| s.limited_bytes.unwrap_or(0));
            bytes * 8.0 / length_s / f64::from(s.limited)
        }),
        delivered_share,
        received_bps: sum(|s| s.received_bytes) * 8.0 / length_s,
        received_pps: received / length_s,
        carried: delivered_share >= DELIVERED_AT_LEAST,
        in_time: false,
        loop_cpu_ns_per_packet: None,
        server_cpu_cores: cpu_cores(samples, |s| Some(s.server.as_ref()?.cpu_cores)),
        server_rss_bytes: server.map(|server| server.rss_bytes),
        server_pss_bytes: server.and_then(|server| server.pss_bytes),
        server_threads: server.map(|server| server.threads),
        load_cpu_cores: cpu_cores(samples, |s| Some(s.load.as_ref()?.cpu_cores)),
        delay: None,
        calm: None,
        sound: None,
        far: None,
        send_late: None,
        longest_gap_ms: samples
            .iter()
            .filter_map(|s| s.longest_gap_ms)
            .max_by(f64::total_cmp),
    }
}

/// Returns the delays that no stalled or slow core can have caused.
fn calm_us<'a>(
    delays: &'a [Delayed],
    disturbances: &'a [Disturbance],
) -> impl Iterator<Item = f64> + 'a {
    let arrived =
        |delayed: &Delayed| delayed.sent + Duration::from_secs_f64(delayed.us.max(0.0) / 1e6);
    let is_calm = move |delayed: &&Delayed| {
        let (from, to) = (delayed.sent, arrived(delayed));
        !disturbances.iter().any(|one| one.disturbs(from, to))
    };
    delays.iter().filter(is_calm).map(|delayed| delayed.us)
}

/// Returns whether decrypting participants lost hardly anything, and received 99 of 100 packets
/// within the allowed time.
fn in_time(lost: u64, delay: Option<Delays>, allowed_us: f64) -> bool {
    delay.is_none_or(|delay| {
        let all = lost.saturating_add(delay.count).max(1);
        lost as f64 / all as f64 <= LOST_AT_MOST && delay.p99_us <= allowed_us
    })
}

/// Returns `None` without calls.
fn set_up(calls: &[CallSetUp]) -> Option<SetUp> {
    let delays = |of: fn(&CallSetUp) -> Duration| {
        let us = calls.iter().map(|call| of(call).as_secs_f64() * 1e6);
        Delays::of(&mut us.collect::<Vec<_>>())
    };
    (!calls.is_empty()).then(|| SetUp {
        server: delays(|call| call.asking + call.answering),
        asking: delays(|call| call.asking),
        answering: delays(|call| call.answering),
    })
}

/// Returns the mean over time, or `None` if a sample lacks it.
pub(in crate::scenario) fn cpu_cores(
    samples: &[Sample],
    of: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let length: f64 = samples.iter().map(|s| s.length_s).sum();
    let used = samples.iter().map(|s| Some(of(s)? * s.length_s));
    let used: Option<f64> = used.sum();
    used.filter(|_| length > 0.0).map(|used| used / length)
}

fn summary(samples: &[Sample], steps: &[Step], empty_bytes: Option<u64>) -> Summary {
    let best = best(steps, Criterion::InTime);
    let fewest = steps.iter().min_by_key(|step| step.participants);
    let most = steps.iter().max_by_key(|step| step.participants);
    let memory = |step: &Step| step.server_pss_bytes.or(step.server_rss_bytes);
    let bytes_per = |count: fn(&Step) -> u32| {
        let (fewest, most) = fewest.zip(most)?;
        let more = count(most).checked_sub(count(fewest)).filter(|n| *n > 0)?;
        Some((memory(most)? as f64 - memory(fewest)? as f64) / f64::from(more))
    };
    // With only one number of participants: what they added to the memory of the empty server.
    let from_nobody = || {
        let (most, empty) = most.zip(empty_bytes)?;
        let count = Some(most.peer_connections).filter(|n| *n > 0)?;
        Some((memory(most)? as f64 - empty as f64) / f64::from(count))
    };
    let bytes_per_peer_connection = bytes_per(|step| step.peer_connections).or_else(from_nobody);
    Summary {
        criterion: Criterion::InTime,
        in_time_at_least_share: IN_TIME_AT_LEAST,
        carried_participants: best.map_or(0, |step| step.participants),
        peer_connections: best.map_or(0, |step| step.peer_connections),
        carried_bps: best.map_or(0.0, |step| step.received_bps),
        carried_pps: best.map_or(0.0, |step| step.received_pps),
        delivered_share: best.or(most).map_or(0.0, |step| step.delivered_share),
        server_cpu_cores: best.and_then(|step| step.server_cpu_cores),
        bytes_per_participant: bytes_per(|step| step.participants),
        bytes_per_peer_connection,
        cpu_ns_per_packet: best.or(most).and_then(Step::cpu_ns_per_packet),
        limited_bps: best.or(most).and_then(|step| step.limited_bps),
        delay: best.and_then(|step| step.delay),
        calm: best.and_then(|step| step.calm),
        sound: best.or(most).and_then(|step| step.sound.clone()),
        far: best.or(most).and_then(|step| step.far),
        longest_gap_ms: samples
            .iter()
            .filter_map(|s| s.longest_gap_ms)
            .max_by(f64::total_cmp),
        ..Summary::default()
    }
}

/// Returns warnings if hammer, and not the server, may have set the limit.
fn own_limits(samples: &[Sample], steps: &[Step]) -> Vec<String> {
    let mut warnings = Vec::new();
    for step in steps {
        let within = samples
            .iter()
            .filter(|s| s.at_s > step.start_s && s.at_s <= step.end_s);
        let loads: Vec<_> = within.filter_map(|s| s.load.as_ref()).collect();
        let mean = loads.iter().map(|load| load.thread_busy_share).sum::<f64>()
            / loads.len().max(1) as f64;
        let cores = loads
            .iter()
            .flat_map(|load| load.core_busy_share.iter().copied());
        let core = cores.max_by(f64::total_cmp).unwrap_or(0.0);
        if mean > OWN_LIMIT || (core > 0.99 && mean > 0.8) {
            warnings.push(format!(
                "hammer itself may be the limit with {} participants: its load thread was busy for {:.0} % of the time",
                step.participants,
                mean * 100.0
            ));
        }
    }
    let punctual = |step: &&Step| step.send_late.is_some_and(|late| late.p99_us > LATE_US);
    if let Some((step, late)) = steps
        .iter()
        .find(punctual)
        .and_then(|step| Some((step, step.send_late?)))
    {
        warnings.push(format!(
            "frames left hammer late with {} participants: 1 % by more than {}, so that frames of several sources met",
            step.participants,
            figures::time_us(late.p99_us)
        ));
    }
    let drops: u64 = samples
        .iter()
        .filter_map(|s| s.link.as_ref())
        .map(|link| link.load_buffer_drops)
        .sum();
    if drops > 0 {
        warnings.push(format!(
            "hammer lost {drops} messages: its sockets' buffers were full"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LoadUse, ServerUse};

    fn sample(at_s: f64, participants: u32, received: u64) -> Sample {
        Sample {
            at_s,
            length_s: 1.0,
            participants,
            expected_packets: 1_000,
            received_packets: received,
            received_bytes: received * 1_000,
            longest_gap_ms: Some(at_s),
            server: Some(ServerUse {
                cpu_cores: 0.5,
                rss_bytes: 1_000 * u64::from(participants),
                ..ServerUse::default()
            }),
            load: Some(LoadUse {
                thread_busy_share: 0.95,
                ..LoadUse::default()
            }),
            ..Sample::default()
        }
    }

    #[test]
    fn a_step_is_the_mean_of_its_samples() {
        let step = step(1.0, &[sample(2.0, 10, 1_000), sample(3.0, 10, 992)]);
        assert!(step.carried);
        assert_eq!(
            (step.received_pps, step.received_bps),
            (996.0, 996.0 * 8_000.0)
        );
        assert_eq!(step.server_cpu_cores, Some(0.5));
        assert_eq!((step.start_s, step.end_s), (1.0, 3.0));
    }

    #[test]
    fn of_a_hundred_packets_one_may_be_late_and_hardly_any_lost() {
        let delay = |p99_us| {
            Some(Delays {
                count: 1_000,
                p50_us: 10.0,
                p90_us: 20.0,
                p99_us,
                max_us: 1e6,
                ..Delays::default()
            })
        };
        assert!(in_time(1, delay(33_000.0), 33_333.0));
        assert!(!in_time(1, delay(34_000.0), 33_333.0));
        assert!(!in_time(2, delay(33_000.0), 33_333.0));
        // Nobody decrypts, so nothing is known.
        assert!(in_time(0, None, 33_333.0));
    }

    #[test]
    fn the_best_step_is_the_largest_that_was_carried() {
        let (a, b, c) = (
            sample(1.0, 10, 1_000),
            sample(2.0, 20, 999),
            sample(3.0, 30, 900),
        );
        let samples = [a, b, c];
        let steps: Vec<Step> = samples
            .iter()
            .map(|s| {
                let step = step(s.at_s - 1.0, std::slice::from_ref(s));
                Step {
                    in_time: step.carried,
                    ..step
                }
            })
            .collect();
        let summary = summary(&samples, &steps, None);
        assert_eq!(summary.carried_participants, 20);
        assert_eq!(summary.bytes_per_participant, Some(1_000.0));
        assert_eq!(summary.longest_gap_ms, Some(3.0));
        assert_eq!(own_limits(&samples, &steps).len(), 3);
    }
}
