//! `hammer cluster`: several nodes on this machine, each in a network namespace, with viewers at all
//! of them, while nodes, links and the bus fail by script.

mod options;
mod script;
mod site;
mod tools;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tokio::runtime;

pub use options::Options;
pub use script::ScriptError;
pub use site::SiteError;
pub(crate) use tools::nats_server;

use crate::lab::config::API_SECRET;
use crate::machine::{Mesh, NamespaceError, PartsPerMillion, in_thread, pin_to, usage, wall_clock};
use crate::progress::Progress;
use crate::record::{Cluster, NodeLoad, Report, RunRecord, Scenario, Server, Summary};
use crate::report;
use crate::scenario::ScenarioError;
use crate::scenario::load::given;
use crate::scenario::nodes::{self, Demand};
use crate::traffic::TrafficError;
use script::{Cue, Event};
use site::{Crew, Site};

/// When the last node is killed, unless there is a script.
const KILL: Duration = Duration::from_secs(5);

/// How often an interruption is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The reason why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A program is missing. The text says what to do.
    #[error("{0}")]
    Missing(String),
    /// The script is wrong.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The traffic is impossible.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// There are no namespaces, or no links between them.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The nodes or the bus did not start.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The load failed.
    #[error(transparent)]
    Load(#[from] ScenarioError),
    /// The load cannot run where it should.
    #[error("{step}: {source}")]
    Place {
        /// The step.
        step: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The record cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

/// Runs everything, prints the figures, and writes the record if requested.
pub fn run(options: &Options) -> Result<(), ClusterError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let place = |source| ClusterError::Place {
        step: "listening for signals",
        source,
    };
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the program at once.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .map_err(place)?;
    }
    let record = measure(options, &interrupted)?;
    let report = Report::new("Several nodes", vec![record]);
    if let Some(path) = &options.json {
        report.write(path).map_err(|source| ClusterError::Write {
            path: path.display().to_string(),
            source,
        })?;
    }
    print!("{}", report::for_terminal(&report));
    Ok(())
}

/// Checks the options, and starts nothing.
#[cfg(test)]
pub(crate) fn check(options: &Options) -> Result<(), ClusterError> {
    options.media.traffic.check()?;
    options.cues()?;
    Ok(())
}

/// Runs everything. Returns the record.
pub(crate) fn measure(
    options: &Options,
    interrupted: &AtomicBool,
) -> Result<RunRecord, ClusterError> {
    let started = wall_clock();
    options.media.traffic.check()?;
    let cues = options.cues()?;
    let nats_server = nats_server(options.nats_server.as_deref());
    let nats_server = nats_server.map_err(ClusterError::Missing)?;
    let server = tools::portunus(options.server.as_deref());
    let server = server.map_err(ClusterError::Missing)?;
    let mesh = options.mesh(&cues)?;
    let crew = Crew {
        server: &server,
        nats_server: &nats_server,
        cores: &options.server_cores,
        logs: &options.out,
        interrupted,
    };
    let director = Director {
        options,
        crew,
        mesh: &mesh,
        progress: Progress::start("cluster"),
    };
    let cluster = in_thread(|| {
        // Sockets and threads of the load are in this thread's namespace and on its cores.
        let place = |step| move |source| ClusterError::Place { step, source };
        let namespace = "entering the namespace of the load";
        mesh.hub().enter().map_err(place(namespace))?;
        pin_to(&options.load_cores).map_err(place("pinning the load"))?;
        director.direct(&cues)
    })?;
    Ok(RunRecord {
        scenario: Scenario {
            name: "cluster".to_owned(),
            options: options.by_name(),
        },
        server: Server {
            name: "portunus".to_owned(),
            version: version(&server),
            command: Some(server.display().to_string()),
            cores: options.server_cores.clone(),
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
        summary: Summary {
            warnings: doubts(&cluster),
            ..Summary::default()
        },
        browsers: None,
        cluster: Some(cluster),
    })
}

/// Starts the servers, and lets the load play.
struct Director<'a> {
    options: &'a Options,
    crew: Crew<'a>,
    mesh: &'a Mesh,
    progress: Progress,
}

impl Director<'_> {
    fn direct(&self, cues: &[Cue]) -> Result<Cluster, ClusterError> {
        let options = self.options;
        let demand = options.demand();
        let mut cluster = Cluster {
            nodes: options.nodes.into(),
            link_delay_ms: options.delay,
            link_loss_share: options.loss / 100.0,
            ..Cluster::default()
        };
        if !options.script_only {
            cluster.alone_cpu_cores = self.alone(&demand)?;
        }
        self.progress.note("the nodes start");
        let mut site = Site::cluster(self.crew, self.mesh)?;
        let places = site.places();
        if !options.script_only {
            self.progress.note("viewers of one source at all nodes");
            cluster.each = self.wait(nodes::spread(&places, &demand))?;
            for (node, round_trip) in cluster.each.iter_mut().zip(site.round_trips_us()) {
                node.round_trip_us = round_trip;
            }
            if let ([near, far, ..], true) = (&*places, demand.sources > 0) {
                self.progress.note("sources that cross to one other node");
                cluster.relay = self.wait(nodes::relays(near, far, &demand))?;
            }
        }
        if !options.no_script {
            self.progress.note("the script");
            let spoken = cues.iter().map(|cue| nodes::Cue {
                at: cue.at,
                event: cue.event.to_string(),
            });
            let spoken: Vec<nodes::Cue> = spoken.collect();
            let last = cues.last().map_or(Duration::ZERO, |cue| cue.at);
            let end = last + Duration::from_secs_f64(options.after);
            let mut act = |index: usize| {
                let Some(cue) = cues.get(index) else {
                    return Ok(());
                };
                self.progress.keep(&cue.event.to_string());
                site.act(cue.event).map_err(|error| error.to_string())
            };
            let play = nodes::play(&places, &demand, (&*spoken, end), &mut act);
            // An event blocks its thread for as long as programs such as `ip` take. Clients go on in
            // another one meanwhile.
            let mut runtime = runtime::Builder::new_multi_thread();
            cluster.acts = self.wait_in(runtime.worker_threads(1), play)?;
        }
        drop(site);
        if !options.script_only {
            // What disturbs the machine now and then must not flatter the nodes.
            let again = self.alone(&demand)?;
            let both = cluster.alone_cpu_cores.into_iter().chain(again);
            cluster.alone_cpu_cores = both.min_by(f64::total_cmp);
            cluster.times_one = times_one(cluster.alone_cpu_cores, &cluster.each);
        }
        Ok(cluster)
    }

    /// Returns the CPU time of one server without a cluster.
    fn alone(&self, demand: &Demand) -> Result<Option<f64>, ClusterError> {
        self.progress.note("one server alone");
        let site = Site::alone(self.crew, self.mesh)?;
        let Some(place) = site.places().into_iter().next() else {
            return Ok(None);
        };
        Ok(self.wait(nodes::alone(&place, demand))?.cpu_cores)
    }

    /// Lets the load play on this thread, until it is done or the user interrupts.
    fn wait<T>(
        &self,
        load: impl Future<Output = Result<T, ScenarioError>>,
    ) -> Result<T, ClusterError> {
        self.wait_in(&mut runtime::Builder::new_current_thread(), load)
    }

    /// The same, in a runtime that may have further threads.
    fn wait_in<T>(
        &self,
        runtime: &mut runtime::Builder,
        load: impl Future<Output = Result<T, ScenarioError>>,
    ) -> Result<T, ClusterError> {
        let runtime = runtime.enable_all().build();
        let runtime = runtime.map_err(ScenarioError::Runtime)?;
        runtime.block_on(async {
            let interruption = async {
                while !self.crew.interrupted.load(Ordering::Relaxed) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::select! {
                outcome = load => Ok(outcome?),
                () = interruption => Err(ClusterError::Interrupted),
            }
        })
    }
}

impl Options {
    /// Returns the script.
    fn cues(&self) -> Result<Vec<Cue>, ScriptError> {
        let nodes = usize::from(self.nodes);
        if self.at.is_empty() {
            return Ok(vec![Cue {
                at: KILL,
                event: Event::Kill(nodes.saturating_sub(1)),
            }]);
        }
        script::parse(&self.at, nodes)
    }

    /// Returns the namespaces, with links as the options want them. Links that only carry cost less.
    fn mesh(&self, cues: &[Cue]) -> Result<Mesh, NamespaceError> {
        let is_impaired = self.delay > 0.0 || self.jitter > 0.0 || self.loss > 0.0;
        if !is_impaired && !cues.iter().any(|cue| cue.event.impairs()) {
            return Mesh::new(self.nodes);
        }
        let mesh = Mesh::impaired(self.nodes)?;
        let of_ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        mesh.change_all(|quality| {
            quality.delay = of_ms(self.delay);
            quality.jitter = of_ms(self.jitter);
            quality.loss = PartsPerMillion::of_percent(self.loss);
        })?;
        Ok(mesh)
    }

    fn demand(&self) -> Demand {
        Demand {
            media: self.media.clone(),
            viewers: self.viewers,
            sources: self.sources,
            guests: self.guests,
            // More than nothing, so that the first viewer decrypts.
            check_share: self.check_share.max(f64::MIN_POSITIVE),
            duration: Duration::from_secs_f64(self.duration),
            settle: Duration::from_secs_f64(self.settle),
            own_sockets: self.own_sockets,
            api_secret: API_SECRET.to_owned(),
            room: site::ROOM,
        }
    }

    /// Returns the options that affect the figures, by their names.
    fn by_name(&self) -> BTreeMap<String, Value> {
        let mut named = given([
            ("nodes", json!(self.nodes)),
            ("viewers", json!(self.viewers)),
            ("sources", json!(self.sources)),
            ("guests", json!(self.guests)),
            ("delay", json!(self.delay)),
            ("jitter", json!(self.jitter)),
            ("loss", json!(self.loss)),
            ("duration", json!(self.duration)),
            ("settle", json!(self.settle)),
            ("check-share", json!(self.check_share)),
        ]);
        named.extend(self.media.by_name());
        named
    }
}

/// Returns the viewers that all nodes carry, as a multiple of those of one server, by CPU time.
fn times_one(alone: Option<f64>, each: &[NodeLoad]) -> Option<f64> {
    let alone = alone?;
    let of = |node: &NodeLoad| node.cpu_cores.filter(|cpu| *cpu > 0.0);
    let all: Option<Vec<f64>> = each.iter().map(of).collect();
    Some(all?.into_iter().map(|cpu| alone / cpu).sum())
}

/// Returns reasons to doubt the figures.
fn doubts(cluster: &Cluster) -> Vec<String> {
    let lost = cluster
        .each
        .iter()
        .filter(|node| node.delivered_share < 0.995);
    let lost = lost.map(|node| {
        let share = crate::figures::percent(node.delivered_share);
        format!(
            "only {share} of the packets came at {}: fewer viewers fit",
            node.node
        )
    });
    let failed = cluster.acts.iter().filter_map(|act| {
        let failure = act.failure.as_ref()?;
        Some(format!("{} could not be done: {failure}", act.event))
    });
    lost.chain(failed).collect()
}

/// Returns what the server says of its version.
fn version(server: &Path) -> Option<String> {
    let output = Command::new(server).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn node(cpu_cores: Option<f64>) -> NodeLoad {
        NodeLoad {
            cpu_cores,
            ..NodeLoad::default()
        }
    }

    #[test]
    fn nodes_carry_as_many_times_more_as_their_cpu_time_allows() {
        let each = [node(Some(0.25)), node(Some(0.2)), node(Some(0.2))];
        let times = times_one(Some(0.2), &each).unwrap();
        assert!((times - 2.8).abs() < 1e-9, "{times}");
        assert_eq!(times_one(None, &each), None);
        assert_eq!(times_one(Some(0.2), &[node(None)]), None);
    }

    #[test]
    fn without_a_script_the_last_node_is_killed() {
        let words = ["--nodes", "3"].map(str::to_owned);
        let cues = Options::of(&words).unwrap().cues().unwrap();
        let events: Vec<Event> = cues.iter().map(|cue| cue.event).collect();
        assert_eq!(events, [Event::Kill(2)]);
        let words = [
            "--at",
            "1",
            "stop-bus",
            "--at",
            "2 start-bus",
            "--nodes",
            "2",
        ];
        let words = words.map(str::to_owned);
        let cues = Options::of(&words).unwrap().cues().unwrap();
        let events: Vec<Event> = cues.iter().map(|cue| cue.event).collect();
        assert_eq!(events, [Event::StopBus, Event::StartBus]);
    }
}
