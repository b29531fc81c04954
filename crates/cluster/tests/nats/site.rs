//! A nats-server, and nodes of a cluster with their servers.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_brokers::nats::NatsLogin;
use portunus_cluster::{
    Cluster, ClusterConfig, Demand, Epoch, Event, Facts, Folder, HomeKey, Load, NodeConfig, NodeId,
    NodeRecord, NodeState, Place, VersionRange, join,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Returns the program, or `None` with a message if it is not installed.
pub fn nats_server() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let program = cache.or_else(home)?.join("portunus/tools/nats-server");
    if program.exists() {
        return Some(program);
    }
    println!("nats-server 2.11 is not installed: what needs it is not tested");
    None
}

/// A nats-server with JetStream.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    folder: TempDir,
    pub port: u16,
    config: String,
    process: Option<Child>,
}

impl Nats {
    pub async fn start(program: &Path, config: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut nats = Nats {
            program: program.to_owned(),
            folder: tempfile::tempdir().unwrap(),
            port: listener.local_addr().unwrap().port(),
            config: config.to_owned(),
            process: None,
        };
        drop(listener);
        nats.run().await;
        nats
    }

    /// Starts it, again if it was killed.
    pub async fn run(&mut self) {
        let config = self.folder.path().join("nats.conf");
        let store = self.folder.path().join("store");
        // With an operator, JetStream would need a system account.
        let jetstream = match self.config.contains("operator:") {
            true => String::new(),
            false => format!(
                "jetstream {{ store_dir: {:?} }}",
                store.display().to_string()
            ),
        };
        let text = format!(
            "listen: \"127.0.0.1:{}\"\n{jetstream}\n{}",
            self.port, self.config
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        let up = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", self.port))
                .await
                .is_err()
            {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), up)
            .await
            .expect("nats-server starts");
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status();
        assert!(sent.unwrap().success());
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// What the server of a node has been told.
#[derive(Debug, Default)]
pub struct Told {
    pub places: BTreeMap<HomeKey, Place>,
    pub items: BTreeMap<(HomeKey, NodeId, String), bytes::Bytes>,
    pub lost: Vec<NodeId>,
    pub up: Vec<NodeId>,
}

/// A node with its server.
#[derive(Debug)]
pub struct Member {
    pub cluster: Cluster,
    pub told: Arc<Mutex<Told>>,
    pub config: ClusterConfig,
}

/// A place for nodes.
#[derive(Debug)]
pub struct Site {
    pub nats: Nats,
    pub folder: TempDir,
}

impl Site {
    pub async fn start() -> Option<Self> {
        let program = nats_server()?;
        Some(Site {
            nats: Nats::start(&program, "").await,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn config(&self, name: &str) -> ClusterConfig {
        ClusterConfig {
            node: NodeConfig {
                bus: Some(self.nats.url()),
                name: name.to_owned(),
                folder: self.place(name),
                bind: vec!["127.0.0.1".parse().unwrap()],
                port: 0,
                ..NodeConfig::default()
            },
            login: NatsLogin::default(),
            ..ClusterConfig::default()
        }
    }

    /// Makes the cluster, and starts its first node.
    pub async fn first(&self, name: &str) -> Member {
        let folder = Folder::new(&self.place(name));
        folder.init(&NodeId::new(name).unwrap()).unwrap();
        Member::start(self.config(name)).await
    }

    /// Invites a node, lets it join, and starts it.
    pub async fn invited(&self, by: &Member, name: &str) -> Member {
        self.certify(by, name, &self.place(name)).await;
        Member::start(self.config(name)).await
    }

    /// Gets a certificate for a node.
    pub async fn certify(&self, by: &Member, name: &str, place: &Path) {
        let folder = Folder::new(&by.config.node.folder);
        let address = by.cluster.local().to_string();
        let hour = Duration::from_secs(3_600);
        let id = NodeId::new(name).unwrap();
        let invitation = folder.invite(&id, by.cluster.id(), address, hour).unwrap();
        let joined = join(&Folder::new(place), &invitation).await.unwrap();
        assert_eq!(joined, id);
    }

    /// Writes the entry of a node that is none to the bus, with its control port.
    pub async fn announce(&self, name: &NodeId, at: SocketAddr) {
        let client = async_nats::connect(self.nats.url()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let nodes = context.get_key_value("portunus_nodes").await.unwrap();
        let record = NodeRecord {
            epoch: Epoch(4),
            state: NodeState::Serving,
            versions: VersionRange::OURS,
            control: vec![at],
            relay: Vec::new(),
            fingerprint: String::new(),
            region: String::new(),
            url: None,
            websocket_url: None,
            livekit_url: None,
            load: Load::default(),
        };
        let value = serde_json::to_vec(&record).unwrap();
        nodes.put(name.as_str(), value.into()).await.unwrap();
    }

    /// Returns three nodes that are linked.
    pub async fn three(&self) -> [Member; 3] {
        let a = self.first("a").await;
        let b = self.invited(&a, "b").await;
        let c = self.invited(&a, "c").await;
        for member in [&a, &b, &c] {
            member.until("two links", |told| told.up.len() >= 2).await;
            member.until_degraded(false).await;
        }
        [a, b, c]
    }
}

impl Member {
    pub async fn start(config: ClusterConfig) -> Self {
        let (cluster, mut events) = Cluster::start(&config, Facts::default()).await.unwrap();
        let told = Arc::new(Mutex::new(Told::default()));
        let noted = told.clone();
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let mut told = noted.lock().unwrap();
                match event {
                    Event::Home { key, place } => drop(told.places.insert(key, place)),
                    Event::Item {
                        key,
                        node,
                        item,
                        value: Some(value),
                    } => drop(told.items.insert((key, node, item), value)),
                    Event::Item {
                        key, node, item, ..
                    } => drop(told.items.remove(&(key, node, item))),
                    Event::NodeLost { node } => told.lost.push(node),
                    Event::NodeUp { node, .. } => told.up.push(node),
                    _ => {}
                }
            }
        });
        Member {
            cluster,
            told,
            config,
        }
    }

    /// Opens a room, with one member.
    pub async fn open(&self, key: &HomeKey) {
        self.cluster.demand(Demand::Open(key.clone())).await;
        self.cluster
            .demand(Demand::Set {
                key: key.clone(),
                item: format!("of {}", self.cluster.id()),
                value: bytes::Bytes::from_static(b"1"),
            })
            .await;
    }

    /// Waits until the server has been told something.
    pub async fn until(&self, what: &str, holds: impl Fn(&Told) -> bool) {
        let told = async {
            while !holds(&self.told.lock().unwrap()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(Duration::from_secs(40), told).await.is_err() {
            let status = self.cluster.status().await;
            panic!(
                "{}: {what}: {:?}\n{status:#?}",
                self.cluster.id(),
                self.told
            );
        }
    }

    /// Waits until a room has its home here, or there.
    pub async fn until_home(&self, key: &HomeKey, home: Option<&str>) {
        self.until("a home", |told| match told.places.get(key) {
            Some(Place::Here { .. }) => home.is_none(),
            Some(Place::There {
                node, is_reachable, ..
            }) => *is_reachable && home == Some(node.as_str()),
            _ => false,
        })
        .await;
    }

    /// Waits until a number of others is seen in a room.
    pub async fn until_others(&self, key: &HomeKey, number: usize) {
        self.until("the others", |told| {
            told.items.keys().filter(|(of, _, _)| of == key).count() == number
        })
        .await;
    }

    /// Waits until nothing disagrees.
    pub async fn until_agreed(&self) {
        let agreed = async {
            while !self
                .cluster
                .status()
                .await
                .unwrap()
                .disagreements
                .is_empty()
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(Duration::from_secs(20), agreed).await.is_err() {
            panic!("{:#?}", self.cluster.status().await);
        }
    }

    pub async fn until_degraded(&self, is_degraded: bool) -> String {
        let waiting = async {
            loop {
                let degraded = self.cluster.degraded();
                if degraded.is_some() == is_degraded {
                    return degraded.unwrap_or_default();
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let degraded = timeout(Duration::from_secs(30), waiting).await;
        degraded.unwrap_or_else(|_| panic!("degraded: {:?}", self.cluster.degraded()))
    }
}

pub fn room(name: &str) -> HomeKey {
    HomeKey::new("room.test", name).unwrap()
}
