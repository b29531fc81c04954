//! Real browsers in video rooms that fill up until some could not connect.

mod among;
mod guest;
mod quality;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::load::{Flow, given};
use super::plugins::videoroom::Room;
use super::run;
use super::stage::Stage;
use super::{ScenarioError, load};
use crate::browsers::{Browser, BrowserError, Kind, Page};
use crate::client::Connection;
use crate::machine::usage::Sampler;
use crate::machine::wall_clock;
use crate::progress::Progress;
use crate::record::{Attempt, Browsers, Phase, RunRecord, Sample, State, Step};
use crate::traffic::{AUDIO_PERIOD, Topology, Traffic};
use among::Among;
use guest::{Guest, Invitation};
use quality::Meter;

/// The name of the time in which the browsers are the only load.
const ALONE: &str = "alone";

/// Real browsers that publish and watch.
#[derive(Debug, Clone, Args)]
#[group(id = "browsers-scenario")]
pub struct Options {
    /// What all scenarios ask; participants are browsers
    #[command(flatten)]
    pub load: load::Options,
    /// The browsers, which take turns
    #[arg(
        long,
        value_enum,
        value_name = "BROWSER,BROWSER",
        value_delimiter = ',',
        default_value = "chromium"
    )]
    pub browsers: Vec<Kind>,
    /// Chromium's program [default: the first of chromium, chromium-browser, google-chrome and
    /// chrome in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub chromium: Option<PathBuf>,
    /// Firefox's program [default: the first of firefox and firefox-esr in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub firefox: Option<PathBuf>,
    /// Participants of a room; there are as many rooms as that takes
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub room_size: u32,
    /// Participants that are added at a time; the next ones come when these are connected or failed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub batch: u32,
    /// No more participants come after so many failed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub failures: u32,
    /// A participant that is not connected after so many seconds has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = load::seconds)]
    pub patience: f64,
    /// Participants in one browser, each in a tab with a profile of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub tabs: u32,
    /// When all browsers are there, the same server gets this load besides: a scenario with its
    /// options as one word, such as 'streaming --viewers 2000 --duration 30'
    #[arg(long, value_name = "SCENARIO")]
    pub among: Option<String>,
    /// The video room plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
}

impl Options {
    /// Returns the traffic for which browsers stand. They choose their bit rate themselves.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic::audio(40_000)
    }

    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Rooms {
            endpoints: self.room_size,
            multistream: true,
        }
    }

    /// Returns the words of the load besides, if there is one.
    pub(super) fn among(&self) -> Option<Vec<String>> {
        self.among.as_deref().map(among::words)
    }

    fn flow(&self) -> Flow {
        let names: Vec<&str> = self.browsers.iter().map(|kind| kind.name()).collect();
        Flow {
            name: "browsers",
            interval: AUDIO_PERIOD,
            period: AUDIO_PERIOD,
            options: given([
                ("browsers", json!(names.join(","))),
                ("room-size", json!(self.room_size)),
                ("batch", json!(self.batch)),
                ("failures", json!(self.failures)),
                ("patience", json!(self.patience)),
                ("tabs", json!(self.tabs)),
                ("among", json!(self.among)),
            ]),
            hall: None,
            far: None,
        }
    }

    fn program(&self, kind: Kind) -> Result<PathBuf, BrowserError> {
        let named = match kind {
            Kind::Chromium => &self.chromium,
            Kind::Firefox => &self.firefox,
        };
        let found = named.clone().or_else(|| kind.find());
        found.ok_or(BrowserError::NotFound(kind.name()))
    }
}

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    for kind in &options.browsers {
        options.program(*kind)?;
    }
    let among = options.among.as_deref().map(Among::new);
    let started = wall_clock();
    let stage = Stage::new(&options.load).await?;
    let connection = stage.connection()?.clone();
    let Stage { facts, sampler, .. } = stage;
    let mut party = Party {
        options,
        progress,
        page: Page::serve().await?,
        connection,
        rooms: Vec::new(),
        browsers: Vec::new(),
        versions: Vec::new(),
        guests: Vec::new(),
        sampler,
        started: Instant::now(),
        last: Instant::now(),
        samples: Vec::new(),
        steps: Vec::new(),
        phases: Vec::new(),
    };
    let outcome = party.all(among).await;
    let mut record = run::record(&options.load, &options.flow(), facts, started);
    party.end(&mut record).await;
    outcome?;
    if record.steps.iter().all(|step| step.participants == 0) {
        let attempts = record.browsers.iter().flat_map(|all| &all.attempts);
        let reason = attempts.filter_map(|one| one.failure.clone()).next_back();
        return Err(ScenarioError::Nobody(reason.unwrap_or_default()));
    }
    Ok(record)
}

/// A run in progress.
struct Party<'a> {
    options: &'a Options,
    progress: &'a Progress,
    page: Page,
    connection: Connection,
    rooms: Vec<Room>,
    /// Each with the number of tabs that it has.
    browsers: Vec<(Kind, Arc<Browser>, u32)>,
    versions: Vec<String>,
    guests: Vec<Guest>,
    sampler: Sampler,
    started: Instant,
    last: Instant,
    samples: Vec<Sample>,
    steps: Vec<Step>,
    phases: Vec<Phase>,
}

impl Party<'_> {
    async fn all(&mut self, among: Option<Among>) -> Result<(), ScenarioError> {
        let mut clock = interval(Duration::from_secs(1));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.has_room() || !self.is_settled() {
            if self.is_settled() {
                self.invite().await?;
            }
            clock.tick().await;
            self.look().await?;
        }
        let settle = Duration::from_secs_f64(self.options.load.settle);
        let duration = Duration::from_secs_f64(self.options.load.duration);
        let until = Instant::now() + settle;
        while Instant::now() < until {
            clock.tick().await;
            self.look().await?;
        }
        let until = Instant::now() + duration;
        self.phase(ALONE, &mut clock, |_| Instant::now() >= until)
            .await?;
        if let Some(among) = among {
            let name = among.name.clone();
            let mut running = among.start(&self.options.load)?;
            self.phase(&name, &mut clock, |_| running.has_ended())
                .await?;
            if let Some(status) = running.failure() {
                self.progress
                    .keep(&format!("warning: the load besides ended with {status}"));
            }
        }
        Ok(())
    }

    /// Measures until `ended` says so.
    async fn phase(
        &mut self,
        name: &str,
        clock: &mut tokio::time::Interval,
        mut ended: impl FnMut(&Self) -> bool,
    ) -> Result<(), ScenarioError> {
        self.look().await?;
        let (start_s, first) = (self.at_s(), self.samples.len());
        let meter = Meter::start(&self.guests);
        loop {
            clock.tick().await;
            self.look().await?;
            if ended(self) {
                break;
            }
        }
        let samples = self.samples.get(first..).unwrap_or_default();
        let cpu = run::cpu_cores(samples, |sample| Some(sample.server.as_ref()?.cpu_cores));
        let last = samples.last().and_then(|sample| sample.server.as_ref());
        let phase = Phase {
            name: name.to_owned(),
            start_s,
            end_s: self.at_s(),
            server_cpu_cores: cpu,
            ..meter.end(&self.guests)
        };
        self.steps.push(Step {
            start_s,
            end_s: phase.end_s,
            participants: phase.browsers,
            peer_connections: 2 * phase.browsers,
            delivered_share: 1.0 - phase.lost_share,
            server_cpu_cores: cpu,
            server_rss_bytes: last.map(|server| server.rss_bytes),
            server_pss_bytes: last.and_then(|server| server.pss_bytes),
            server_threads: last.map(|server| server.threads),
            ..Step::default()
        });
        self.progress.keep(&quality::to_text(&phase));
        self.phases.push(phase);
        Ok(())
    }

    fn at_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn has_room(&self) -> bool {
        let failed = self.count(State::Failed);
        failed < self.options.failures && (self.guests.len() as u32) < self.options.load.viewers
    }

    fn is_settled(&self) -> bool {
        self.guests.iter().all(Guest::is_settled)
    }

    fn count(&self, state: State) -> u32 {
        let of = |guest: &&Guest| guest.attempt.state() == state;
        self.guests.iter().filter(of).count() as u32
    }

    /// Starts the next participants.
    async fn invite(&mut self) -> Result<(), ScenarioError> {
        let options = self.options;
        let left = options
            .load
            .viewers
            .saturating_sub(self.guests.len() as u32);
        for _ in 0..options.batch.min(left) {
            let number = self.guests.len() as u32;
            let room = (number / options.room_size) as usize;
            if self.rooms.len() <= room {
                let key = options.admin_key.iter();
                let members: Map<String, Value> = key
                    .map(|key| ("admin_key".to_owned(), key.as_str().into()))
                    .collect();
                let made = Room::create(&self.connection, options.room_size, &members).await?;
                self.rooms.push(made);
            }
            let kinds = options.browsers.iter().copied().cycle();
            let kind = kinds.clone().nth(number as usize).unwrap_or(Kind::Chromium);
            let at_s = self.at_s();
            let browser = self.browser(kind).await?;
            let target = &options.load.target;
            let invitation = Invitation {
                url: self.page.url(),
                given: json!({
                    "url": target.janus, "secret": target.api_secret, "token": target.token,
                    "room": self.rooms.get(room).map(|room| &room.id),
                    "name": format!("{} {}", kind.name(), number + 1),
                }),
            };
            let attempt = Attempt {
                room: room as u32 + 1,
                browser: kind.name().to_owned(),
                states: vec![(State::Starting, at_s)],
                failure: None,
            };
            self.guests.push(Guest::come(attempt, browser, invitation));
        }
        Ok(())
    }

    /// Returns a browser of this kind that takes one more tab.
    async fn browser(&mut self, kind: Kind) -> Result<Arc<Browser>, ScenarioError> {
        let most = self.options.tabs;
        let mut running = self.browsers.iter_mut();
        if let Some((_, browser, tabs)) = running.find(|(of, _, tabs)| *of == kind && *tabs < most)
        {
            *tabs += 1;
            return Ok(Arc::clone(browser));
        }
        self.progress.note(&format!("{} starts", kind.name()));
        let program = self.options.program(kind)?;
        let browser = Arc::new(Browser::start(kind, program).await?);
        let version = browser.version().to_owned();
        if !self.versions.contains(&version) {
            self.versions.push(version);
        }
        self.browsers.push((kind, Arc::clone(&browser), 1));
        Ok(browser)
    }

    /// Asks all pages, and takes a sample.
    async fn look(&mut self) -> Result<(), ScenarioError> {
        let at_s = self.at_s();
        let patience = self.options.patience;
        let looking = self
            .guests
            .iter_mut()
            .map(|guest| guest.look(at_s, patience));
        futures_util::future::join_all(looking).await;
        let usage = self.sampler.sample()?;
        let now = Instant::now();
        let length_s = (now - std::mem::replace(&mut self.last, now)).as_secs_f64();
        let connected = self.count(State::Connected);
        let failed = self.count(State::Failed);
        let (before, failed_before) = self.samples.iter().fold((0, 0), |(_, failed), sample| {
            (sample.participants, failed + sample.failed)
        });
        let sample = Sample {
            at_s: self.at_s(),
            length_s,
            participants: connected,
            peer_connections: 2 * connected,
            joined: connected.saturating_sub(before),
            failed: failed.saturating_sub(failed_before),
            server: usage.server,
            link: usage.link,
            load: Some(usage.load),
            ..Sample::default()
        };
        let cpu = sample.server.as_ref().map(|server| server.cpu_cores);
        let cpu = cpu.map(|cores| format!("  server {cores:.2} cores"));
        self.progress.note(&format!(
            "{:.0} s  {connected} connected, {failed} failed, of {}{}",
            sample.at_s,
            self.guests.len(),
            cpu.unwrap_or_default()
        ));
        self.samples.push(sample);
        Ok(())
    }

    /// Ends the browsers, destroys the rooms, and fills the record.
    async fn end(mut self, record: &mut RunRecord) {
        record.browsers = Some(Browsers {
            versions: self.versions,
            room_size: self.options.room_size,
            attempts: self.guests.drain(..).map(|guest| guest.attempt).collect(),
            phases: self.phases,
        });
        drop(self.browsers);
        for room in self.rooms {
            room.destroy().await;
        }
        record.server.cores = self.sampler.server_cores().to_vec();
        let alone = self.steps.first();
        record.summary.delivered_share = alone.map_or(0.0, |step| step.delivered_share);
        record.summary.server_cpu_cores = alone.and_then(|step| step.server_cpu_cores);
        let attempts = record.browsers.iter().flat_map(|all| &all.attempts);
        let failed = attempts.filter(|one| one.state() == State::Failed).count() as u64;
        record.summary.failed_joins = failed;
        record.summary.joins = alone.map_or(0, |step| step.participants.into());
        record.samples = self.samples;
        record.steps = self.steps;
    }
}
