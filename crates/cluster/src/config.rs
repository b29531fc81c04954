//! The section `[cluster]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use portunus_brokers::BrokerTls;
use portunus_brokers::nats::{NatsLogin, addresses, probe_servers};
use portunus_config::{Configuration, Probe, Protocol, Section};
use serde::{Deserialize, Serialize};

use crate::authority::Folder;
use crate::id::NodeId;
use crate::settings::WithoutBus;
use crate::wire::VersionRange;

/// The port of control links (TCP), and the first one of media links (UDP).
const PORT: u16 = 7900;
/// The most that may be sent to another node, in Mbit/s.
const MAX_MBPS: u64 = 1_000_000;

/// How many nodes take a source from its node, if nothing else is set.
const FAN_OUT: usize = 8;

/// What stands for the name of the node in its URLs.
pub(crate) const NAME: &str = "{name}";

/// The longest URL in bytes.
const MAX_URL: usize = 512;

/// The schemes of URLs.
const HTTP: [&str; 2] = ["http://", "https://"];
const WEBSOCKET: [&str; 2] = ["ws://", "wss://"];

/// The cluster that this server is a node of. It is alone without `bus`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ClusterConfig {
    /// The node.
    #[serde(flatten)]
    pub node: NodeConfig,
    /// The login at the bus.
    #[serde(flatten)]
    pub login: NatsLogin,
    /// TLS to the bus.
    #[serde(flatten)]
    pub tls: BrokerTls,
}

/// The node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeConfig {
    /// The NATS servers, `nats://HOST:PORT` with commas between. `None` disables the cluster.
    #[serde(with = "portunus_config::optional")]
    pub bus: Option<String>,
    /// The name of this node, which no other node has. Empty means the one in its certificate.
    pub name: String,
    /// The prefix of the names of the buckets. Clusters with one NATS have different ones.
    pub prefix: String,
    /// The folder of the certificates.
    pub folder: PathBuf,
    /// A file that may have a list of revoked certificates, too: where the server cannot write to
    /// the folder. It need not exist.
    #[serde(with = "portunus_config::optional")]
    pub revoked: Option<PathBuf>,
    /// The addresses to listen on for other nodes. Empty means all.
    pub bind: Vec<IpAddr>,
    /// The port for other nodes (TCP).
    pub port: u16,
    /// The first port for media of other nodes (UDP): that of worker 0. The other workers have the
    /// next ones. 0 means any free ones.
    pub media_port: u16,
    /// The most that is sent to another node, in Mbit/s. 0 means no limit.
    pub max_mbps: u64,
    /// How many nodes take a source from this one, 1 to 64. Further ones take it from those.
    pub fan_out: usize,
    /// The addresses at which other nodes reach this one. Empty means the one that leads to the
    /// bus.
    pub announced: Vec<IpAddr>,
    /// Where this node is. New homes go to nodes of the same region, and a source of another region
    /// comes to it once.
    pub region: String,
    /// The URL of this node's HTTP server for clients. `{name}` in URLs stands for its name.
    #[serde(with = "portunus_config::optional")]
    pub url: Option<String>,
    /// The URL of this node's WebSocket server for clients.
    #[serde(with = "portunus_config::optional")]
    pub websocket_url: Option<String>,
    /// The URL of this node's server for LiveKit's clients.
    #[serde(with = "portunus_config::optional")]
    pub livekit_url: Option<String>,
    /// The highest version of the control protocol that this node speaks. 0 means the newest.
    pub version: u32,
    /// What becomes of new rooms while the bus is away.
    pub without_bus: WithoutBus,
    /// The number of NATS servers that keep a copy. 0 means 3 in a cluster of NATS, otherwise 1.
    pub replicas: usize,
}

impl Default for NodeConfig {
    fn default() -> Self {
        NodeConfig {
            bus: None,
            name: String::new(),
            prefix: "portunus".to_owned(),
            folder: "/var/lib/portunus/cluster".into(),
            revoked: None,
            bind: Vec::new(),
            port: PORT,
            media_port: PORT,
            max_mbps: 0,
            fan_out: FAN_OUT,
            announced: Vec::new(),
            region: String::new(),
            url: None,
            websocket_url: None,
            livekit_url: None,
            version: 0,
            without_bus: WithoutBus::default(),
            replicas: 0,
        }
    }
}

impl ClusterConfig {
    /// Returns whether this server is a node of a cluster.
    pub fn is_on(&self) -> bool {
        self.node.bus.is_some()
    }

    /// Returns the local address for media of other nodes.
    pub fn media_address(&self) -> IpAddr {
        self.local_address()
    }

    /// Returns the addresses for media as other nodes reach them, of those that are bound.
    pub fn announced_media(&self, bound: &[SocketAddr]) -> Vec<SocketAddr> {
        let announced = self.node.announced.first();
        let reached = |bound: &SocketAddr| {
            let ip = announced.copied().unwrap_or(bound.ip());
            SocketAddr::new(ip, bound.port())
        };
        bound.iter().map(reached).collect()
    }

    /// Returns the limit of what is sent to another node, in bit/s.
    pub fn max_bps(&self) -> Option<u64> {
        let limit = self.node.max_mbps.saturating_mul(1_000_000);
        (limit > 0).then_some(limit)
    }

    /// Returns the addresses at which other nodes reach this one.
    pub(crate) fn control_addresses(&self, port: u16) -> Vec<SocketAddr> {
        let announced = match self.node.announced.is_empty() {
            true => vec![self.local_address()],
            false => self.node.announced.clone(),
        };
        announced
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .collect()
    }

    /// Returns the local address that leads to the bus.
    fn local_address(&self) -> IpAddr {
        let bound = self.node.bind.iter().find(|ip| !ip.is_unspecified());
        if let Some(bound) = bound {
            return *bound;
        }
        let servers = addresses(self.node.bus.as_deref().unwrap_or_default());
        let server = servers.ok().and_then(|servers| servers.into_iter().next());
        let found = server.and_then(|server| {
            // Sends nothing: the kernel chooses the address.
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
            socket.connect((server.host(), server.port())).ok()?;
            socket.local_addr().ok()
        });
        found.map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip())
    }
}

impl Configuration for ClusterConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let node: NodeConfig = section.keys();
        if let Some(bus) = &node.bus {
            section.check(&["bus"], addresses(bus).map(drop));
            if !node.name.is_empty() {
                section.check(&["name"], NodeId::new(&node.name).map(drop));
            }
            section.listens("port", Protocol::Tcp, &node.bind, node.port..=node.port);
            let media = node.media_port;
            section.listens("media_port", Protocol::Udp, &node.bind, media..=media);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_right = (1..=64).contains(&node.prefix.len()) && node.prefix.chars().all(allowed);
        let text = "expected 1 to 64 letters, digits, hyphens and underscores";
        section.require(&["prefix"], is_right, text);
        section.range("replicas", node.replicas, 0..=5);
        section.range("version", node.version, 0..=VersionRange::OURS.max);
        section.range("max_mbps", node.max_mbps, 0..=MAX_MBPS);
        section.range("fan_out", node.fan_out, 1..=64);
        for (key, url, schemes) in [
            ("url", &node.url, HTTP),
            ("websocket_url", &node.websocket_url, WEBSOCKET),
            ("livekit_url", &node.livekit_url, WEBSOCKET),
        ] {
            let has_scheme = |url: &String| schemes.iter().any(|scheme| url.starts_with(scheme));
            let is_url = url
                .as_ref()
                .is_none_or(|url| url.len() <= MAX_URL && has_scheme(url));
            let [plain, secure] = schemes;
            let text = format!(
                "expected a URL that starts with {plain} or {secure}, {MAX_URL} bytes at most"
            );
            section.require(&[key], is_url, &text);
        }
        ClusterConfig {
            node,
            login: NatsLogin::read(section),
            tls: BrokerTls::read(section),
        }
    }

    fn probe(&self, probe: &mut Probe) {
        let Some(bus) = &self.node.bus else {
            return;
        };
        self.login.probe(probe);
        probe_servers("bus", bus, &self.tls, probe);
        let identity = Folder::new(&self.node.folder).identity();
        match identity {
            Ok(identity) if !["", identity.id.as_str()].contains(&self.node.name.as_str()) => probe
                .error(
                    "name",
                    format!("the certificate in cluster.folder is for {}", identity.id),
                ),
            Ok(_) => {}
            Err(error) => probe.error("folder", error),
        }
    }
}
