//! The processes of a cluster: its nodes and its bus, each in a namespace.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::script::{Event, LinkPath, name};
use crate::lab::config::portunus;
use crate::lab::process::{Process, inside};
use crate::machine::{BUS_IP, Mesh, Namespace, NamespaceError, Quality, Station};
use crate::scenario::nodes::Place;

/// The longest start until it accepts connections, and until all links are up.
const START: Duration = Duration::from_secs(60);
/// The longest end.
const END: Duration = Duration::from_secs(5);
/// The interval of looks.
const LOOK: Duration = Duration::from_millis(100);
/// The lines of a log that are shown.
const LOG_LINES: usize = 12;

/// The port of the bus.
const BUS_PORT: u16 = 4222;
/// The port of a node's Janus API over WebSocket.
const API_PORT: u16 = 8188;

/// The port of a node's Admin API, which only its own namespace reaches.
const ADMIN_PORT: u16 = 7088;

/// The room that each node has.
pub(super) const ROOM: u64 = 1234;

/// The programs and where they run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crew<'a> {
    pub(super) server: &'a Path,
    pub(super) nats_server: &'a Path,
    pub(super) cores: &'a [usize],
    /// The folder of logs.
    pub(super) logs: &'a Path,
    pub(super) interrupted: &'a AtomicBool,
}

/// A cluster that runs. It ends with this value.
#[derive(Debug)]
pub(super) struct Site<'a> {
    crew: Crew<'a>,
    mesh: &'a Mesh,
    dir: TempDir,
    bus: Option<Process>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    name: String,
    config: PathBuf,
    process: Option<Process>,
}

/// The reason why a cluster did not start, or an event could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program cannot be started.
    #[error("{program} cannot be started: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program ended early, or is silent.
    #[error("{what} {how}; its log {} ends with:\n{tail}", log.display())]
    NotReady {
        /// The node or the bus.
        what: String,
        /// The fault.
        how: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// `portunus cluster` failed.
    #[error("portunus cluster {arguments}: {message}")]
    Command {
        /// Its arguments.
        arguments: String,
        /// Its message.
        message: String,
    },
    /// The Admin API of a node refuses a request.
    #[error("{request} at {node}: {message}")]
    Admin {
        /// The node.
        node: String,
        /// The request.
        request: String,
        /// The error in its answer.
        message: String,
    },
    /// The links between the nodes did not come up.
    #[error("the nodes have no links after {} s: {status}", START.as_secs())]
    NoLinks {
        /// The state of the node that misses some.
        status: String,
    },
    /// A link cannot be changed.
    #[error(transparent)]
    Link(#[from] NamespaceError),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

fn write(path: &Path) -> impl Fn(io::Error) -> SiteError + '_ {
    |source| SiteError::Write {
        path: path.to_owned(),
        source,
    }
}

impl<'a> Site<'a> {
    /// Starts one server without a cluster in the namespace of the first node.
    pub(super) fn alone(crew: Crew<'a>, mesh: &'a Mesh) -> Result<Self, SiteError> {
        let mut site = Self::new(crew, mesh)?;
        if let Some(node) = mesh.nodes().first() {
            site.add("alone", portunus(&node.ip.to_string(), 1))?;
        }
        site.start(0)?;
        site.ready(0)?;
        Ok(site)
    }

    /// Starts the bus and all nodes, and waits until they are linked.
    pub(super) fn cluster(crew: Crew<'a>, mesh: &'a Mesh) -> Result<Self, SiteError> {
        let mut site = Self::new(crew, mesh)?;
        site.start_bus()?;
        for (index, node) in mesh.nodes().iter().enumerate() {
            let (ip, letter) = (node.ip.to_string(), name(index));
            let folder = site.dir.path().join(letter.to_lowercase());
            let config = portunus(&ip, 1) + &section(&ip, &letter.to_lowercase(), &folder);
            site.add(&letter, config)?;
        }
        for index in 0..site.nodes.len() {
            match index {
                0 => site.says(0, &["init"])?,
                _ => {
                    let name = name(index).to_lowercase();
                    let folder = site.dir.path().join(&name).display().to_string();
                    site.says(0, &["issue", &name, "--to", &folder])?
                }
            };
        }
        for index in 0..site.nodes.len() {
            site.start(index)?;
        }
        for index in 0..site.nodes.len() {
            site.ready(index)?;
        }
        site.linked()?;
        Ok(site)
    }

    fn new(crew: Crew<'a>, mesh: &'a Mesh) -> Result<Self, SiteError> {
        fs::create_dir_all(crew.logs).map_err(write(crew.logs))?;
        let dir = tempfile::Builder::new()
            .prefix("portunus-hammer-")
            .tempdir();
        Ok(Self {
            dir: dir.map_err(write(&std::env::temp_dir()))?,
            crew,
            mesh,
            bus: None,
            nodes: Vec::new(),
        })
    }

    fn add(&mut self, name: &str, config: String) -> Result<(), SiteError> {
        let path = self.dir.path().join(format!("{name}.toml"));
        fs::write(&path, config).map_err(write(&path))?;
        self.nodes.push(Node {
            name: name.to_owned(),
            config: path,
            process: None,
        });
        Ok(())
    }

    /// Returns the nodes for the load.
    pub(super) fn places(&self) -> Vec<Place> {
        let nodes = self.nodes.iter().zip(self.mesh.nodes());
        let places = nodes.filter_map(|(node, namespace)| {
            Some(Place {
                name: node.name.clone(),
                url: format!("ws://{}:{API_PORT}/", namespace.ip),
                pid: node.process.as_ref()?.pid().try_into().ok()?,
            })
        });
        places.collect()
    }

    /// Does an event of a script. Does not wait for what follows from it.
    pub(super) fn act(&mut self, event: Event) -> Result<(), SiteError> {
        match event {
            Event::Kill(node) => {
                if let Some(process) = self.process(node) {
                    process.kill();
                }
                if let Some(node) = self.nodes.get_mut(node) {
                    node.process = None;
                }
            }
            Event::Start(node) => self.start(node)?,
            Event::Pause(node) => {
                if let Some(process) = self.process(node) {
                    process.pause();
                }
            }
            Event::Resume(node) => {
                if let Some(process) = self.process(node) {
                    process.resume();
                }
            }
            Event::Drain(node) => self.admin(node, "drain")?,
            Event::Undrain(node) => self.admin(node, "undrain")?,
            Event::Cut(path) => self.each_way(path, |mesh, a, b| mesh.cut_way(a, b))?,
            Event::Heal(path) => self.each_way(path, |mesh, a, b| mesh.heal_way(a, b))?,
            Event::CutMedia(path) => self.each_way(path, |mesh, a, b| mesh.cut_media_way(a, b))?,
            Event::HealMedia(path) => {
                self.each_way(path, |mesh, a, b| mesh.heal_media_way(a, b))?
            }
            Event::Delay(path, delay) => self.change(path, |quality| quality.delay = delay)?,
            Event::Jitter(path, jitter) => self.change(path, |quality| quality.jitter = jitter)?,
            Event::Loss(path, loss) => self.change(path, |quality| quality.loss = loss)?,
            Event::StopBus => {
                if let Some(mut bus) = self.bus.take() {
                    bus.kill();
                }
            }
            Event::StartBus => self.run_bus()?,
        }
        Ok(())
    }

    /// Sends a request to the Admin API of a node.
    fn admin(&self, index: usize, request: &str) -> Result<(), SiteError> {
        let namespaces = self.mesh.nodes();
        let (Some(node), Some(namespace)) = (self.nodes.get(index), namespaces.get(index)) else {
            return Ok(());
        };
        let body = format!(r#"{{"janus":"{request}","transaction":"hammer"}}"#);
        let asked = namespace.within(|| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ADMIN_PORT))?;
            stream.set_read_timeout(Some(START))?;
            let head = "POST /admin HTTP/1.1\r\nHost: localhost\r\nConnection: close";
            let length = body.len();
            write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        let answer = asked.and_then(|it: io::Result<String>| it);
        let failed = |message: String| SiteError::Admin {
            node: node.name.clone(),
            request: request.to_owned(),
            message,
        };
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        match answer.contains(r#""success""#) {
            true => Ok(()),
            false => Err(failed(answer)),
        }
    }

    fn each_way(
        &self,
        path: LinkPath,
        act: impl Fn(&Mesh, Station, Station) -> Result<(), NamespaceError>,
    ) -> Result<(), NamespaceError> {
        path.ways()
            .try_for_each(|(from, to)| act(self.mesh, from, to))
    }

    fn change(&self, path: LinkPath, change: impl Fn(&mut Quality)) -> Result<(), NamespaceError> {
        self.each_way(path, |mesh, from, to| mesh.change(from, to, &change))
    }

    fn process(&mut self, node: usize) -> Option<&mut Process> {
        self.nodes.get_mut(node)?.process.as_mut()
    }

    fn start_bus(&mut self) -> Result<(), SiteError> {
        self.run_bus()?;
        let log = self.crew.logs.join("bus.log");
        self.accepts((BUS_IP, BUS_PORT).into(), self.mesh.bus(), "the bus", &log)
    }

    fn run_bus(&mut self) -> Result<(), SiteError> {
        let log = self.crew.logs.join("bus.log");
        let (port, ip) = (BUS_PORT.to_string(), BUS_IP.to_string());
        let store = self.dir.path().join("bus");
        let program = self.crew.nats_server.display().to_string();
        let spawn = spawn(&program);
        let mut command = inside(self.mesh.bus(), self.crew.cores).map_err(&spawn)?;
        command
            .arg(self.crew.nats_server)
            .args(["-a", &ip, "-p", &port, "-js", "-sd"])
            .arg(store);
        output_to(&mut command, &log)?;
        self.bus = Some(Process::start(&mut command).map_err(spawn)?);
        Ok(())
    }

    fn start(&mut self, index: usize) -> Result<(), SiteError> {
        let namespaces = self.mesh.nodes();
        let (Some(node), Some(namespace)) = (self.nodes.get_mut(index), namespaces.get(index))
        else {
            return Ok(());
        };
        let log = self.crew.logs.join(format!("{}.log", node.name));
        let program = self.crew.server.display().to_string();
        let spawn = spawn(&program);
        let mut command = inside(namespace, self.crew.cores).map_err(&spawn)?;
        command
            .arg(self.crew.server)
            .arg("--config")
            .arg(&node.config);
        output_to(&mut command, &log)?;
        node.process = Some(Process::start(&mut command).map_err(spawn)?);
        Ok(())
    }

    /// Waits until a node accepts connections.
    fn ready(&mut self, index: usize) -> Result<(), SiteError> {
        let (mesh, logs) = (self.mesh, self.crew.logs);
        let (Some(node), Some(namespace)) = (self.nodes.get(index), mesh.nodes().get(index)) else {
            return Ok(());
        };
        let log = logs.join(format!("{}.log", node.name));
        let at = SocketAddr::new(namespace.ip, API_PORT);
        let what = node.name.clone();
        self.accepts(at, mesh.hub(), &what, &log)
    }

    /// Waits until there is a listener at `at`, as seen from a namespace.
    fn accepts(
        &mut self,
        at: SocketAddr,
        from: &Namespace,
        what: &str,
        log: &Path,
    ) -> Result<(), SiteError> {
        let not_ready = |how: String| SiteError::NotReady {
            what: what.to_owned(),
            how,
            log: log.to_owned(),
            tail: tail(log),
        };
        let begin = Instant::now();
        loop {
            let connects = from.within(|| TcpStream::connect_timeout(&at, LOOK).is_ok());
            if connects.unwrap_or(false) {
                return Ok(());
            }
            let nodes = self.nodes.iter_mut();
            let all = nodes.filter_map(|node| node.process.as_mut());
            let mut all = all.chain(&mut self.bus).map(Process::ended);
            if let Some(status) = all.find_map(|ended| ended.ok().flatten()) {
                return Err(not_ready(format!(
                    "is not ready, and a process ended with {status}"
                )));
            }
            if begin.elapsed() > START {
                return Err(not_ready(format!("accepts no connections at {at}")));
            }
            self.check()?;
            thread::sleep(LOOK);
        }
    }

    /// Waits until each node has a link to each other one.
    fn linked(&self) -> Result<(), SiteError> {
        let begin = Instant::now();
        let others = self.nodes.len().saturating_sub(1);
        for index in 0..self.nodes.len() {
            loop {
                self.check()?;
                let status = self.status(index);
                let up = status.as_ref().map_or(0, |status| {
                    let links = status.get("links").and_then(Value::as_array);
                    let is_up = |link: &&Value| link.get("state").is_some_and(|it| it == "up");
                    links.into_iter().flatten().filter(is_up).count()
                });
                if up == others {
                    break;
                }
                if begin.elapsed() > START {
                    let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                    return Err(SiteError::NoLinks { status });
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Returns the round trips of the media links of the first node to the others, in µs.
    pub(super) fn round_trips_us(&self) -> Vec<Option<f64>> {
        let status = self.status(0).unwrap_or_default();
        let links = status.get("links").and_then(Value::as_array);
        let of = |name: &str| {
            let name = name.to_lowercase();
            let mut links = links.into_iter().flatten();
            let link = links.find(|link| link.get("node").is_some_and(|node| *node == *name))?;
            link.pointer("/media/round_trip_us")?.as_f64()
        };
        self.nodes.iter().map(|node| of(&node.name)).collect()
    }

    /// Returns what `portunus cluster status` says at a node.
    fn status(&self, index: usize) -> Result<Value, SiteError> {
        let text = self.says(index, &["status", "--json"])?;
        serde_json::from_str(&text).map_err(|error| SiteError::Command {
            arguments: "status --json".to_owned(),
            message: error.to_string(),
        })
    }

    /// Returns what `portunus cluster` prints at a node.
    fn says(&self, index: usize, arguments: &[&str]) -> Result<String, SiteError> {
        let namespaces = self.mesh.nodes();
        let (Some(node), Some(namespace)) = (self.nodes.get(index), namespaces.get(index)) else {
            return Ok(String::new());
        };
        let program = self.crew.server.display().to_string();
        let spawn = spawn(&program);
        let mut command = inside(namespace, self.crew.cores).map_err(&spawn)?;
        command.arg(self.crew.server).arg("cluster").args(arguments);
        command.arg("--config").arg(&node.config);
        let Output {
            status,
            stdout,
            stderr,
        } = command.stdin(Stdio::null()).output().map_err(spawn)?;
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(SiteError::Command {
                arguments: arguments.join(" "),
                message: String::from_utf8_lossy(&stderr).trim().to_owned(),
            }),
        }
    }

    fn check(&self) -> Result<(), SiteError> {
        match self.crew.interrupted.load(Ordering::Relaxed) {
            true => Err(SiteError::Interrupted),
            false => Ok(()),
        }
    }
}

/// All end at once, rather than one after the other.
impl Drop for Site<'_> {
    fn drop(&mut self) {
        for process in self.nodes.iter_mut().filter_map(|it| it.process.as_mut()) {
            // One that stands still does not end.
            process.resume();
        }
        for mut process in self.nodes.iter_mut().filter_map(|it| it.process.take()) {
            process.stop(END);
        }
    }
}

/// Returns what the configuration of a node has of its cluster.
fn section(ip: &str, name: &str, folder: &Path) -> String {
    format!(
        "\
[[videoroom.room]]
room = {ROOM}
publishers = 1000
[cluster]
bus = \"nats://{BUS_IP}:{BUS_PORT}\"
name = \"{name}\"
folder = {folder:?}
bind = [\"{ip}\"]
"
    )
}

fn spawn(program: &str) -> impl Fn(io::Error) -> SiteError + '_ {
    |source| SiteError::Spawn {
        program: program.to_owned(),
        source,
    }
}

/// Appends what a command prints to a log.
fn output_to(command: &mut Command, log: &Path) -> Result<(), SiteError> {
    let output = File::options().create(true).append(true).open(log);
    let output = output.map_err(write(log))?;
    let errors = output.try_clone().map_err(write(log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    Ok(())
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    let last = lines.into_iter().skip(from).map(|line| format!("  {line}"));
    last.collect::<Vec<_>>().join("\n")
}
