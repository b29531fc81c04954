//! Runs a scenario against several servers in turn on this machine, so that their figures are
//! comparable.
//!
//! Server and load are in separate network namespaces and on separate cores. The ceiling is
//! measured before each round, over the same link, as is the lateness of the cores without load.

pub(crate) mod config;
pub(crate) mod launcher;
pub(crate) mod process;
mod server;
mod sink;
mod spec;
mod variants;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Parser};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::ceiling::{self, CeilingError};
use crate::machine::{self, Addresses, LOAD_IP, Link, NamespaceError, SERVER_IP};
use crate::progress::Progress;
use crate::record::{
    BareLoop, Ceiling, Criterion, Lateness, ReadError, Report, RunRecord, Webhook,
};
use crate::report::{self, ReportError};
use crate::scenario::{Scenario, WordsError};
use crate::thresholds::{self, Threshold};
use crate::{doubts, figures};
use process::{Ended, Process, inside};
use server::{Place, Server, StartError};
use sink::Sink;
use spec::Api;
pub use spec::{Named, SpecError};
use variants::variants;

/// The doubt about a run whose webhook received no events.
const NO_EVENTS: &str =
    "no event came by the server's webhook: the figures are those of a server without events";

/// How long the cores are watched before a round.
const WATCHED: Duration = Duration::from_secs(2);

/// The servers and scenarios.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Options {
    /// A server: its name in the reports and the command that starts it; once for each server
    #[arg(long = "server", value_name = "NAME=COMMAND", required = true)]
    servers: Vec<Named>,
    /// Where a server's API is, if not at ws://{ip}:8188/
    #[arg(long = "url", value_name = "NAME=URL")]
    urls: Vec<Named>,
    /// A server that is loaded by LiveKit's protocol, and where it has that: NAME=ws://{ip}:7880
    #[arg(long = "livekit", value_name = "NAME=URL")]
    livekit: Vec<Named>,
    /// How often all servers have their turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// The cores that the servers may use
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "0")]
    server_cores: Vec<usize>,
    /// The cores that the load comes from
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    load_cores: Vec<usize>,
    /// How long each of the two ceilings is measured before each round, in seconds; 0: neither
    /// ceilings nor the lateness of the cores
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = ceiling::seconds_or_none)]
    ceiling: f64,
    /// How long the ceiling's loop is measured with the participants of each step that was carried,
    /// in seconds; 0: not at all
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = ceiling::seconds_or_none)]
    efficiency: f64,
    /// Each participant has a socket, instead of an address of its own and a socket with the others
    #[arg(long)]
    own_sockets: bool,
    /// A further server on the load's side and cores, started before each run: its command as that
    /// of --server, such as portunus --config {dir}/portunus-mixer.toml
    #[arg(long, value_name = "COMMAND")]
    beside: Option<String>,
    /// The folder for figures, reports and the servers' logs
    #[arg(long, value_name = "FOLDER", default_value = "hammer-lab")]
    out: PathBuf,
    /// End with status 3 unless each run meets this, such as 'loss<1%'; may be given several times
    #[arg(long, value_name = "THRESHOLD")]
    require: Vec<Threshold>,
    /// The report's title [default: scenario and servers]
    #[arg(long)]
    title: Option<String>,
    /// The scenario and its options, such as: streaming --bitrate 2M; {ip} in it is the server's
    /// address. Several scenarios have the word "and" between them; --sizes may name several
    /// patterns of packet sizes, with commas between. All are run in turn
    #[arg(last = true, required = true, value_name = "SCENARIO")]
    scenario: Vec<String>,
}

/// A command line of the lab only.
#[derive(Debug, Parser)]
#[command(name = "lab")]
struct Line {
    #[command(flatten)]
    options: Options,
}

const AFTER_HELP: &str = "\
COMMAND is a program and its arguments, quoted as for a shell. It may hold {ip} (the address to serve at), {core} (the
server's first core), {cores} (how many it has) and {dir}, a folder with configurations for it: {dir}/portunus.toml,
{dir}/portunus-N.toml (the same with N workers),
{dir}/portunus-adapting.toml and {dir}/portunus-not-adapting.toml (bandwidth adaptation on and off),
{dir}/portunus-busy-poll.toml (busy_poll_us = 200), {dir}/portunus-one-port.toml (one_port = true), {dir}/portunus-transcoding.toml (sip.transcoding),
{dir}/portunus-webhook.toml and
{dir}/portunus-hanging-webhook.toml (all events are posted to hammer, which takes them or never answers), {dir}/portunus-livekit.toml,
{dir}/portunus-mixer.toml (an audio site that telephones call, for --beside), {dir}/livekit.yaml and {dir}/janus/. Four commands are known by name; those of LiveKit are loaded by its protocol:
  portunus          portunus --config {dir}/portunus.toml
  portunus-livekit  portunus --config {dir}/portunus-livekit.toml
  debian-janus      janus --configs-folder {dir}/janus
  livekit-server    livekit-server --config {dir}/livekit.yaml

Example, as root:
  portunus-hammer lab --server portunus=portunus --server janus=debian-janus -- streaming --bitrate 2M";

/// The reason why the lab ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The words do not name a scenario.
    #[error(transparent)]
    Scenario(#[from] WordsError),
    /// A server's name or URL is malformed.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There are no namespaces.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The ceiling could not be measured.
    #[error("measuring the ceiling: {0}")]
    Ceiling(#[from] CeilingError),
    /// A file or folder cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The receiver of events could not start.
    #[error("listening for events: {0}")]
    Sink(io::Error),
    /// The scenario could not be started.
    #[error("the scenario cannot be started: {0}")]
    Child(io::Error),
    /// The scenario ended with an error, which it has printed.
    #[error("the scenario against {server} ended with {status}")]
    ScenarioFailed {
        /// The server.
        server: String,
        /// Its exit status.
        status: std::process::ExitStatus,
    },
    /// The scenario's figures cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The reports cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Runs everything, and writes the reports even if a part failed. Returns whether all runs meet the
/// thresholds.
pub fn run(options: &Options) -> Result<bool, LabError> {
    let plan = Plan::new(options)?;
    let site = Site::new()?;
    let mut report = Report::new(plan.title.clone(), Vec::new());
    let outcome = measure(options, &plan, &site, &mut report);
    if !report.runs.is_empty() {
        report::write_all(&report, &options.out)?;
        print!("{}", report::for_terminal(&report));
        println!("Reports: {}", options.out.display());
    }
    outcome?;
    Ok(thresholds::all_met(&options.require, &report.runs))
}

/// Checks the plan, and starts nothing.
#[cfg(test)]
pub(crate) fn check(options: &Options) -> Result<(), LabError> {
    Plan::new(options).map(drop)
}

/// Runs everything in `site`, and writes only the record and the servers' logs. Returns the runs.
pub(crate) fn runs(options: &Options, site: &Site) -> Result<Vec<RunRecord>, LabError> {
    let plan = Plan::new(options)?;
    let mut report = Report::new(plan.title.clone(), Vec::new());
    measure(options, &plan, site, &mut report)?;
    Ok(report.runs)
}

fn measure(
    options: &Options,
    plan: &Plan,
    site: &Site,
    report: &mut Report,
) -> Result<(), LabError> {
    let has_webhook = plan.servers.iter().any(spec::ServerSpec::has_webhook);
    let sink = has_webhook.then(|| Sink::start(&site.link, &options.load_cores));
    let lab = Lab {
        options,
        link: &site.link,
        sink: sink.transpose().map_err(LabError::Sink)?,
        interrupted: &site.interrupted,
    };
    lab.rounds(plan, report)
}

/// The place of measurements: the namespaces of server and load, which end with this value.
#[derive(Debug)]
pub(crate) struct Site {
    link: Link,
    interrupted: Arc<AtomicBool>,
}

impl Site {
    /// Makes the namespaces. From then on, the first SIGINT or SIGTERM ends the current measurement
    /// in order.
    pub(crate) fn new() -> Result<Self, LabError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A second signal ends the program at once.
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&interrupted))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
                .map_err(LabError::Child)?;
        }
        let link = Link::new()?;
        Ok(Self { link, interrupted })
    }
}

impl Site {
    /// Returns whether the user has interrupted the measurements.
    pub(crate) fn interrupted(&self) -> &AtomicBool {
        &self.interrupted
    }
}

impl Options {
    /// Parses the words of a command line that follow `lab`.
    pub(crate) fn of(words: &[String]) -> Result<Self, clap::Error> {
        let program = std::iter::once("lab");
        let line = Line::try_parse_from(program.chain(words.iter().map(String::as_str)));
        line.map(|line| line.options)
    }

    /// Returns the words of the scenario with its options.
    fn words(&self) -> impl Iterator<Item = String> {
        let (ip, load) = (SERVER_IP.to_string(), LOAD_IP.to_string());
        self.scenario
            .iter()
            .map(move |word| word.replace("{ip}", &ip).replace("{load-ip}", &load))
    }
}

/// The plan, checked before the start.
struct Plan {
    title: String,
    servers: Vec<spec::ServerSpec>,
    scenarios: Vec<PlannedScenario>,
}

/// A scenario for all servers.
struct PlannedScenario {
    words: Vec<String>,
    /// Its name if there are several.
    name: Option<String>,
    ceiling: Option<ceiling::Options>,
    /// Whether its options have an API secret, for servers with another one.
    shows_secret: bool,
}

impl Plan {
    fn new(options: &Options) -> Result<Self, LabError> {
        let servers = spec::servers(&options.servers, &options.urls, &options.livekit)?;
        let words: Vec<String> = options.words().collect();
        let scenarios = variants(&words).into_iter();
        let scenarios: Result<Vec<_>, LabError> = scenarios
            .map(|variant| PlannedScenario::new(options, variant))
            .collect();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let title = options.title.clone();
        Ok(Self {
            title: title
                .unwrap_or_else(|| format!("{}: {}", heading(&options.scenario), names.join(", "))),
            scenarios: scenarios?,
            servers,
        })
    }
}

impl PlannedScenario {
    fn new(options: &Options, variant: variants::Variant) -> Result<Self, LabError> {
        let variants::Variant { words, name } = variant;
        let scenario = Scenario::of(&words)?;
        let demand = scenario.demand();
        demand.traffic.check().map_err(CeilingError::from)?;
        let ceiling = (options.ceiling > 0.0).then(|| ceiling::Options {
            duration: options.ceiling,
            server_core: options.server_cores.first().copied().unwrap_or_default(),
            load_core: options.load_cores.first().copied().unwrap_or_default(),
            own_sockets: options.own_sockets,
            ..ceiling::Options::of(demand)
        });
        Ok(Self {
            shows_secret: words.iter().any(|word| word.starts_with("--api-secret")),
            words,
            name,
            ceiling,
        })
    }

    /// Returns the path of a server's log.
    fn log(&self, server: &str, round: u32) -> String {
        match &self.name {
            Some(name) => format!("{server}-{name}-{round}.log"),
            None => format!("{server}-{round}.log"),
        }
    }
}

/// Returns the scenario's name for a title.
fn heading(scenario: &[String]) -> String {
    let mut letters = scenario.first().map_or("", String::as_str).chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The machine without load.
struct Bare {
    ceiling: Ceiling,
    lateness: Vec<Lateness>,
}

struct Lab<'a> {
    options: &'a Options,
    link: &'a Link,
    /// The receiver of webhooks, if a server has one.
    sink: Option<Sink>,
    interrupted: &'a AtomicBool,
}

impl Lab<'_> {
    fn rounds(&self, plan: &Plan, report: &mut Report) -> Result<(), LabError> {
        let logs = self.options.out.join("logs");
        fs::create_dir_all(&logs).map_err(|source| LabError::Write {
            path: logs.clone(),
            source,
        })?;
        for round in 1..=self.options.rounds {
            for scenario in &plan.scenarios {
                let machine = self.machine(scenario)?;
                for spec in &plan.servers {
                    self.check()?;
                    let log = logs.join(scenario.log(&spec.name, round));
                    let mut runs = self.run(spec, scenario, &log)?;
                    for run in &mut runs {
                        run.round = round;
                        if let Some(machine) = &machine {
                            self.compare(run, scenario, machine)?;
                        }
                        doubts::add(run);
                    }
                    report.runs.extend(runs);
                    // Earlier results stay, whatever happens to the rest.
                    let path = self.options.out.join(report::JSON);
                    report
                        .write(&path)
                        .map_err(|source| LabError::Write { path, source })?;
                }
            }
        }
        Ok(())
    }

    /// Measures the machine before a server uses it.
    fn machine(&self, scenario: &PlannedScenario) -> Result<Option<Bare>, LabError> {
        let Some(options) = &scenario.ceiling else {
            return Ok(None);
        };
        self.check()?;
        let progress = Progress::start("ceiling");
        progress.note("watching how late the cores answer by themselves");
        let cores = [
            self.options.server_cores.as_slice(),
            &self.options.load_cores,
        ];
        let lateness = machine::lateness(&cores.concat(), WATCHED);
        let lateness = lateness.map_err(CeilingError::from)?;
        progress.note("measuring what the core can do at most");
        let ceiling = ceiling::measure(options, Some(self.link))?;
        for criterion in Criterion::BOTH {
            if let Some(bare) = ceiling.of(criterion) {
                progress.keep(&format!(
                    "{}: {}, enough for {} participants",
                    criterion.name(),
                    figures::bits_per_s(bare.delivered_bps),
                    figures::count(bare.participants.unwrap_or(bare.viewers))
                ));
            }
        }
        Ok(Some(Bare { ceiling, lateness }))
    }

    /// Adds the ceilings, and the cost of the bare loop for the participants of each carried step.
    /// Above its capacity in time, the loop joins frames.
    fn compare(
        &self,
        run: &mut RunRecord,
        scenario: &PlannedScenario,
        machine: &Bare,
    ) -> Result<(), LabError> {
        let Bare { ceiling, lateness } = machine;
        if let Some(options) = scenario
            .ceiling
            .as_ref()
            .filter(|_| self.options.efficiency > 0.0)
        {
            self.check()?;
            let progress = Progress::start("ceiling");
            progress.note("measuring what the bare loop needs for as many");
            let options = ceiling::Options {
                duration: self.options.efficiency,
                ..options.clone()
            };
            let in_time = run.steps.iter().filter(|step| step.in_time);
            let mut participants: Vec<u32> = in_time.map(|step| step.participants).collect();
            participants.sort_unstable();
            participants.dedup();
            participants.retain(|participants| *participants > 0);
            let loads = ceiling::loads(&options, Some(self.link), ceiling, &participants)?;
            let in_time = ceiling.in_time.participants.unwrap_or_default();
            let late = ceiling.at_all.as_ref().map(BareLoop::cpu_ns_per_packet);
            for step in run.steps.iter_mut().filter(|step| step.carried) {
                let mut loads = loads.iter();
                let of = loads.find(|load| load.participants == step.participants);
                step.loop_cpu_ns_per_packet = match step.in_time {
                    true => of.map(|load| load.cpu_ns_per_packet),
                    // If the loop would be in time, the reason was not the amount of work.
                    false => late.filter(|_| f64::from(step.participants) > in_time),
                };
            }
        }
        run.lateness.clone_from(lateness);
        run.ceiling = Some(ceiling.clone());
        run.compare();
        Ok(())
    }

    /// Starts a server, runs the scenario against it, and stops the server.
    fn run(
        &self,
        spec: &spec::ServerSpec,
        scenario: &PlannedScenario,
        log: &Path,
    ) -> Result<Vec<RunRecord>, LabError> {
        let cores = &self.options.server_cores;
        let beside = self.options.beside.as_deref();
        let beside = beside.map(|command| self.start_beside(command, log));
        // It ends when this function returns.
        let _beside = beside.transpose()?;
        let place = Place {
            side: &self.link.server,
            from: &self.link.load,
            cores,
        };
        let mut server = Server::start(spec, place, log, self.interrupted)?;
        let figures = server.dir().join("figures.json");
        let mut command =
            inside(&self.link.load, &self.options.load_cores).map_err(LabError::Child)?;
        command
            .arg(std::env::current_exe().map_err(LabError::Child)?)
            .args(&scenario.words);
        if !scenario.shows_secret {
            command.args(["--api-secret", config::API_SECRET]);
        }
        self.add_options(&mut command, &server, spec, &figures);
        let mut scenario = Process::start(&mut command).map_err(LabError::Child)?;
        let status = match scenario.wait(self.interrupted).map_err(LabError::Child)? {
            Ended::WithStatus(status) => status,
            Ended::Interrupted => return Err(LabError::Interrupted),
        };
        if !status.success() && status.code() != Some(thresholds::NOT_MET) {
            return Err(LabError::ScenarioFailed {
                server: spec.name.clone(),
                status,
            });
        }
        let mut runs = Report::read(&figures)?.runs;
        let died = server.stop();
        let webhook = self.events_of(spec);
        for run in &mut runs {
            run.server.webhook = webhook;
            run.server.name.clone_from(&spec.name);
            run.server.command = Some(spec.to_text());
            run.server.cores.clone_from(cores);
            if webhook.is_some_and(|webhook| webhook.events == 0) {
                run.summary.warnings.push(NO_EVENTS.to_owned());
            }
            if let Some(status) = died {
                let warning = format!("the server ended by itself during the run, with {status}");
                run.summary.warnings.push(warning);
            }
        }
        Ok(runs)
    }

    /// Starts the further server on the load's side.
    fn start_beside(&self, command: &str, log: &Path) -> Result<Server, LabError> {
        let spec = spec::beside(command)?;
        let place = Place {
            side: &self.link.load,
            from: &self.link.server,
            cores: &self.options.load_cores,
        };
        let log = log.with_extension("beside.log");
        Ok(Server::start(&spec, place, &log, self.interrupted)?)
    }

    /// Returns the events of a server's webhook since the last call.
    fn events_of(&self, spec: &spec::ServerSpec) -> Option<Webhook> {
        let sink = self.sink.as_ref().filter(|_| spec.has_webhook())?;
        let webhook = sink.take();
        let Webhook {
            events,
            requests,
            bytes,
        } = webhook;
        let line = format!("webhook: {events} events in {requests} requests, {bytes} bytes");
        Progress::start(&spec.name).keep(&line);
        Some(webhook)
    }

    /// Adds the lab's options to the scenario's command line.
    fn add_options(
        &self,
        command: &mut Command,
        server: &Server,
        spec: &spec::ServerSpec,
        figures: &Path,
    ) {
        command.args(["--name", &spec.name]);
        match spec.api {
            Api::Janus => command.args(["--janus", &server.url]),
            Api::LiveKit => command
                .args(["--livekit", &server.url])
                .args(["--livekit-key", config::LIVEKIT_KEY])
                .args(["--livekit-secret", config::LIVEKIT_SECRET]),
        };
        command.args(["--server-pid", &server.pid().to_string()]);
        command.args(["--link", self.link.load.interface]);
        if !self.options.own_sockets {
            command.args(["--addresses", &Addresses::LAB.to_string()]);
        }
        command.arg("--json").arg(figures);
    }

    fn check(&self) -> Result<(), LabError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }
}
