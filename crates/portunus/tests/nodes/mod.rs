//! Processes as nodes of a cluster, with a real nats-server.
#![allow(dead_code, reason = "each test uses some of it")]

pub mod callers;
pub mod guests;
pub mod writers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use portunus_tests::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{PATIENCE, Process, attach_to, post, run};

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
    let mut command = Command::new(program);
    let port = port.to_string();
    command
        .args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"])
        .arg(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().unwrap())
}

/// A node of a cluster.
pub struct Node {
    pub name: String,
    pub config: PathBuf,
    pub port: u16,
    admin: u16,
    pub running: Option<(Process, String)>,
}

impl Node {
    pub fn new(folder: &Path, name: &str, bus: u16) -> Self {
        Self::with(folder, name, bus, "")
    }

    /// A node with further keys in the section `[cluster]`.
    pub fn with(folder: &Path, name: &str, bus: u16, keys: &str) -> Self {
        let place = folder.join(name);
        std::fs::create_dir(&place).unwrap();
        let (http, admin, port) = (free_port(), free_port(), free_port());
        let config = format!(
            "[http]\nbind = [\"127.0.0.1\"]\nport = {http}\n[websocket]\nenabled = false\n\
             [media]\nbind = [\"127.0.0.1\"]\nport = 0\nworkers = 1\n[admin]\nport = {admin}\n\
             [recording]\ndir = {:?}\nkeep_free_mb = 0\n[[videoroom.room]]\nroom = 1234\npublishers = 20\n\
             [[textroom.room]]\nroom = 1234\nhistory = 10\n[cluster]\nbus = \"nats://127.0.0.1:{bus}\"\nname = \"{name}\"\nfolder = {:?}\n\
             bind = [\"127.0.0.1\"]\nport = {port}\nmedia_port = 0\nurl = \"http://127.0.0.1:{http}/\"\n{keys}",
            place.join("rec"),
            place.join("cluster"),
        );
        let path = place.join("portunus.toml");
        std::fs::write(&path, config).unwrap();
        Node {
            name: name.to_owned(),
            config: path,
            port,
            admin,
            running: None,
        }
    }

    pub fn start(&mut self) {
        self.running = Some(run(&self.config));
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
        post(&format!("http://127.0.0.1:{}/admin", self.admin), request)
    }

    pub fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
        command
            .arg("cluster")
            .args(arguments)
            .arg("--config")
            .arg(&self.config);
        command.output().unwrap()
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

pub fn path_of(api: &str, path: &str) -> String {
    api.replace("/janus", path)
}

/// The home of the room with this name, if a status has one.
pub fn home_of<'s>(status: &'s Value, room: &str) -> Option<&'s Value> {
    let what = format!("room.videoroom {room:?}");
    let mut homes = status["homes"].as_array().unwrap().iter();
    homes.find(|home| home["what"] == what)
}

/// A cluster of nodes that are linked.
pub struct Site {
    pub nodes: Vec<Node>,
    pub bus: Process,
    folder: TempDir,
}

impl Site {
    /// Returns `None` with a message if there is no nats-server.
    pub fn start(names: &[&str]) -> Option<Self> {
        let nodes = names.iter().map(|name| (*name, ""));
        Self::with(&nodes.collect::<Vec<_>>())
    }

    /// The same, with further keys in the section `[cluster]` of each node.
    pub fn with(names: &[(&str, &str)]) -> Option<Self> {
        let program = nats_server()?;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let bus = nats(&program, &folder.path().join("nats"), port);
        let nodes = names.iter();
        let nodes = nodes.map(|(name, keys)| Node::with(folder.path(), name, port, keys));
        let mut nodes: Vec<Node> = nodes.collect();
        nodes[0].says(&["init"]);
        nodes[0].start();
        let address = format!("127.0.0.1:{}", nodes[0].port);
        for (index, (name, _)) in names.iter().enumerate().skip(1) {
            let invitation = nodes[0].says(&["invite", name, "--address", &address]);
            nodes[index].says(&["join", &invitation]);
            nodes[index].start();
        }
        for node in &nodes {
            node.until("links", |status| {
                links_up(status) == names.len() - 1 && status["confirmed"] == true
            });
        }
        Some(Site { nodes, bus, folder })
    }
}
