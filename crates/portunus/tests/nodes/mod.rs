//! Processes as nodes of a cluster, with a real nats-server.
#![allow(dead_code, reason = "each test uses some of it")]

pub mod bus;
pub mod callers;
pub mod events;
pub mod guests;
pub mod livekit;
pub mod writers;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_hammer::machine::{BUS_IP, Mesh, NamespaceError};
use portunus_tests::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{PATIENCE, Process, attach_to, post, run_by, signal};
use bus::Bus;

/// The program, or `None` with a message.
pub fn nats_server() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let program = cache.or_else(home)?.join("portunus/tools/nats-server");
    if program.exists() {
        return Some(program);
    }
    println!("skipped: there is no nats-server 2.11 (scripts/setup cluster)");
    None
}

/// A nats-server with JetStream.
pub fn nats(program: &Path, folder: &Path, port: u16) -> Process {
    Bus::at(program, folder, (Ipv4Addr::LOCALHOST, port)).process
}

/// A node of a cluster.
pub struct Node {
    pub name: String,
    pub config: PathBuf,
    pub port: u16,
    /// The port for media of other nodes.
    pub media_port: u16,
    admin: u16,
    pub running: Option<(Process, String)>,
    /// The environment of its programs.
    pub environment: Vec<(&'static str, PathBuf)>,
    /// The namespace that it is in, by its number.
    apart: Option<(Arc<Mesh>, usize)>,
}

impl Node {
    pub fn new(folder: &Path, name: &str, bus: u16) -> Self {
        Self::with(folder, name, bus, "")
    }

    /// A node with further keys in the section `[cluster]`.
    pub fn with(folder: &Path, name: &str, bus: u16, keys: &str) -> Self {
        let localhost = Ipv4Addr::LOCALHOST;
        let bus = format!("nats://{localhost}:{bus}");
        Self::at(folder, name, (localhost.into(), &bus), keys)
    }

    /// A node whose bus is at these addresses.
    pub fn of_bus(folder: &Path, name: &str, bus: &str) -> Self {
        Self::at(folder, name, (Ipv4Addr::LOCALHOST.into(), bus), "")
    }

    /// A node at this address, with the bus at that one.
    fn at(folder: &Path, name: &str, (ip, bus): (IpAddr, &str), keys: &str) -> Self {
        let place = folder.join(name);
        std::fs::create_dir(&place).unwrap();
        let (http, admin, port) = (free_port(), free_port(), free_port());
        let media_port = free_port();
        let config = format!(
            "[http]\nbind = [\"{ip}\"]\nport = {http}\n[websocket]\nenabled = false\n\
             [media]\nbind = [\"{ip}\"]\nport = 0\nworkers = 1\n[admin]\nport = {admin}\n\
             [recording]\ndir = {:?}\nkeep_free_mb = 0\n[[videoroom.room]]\nroom = 1234\npublishers = 20\n\
             [[textroom.room]]\nroom = 1234\nhistory = 10\n[cluster]\nbus = \"{bus}\"\nname = \"{name}\"\nfolder = {:?}\n\
             bind = [\"{ip}\"]\nport = {port}\nmedia_port = {media_port}\nurl = \"http://{ip}:{http}/\"\n{keys}",
            place.join("rec"),
            place.join("cluster"),
        );
        let path = place.join("portunus.toml");
        std::fs::write(&path, config).unwrap();
        Node {
            name: name.to_owned(),
            config: path,
            port,
            media_port,
            admin,
            running: None,
            environment: Vec::new(),
            apart: None,
        }
    }

    /// Does something where the node is.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.apart {
            Some((mesh, number)) => mesh.nodes()[*number].within(work).unwrap(),
            None => work(),
        }
    }

    pub fn start(&mut self) {
        let program = self.program();
        self.running = Some(self.within(|| run_by(program, &self.config)));
    }

    fn program(&self) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portunus"));
        program.envs(self.environment.iter().cloned());
        program
    }

    /// Sends a signal to its process.
    pub fn signal(&self, name: &str) {
        signal(&self.running.as_ref().unwrap().0, name);
    }

    /// Returns the folder of its certificates.
    pub fn certificates(&self) -> PathBuf {
        self.config.with_file_name("cluster")
    }

    pub fn api(&self) -> &str {
        &self.running.as_ref().unwrap().1
    }

    /// Returns the URL of its server for clients.
    pub fn url(&self) -> &str {
        self.api().strip_suffix("janus").unwrap()
    }

    /// Returns the answer of its Admin API.
    pub fn admin(&self, request: &Value) -> Value {
        let url = format!("http://127.0.0.1:{}/admin", self.admin);
        self.within(|| post(&url, request))
    }

    pub fn command(&self, arguments: &[&str]) -> Output {
        let mut command = self.program();
        command
            .arg("cluster")
            .args(arguments)
            .arg("--config")
            .arg(&self.config);
        self.within(|| command.output().unwrap())
    }

    pub fn says(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.says(&["status", "--json"])).unwrap()
    }

    pub fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: {status:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn join_room(&self) {
        let handle = attach_to(self.api(), "janus.plugin.videoroom");
        let body = json!({ "request": "join", "ptype": "publisher", "room": 1234 });
        post(
            &handle,
            &json!({ "janus": "message", "transaction": "t", "body": body }),
        );
    }
}

pub fn links_up(status: &Value) -> usize {
    let links = status["links"].as_array().unwrap();
    links.iter().filter(|link| link["state"] == "up").count()
}

/// Those of them that do not lead through a third node.
pub fn direct_links(status: &Value) -> usize {
    let links = status["links"].as_array().unwrap().iter();
    let direct = |link: &&Value| link["state"] == "up" && link["through"].is_null();
    links.filter(direct).count()
}

pub fn path_of(api: &str, path: &str) -> String {
    api.replace("/janus", path)
}

/// The home of the room with this name, if a status has one.
pub fn home_of<'s>(status: &'s Value, room: &str) -> Option<&'s Value> {
    let what = format!("room.videoroom {room:?}");
    let mut homes = status["homes"].as_array().unwrap().iter();
    homes.find(|home| home["what"] == what)
}

/// The node that is the home of room 1234, and the revision since which it is.
#[track_caller]
pub fn home(status: &Value) -> (Value, Value) {
    let home = home_of(status, "1234").expect("a home");
    (home["node"].clone(), home["revision"].clone())
}

/// A cluster of nodes that are linked.
pub struct Site {
    pub nodes: Vec<Node>,
    /// `None` while it is stopped.
    bus: Option<Bus>,
    /// The program of the bus, and its port.
    program: (PathBuf, u16),
    folder: TempDir,
    apart: Option<Arc<Mesh>>,
}

impl Site {
    /// Returns `None` with a message if there is no nats-server.
    pub fn start(names: &[&str]) -> Option<Self> {
        let nodes = names.iter().map(|name| (*name, ""));
        Self::with(&nodes.collect::<Vec<_>>())
    }

    /// The same, with further keys in the section `[cluster]` of each node.
    pub fn with(names: &[(&str, &str)]) -> Option<Self> {
        Some(Self::of(nats_server()?, names, None))
    }

    /// The same, with each node and the bus in a network namespace. From then on the calling thread,
    /// and threads that it starts, are in that of clients. Returns `None` with a message where there
    /// are no namespaces, too.
    pub fn apart(names: &[&str]) -> Option<(Self, Arc<Mesh>)> {
        Self::in_mesh(names, Mesh::new)
    }

    /// The same, with links that can delay and lose packets.
    pub fn impaired(names: &[&str]) -> Option<(Self, Arc<Mesh>)> {
        Self::in_mesh(names, Mesh::impaired)
    }

    fn in_mesh(
        names: &[&str],
        make: impl Fn(u8) -> Result<Mesh, NamespaceError>,
    ) -> Option<(Self, Arc<Mesh>)> {
        let program = nats_server()?;
        let mesh = match make(u8::try_from(names.len()).unwrap()) {
            Ok(mesh) => Arc::new(mesh),
            Err(
                error @ (NamespaceError::NotAllowed(_)
                | NamespaceError::NoIp(_)
                | NamespaceError::NoTun(_)),
            ) => {
                println!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        mesh.hub().enter().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name, "")).collect();
        let site = Self::of(program, &names, Some(mesh.clone()));
        Some((site, mesh))
    }

    /// The same for nodes that are prepared before their start. The last one has not joined yet.
    pub fn prepared(names: &[&str], prepare: impl Fn(&mut Node)) -> Option<Self> {
        let names: Vec<_> = names.iter().map(|name| (*name, "")).collect();
        let mut site = Self::planned(nats_server()?, &names, None);
        site.nodes.iter_mut().for_each(prepare);
        site.open(names.len() - 1);
        let late = site.nodes.pop().unwrap();
        site.until_linked();
        site.nodes.push(late);
        Some(site)
    }

    fn of(program: PathBuf, names: &[(&str, &str)], apart: Option<Arc<Mesh>>) -> Self {
        let mut site = Self::planned(program, names, apart);
        site.open(names.len());
        site.until_linked();
        site
    }

    /// The nodes, none of which runs.
    fn planned(program: PathBuf, names: &[(&str, &str)], apart: Option<Arc<Mesh>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let localhost = Ipv4Addr::LOCALHOST;
        let (bus_ip, port) = (apart.as_ref().map_or(localhost, |_| BUS_IP), free_port());
        let bus = format!("nats://{bus_ip}:{port}");
        let nodes = names.iter().enumerate().map(|(index, (name, keys))| {
            let ip = apart.as_ref().map(|mesh| mesh.nodes()[index].ip);
            let ip = ip.unwrap_or(localhost.into());
            Node {
                apart: apart.clone().map(|mesh| (mesh, index)),
                ..Node::at(folder.path(), name, (ip, &bus), keys)
            }
        });
        Site {
            nodes: nodes.collect(),
            bus: None,
            program: (program, port),
            folder,
            apart,
        }
    }

    /// Starts the bus, and the first nodes.
    fn open(&mut self, count: usize) {
        self.start_bus();
        self.nodes[0].says(&["init"]);
        self.nodes[0].start();
        for index in 1..count {
            self.invite(&self.nodes[index]);
            self.nodes[index].start();
        }
    }

    /// Waits until each node has a link to each other one, and the bus has it.
    pub fn until_linked(&self) {
        let others = self.nodes.len() - 1;
        for node in &self.nodes {
            node.until("links", |status| {
                links_up(status) == others && status["confirmed"] == true
            });
        }
    }

    /// Invites a node that is there, and lets it join.
    pub fn invite(&self, node: &Node) {
        let name = node.name.as_str();
        let first = match &self.apart {
            Some(mesh) => mesh.nodes()[0].ip,
            None => Ipv4Addr::LOCALHOST.into(),
        };
        let address = format!("{first}:{}", self.nodes[0].port);
        let invitation = self.nodes[0].says(&["invite", name, "--address", &address]);
        node.says(&["join", &invitation]);
    }

    /// Returns the bus, which runs.
    pub fn bus(&self) -> &Bus {
        self.bus.as_ref().unwrap()
    }

    /// Returns the port of the bus.
    pub fn bus_port(&self) -> u16 {
        self.program.1
    }

    /// Returns the folder of all nodes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the bus.
    pub fn stop_bus(&mut self) {
        self.bus = None;
    }

    /// Starts the bus, with what it had.
    pub fn start_bus(&mut self) {
        let (program, port) = &self.program;
        let store = self.folder.path().join("nats");
        self.bus = Some(match &self.apart {
            Some(mesh) => mesh
                .bus()
                .within(|| Bus::at(program, &store, (BUS_IP, *port)))
                .unwrap(),
            None => Bus::at(program, &store, (Ipv4Addr::LOCALHOST, *port)),
        });
    }
}
