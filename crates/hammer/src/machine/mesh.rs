//! Network namespaces for the nodes of a cluster: a link between each two of them, one from each to
//! the bus, and one from each to the load.
//!
//! Each namespace has one address, on its loopback interface, and a route over each link. So a node
//! has the same address for all others, and each link can be cut, delayed or lossy by itself.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::addresses::Addresses;
use super::namespace::{Namespace, NamespaceError};

/// The load's address.
pub const HUB_IP: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 254);
/// The bus's address.
pub const BUS_IP: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 253);

/// The interfaces that lead to the load and to the bus.
const TO_HUB: &str = "hub0";
const TO_BUS: &str = "bus0";
/// The interface that leads to the first node.
const TO_FIRST: &str = "node0";

/// A hardware address that no interface has. Frames to it are dropped by who gets them.
const NOBODY: &str = "02:00:00:00:00:01";

/// A router that does not exist, and the routing table that leads to it.
const NOWHERE: &str = "10.98.255.254";
const NOWHERE_TABLE: &str = "98";

/// The most packets that wait on a link with a delay.
const WAITING: &str = "100000";

/// Who is at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// The node with this number, from 0.
    Node(usize),
    /// The bus.
    Bus,
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(number) => write!(f, "node {number}"),
            Self::Bus => f.write_str("the bus"),
        }
    }
}

/// The namespaces. They end with this value.
#[derive(Debug)]
pub struct Mesh {
    hub: Namespace,
    bus: Namespace,
    nodes: Vec<Namespace>,
}

/// An end of a link: its namespace, its interface, and the address at the other end.
type End<'a> = (&'a Namespace, String, String);

impl Mesh {
    /// Makes the namespaces of `count` nodes, the bus and the load.
    pub fn new(count: u8) -> Result<Self, NamespaceError> {
        let nodes = (0..count).map(|number| Namespace::new(TO_HUB, node_ip(number)));
        let mesh = Self {
            hub: Namespace::new(TO_FIRST, HUB_IP)?,
            bus: Namespace::new(TO_FIRST, BUS_IP)?,
            nodes: nodes.collect::<Result<_, _>>()?,
        };
        for namespace in mesh.nodes.iter().chain([&mesh.hub, &mesh.bus]) {
            let address = format!("{}/32", namespace.ip);
            namespace.ip(&["link", "set", "lo", "up"])?;
            namespace.ip(&["address", "add", &address, "dev", "lo"])?;
        }
        for (number, node) in mesh.nodes.iter().enumerate() {
            let name = Station::Node(number).interface();
            join((node, TO_HUB), (&mesh.hub, &name))?;
            join((node, TO_BUS), (&mesh.bus, &name))?;
            for (other, peer) in mesh.nodes.iter().enumerate().skip(number + 1) {
                let to_other = Station::Node(other).interface();
                join((node, &to_other), (peer, &name))?;
            }
        }
        // All addresses of the network belong to the load.
        let (network, hub) = (Addresses::LAB.to_string(), HUB_IP.to_string());
        mesh.hub
            .ip(&["route", "add", "local", &network, "dev", "lo"])?;
        for node in &mesh.nodes {
            let own = node.ip.to_string();
            node.ip(&[
                "route", "add", &network, "via", &hub, "dev", TO_HUB, "onlink", "src", &own,
            ])?;
            node.steering_off()?;
        }
        Ok(mesh)
    }

    /// Returns the namespace of the load.
    pub fn hub(&self) -> &Namespace {
        &self.hub
    }

    /// Returns the namespace of the bus.
    pub fn bus(&self) -> &Namespace {
        &self.bus
    }

    /// Returns the namespaces of the nodes.
    pub fn nodes(&self) -> &[Namespace] {
        &self.nodes
    }

    /// Cuts a link: what is sent over it is lost without a word, in both directions.
    pub fn cut(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        for (namespace, interface, other) in self.ends(a, b)? {
            namespace.ip(&[
                "neighbour",
                "replace",
                &other,
                "lladdr",
                NOBODY,
                "nud",
                "permanent",
                "dev",
                &interface,
            ])?;
        }
        Ok(())
    }

    /// Mends a link that was cut.
    pub fn heal(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        for (namespace, interface, other) in self.ends(a, b)? {
            namespace.ip(&["neighbour", "del", &other, "dev", &interface])?;
        }
        Ok(())
    }

    /// Cuts a link for UDP only: TCP passes.
    pub fn cut_media(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        for (namespace, interface, other) in self.ends(a, b)? {
            namespace.ip(&[
                "neighbour",
                "replace",
                NOWHERE,
                "lladdr",
                NOBODY,
                "nud",
                "permanent",
                "dev",
                &interface,
            ])?;
            let to = format!("{other}/32");
            let own = namespace.ip.to_string();
            namespace.ip(&[
                "route",
                "replace",
                &to,
                "via",
                NOWHERE,
                "dev",
                &interface,
                "onlink",
                "src",
                &own,
                "table",
                NOWHERE_TABLE,
            ])?;
            namespace.ip(&[
                "rule",
                "add",
                "to",
                &other,
                "ipproto",
                "udp",
                "table",
                NOWHERE_TABLE,
            ])?;
        }
        Ok(())
    }

    /// Mends a link that was cut for UDP only.
    pub fn heal_media(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        for (namespace, _, other) in self.ends(a, b)? {
            namespace.ip(&[
                "rule",
                "del",
                "to",
                &other,
                "ipproto",
                "udp",
                "table",
                NOWHERE_TABLE,
            ])?;
        }
        Ok(())
    }

    /// Gives all links between nodes this delay in each direction, and loses this share of packets
    /// at random.
    pub fn shape(&self, delay: Duration, loss_share: f64) -> Result<(), NamespaceError> {
        let delay = format!("{}us", delay.as_micros());
        let loss = format!("{:.4}%", loss_share * 100.0);
        for (number, node) in self.nodes.iter().enumerate() {
            let others = (0..self.nodes.len()).filter(|other| *other != number);
            for interface in others.map(|other| Station::Node(other).interface()) {
                node.tc(&[
                    "qdisc", "replace", "dev", &interface, "root", "netem", "limit", WAITING,
                    "delay", &delay, "loss", &loss,
                ])?;
            }
        }
        Ok(())
    }

    fn ends(&self, a: Station, b: Station) -> Result<[End<'_>; 2], NamespaceError> {
        let none = || NamespaceError::NoLink(a.to_string(), b.to_string());
        let find = |station| match station {
            Station::Node(number) => self.nodes.get(number),
            Station::Bus => Some(&self.bus),
        };
        let (from, to) = find(a).zip(find(b)).filter(|_| a != b).ok_or_else(none)?;
        Ok([
            (from, b.interface(), to.ip.to_string()),
            (to, a.interface(), from.ip.to_string()),
        ])
    }
}

impl Station {
    /// Returns the name of interfaces that lead to it.
    fn interface(self) -> String {
        match self {
            Self::Node(number) => format!("node{number}"),
            Self::Bus => TO_BUS.to_owned(),
        }
    }
}

/// Returns the address of a node.
fn node_ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 98, 0, number.saturating_add(1))
}

/// Links two namespaces by interfaces with these names.
fn join(
    (a, at_a): (&Namespace, &str),
    (b, at_b): (&Namespace, &str),
) -> Result<(), NamespaceError> {
    let netns = b.path().display().to_string();
    a.ip(&[
        "link", "add", at_a, "type", "veth", "peer", "name", at_b, "netns", &netns,
    ])?;
    let ends = [(a, at_a, b), (b, at_b, a)];
    for (here, interface, _) in ends {
        here.ip(&["link", "set", interface, "up"])?;
    }
    for (here, interface, there) in ends {
        let (to, own) = (format!("{}/32", there.ip), here.ip.to_string());
        here.ip(&["route", "add", &to, "dev", interface, "src", &own])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "a test fails by a panic"
    )]
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    /// Longer than a datagram takes on the busiest machine.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How long a datagram that must not come is awaited.
    const SILENCE: Duration = Duration::from_millis(300);

    #[test]
    fn a_link_is_cut_by_itself_and_mended() {
        let mesh = match Mesh::new(3) {
            Ok(mesh) => mesh,
            Err(error @ (NamespaceError::NotAllowed(_) | NamespaceError::NoIp(_))) => {
                return eprintln!("SKIPPED: {error}");
            }
            Err(error) => panic!("{error}"),
        };
        let bind = |namespace: &Namespace| {
            let ip = namespace.ip;
            let socket = namespace.within(|| UdpSocket::bind((ip, 0)).unwrap());
            socket.unwrap()
        };
        let sockets: Vec<UdpSocket> = mesh.nodes().iter().map(bind).collect();
        let (hub, bus) = (bind(mesh.hub()), bind(mesh.bus()));
        let passes = |from: &UdpSocket, to: &UdpSocket, patience: Duration| {
            to.set_read_timeout(Some(patience)).unwrap();
            from.send_to(b"x", to.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 8];
            let received = to.recv_from(&mut buffer).ok();
            received.map(|(_, sender)| sender) == Some(from.local_addr().unwrap())
        };
        assert!(passes(&sockets[0], &sockets[1], PATIENCE));
        assert!(passes(&sockets[0], &hub, PATIENCE) && passes(&hub, &sockets[2], PATIENCE));
        assert!(passes(&sockets[1], &bus, PATIENCE));
        let link = (Station::Node(0), Station::Node(1));
        mesh.cut(link.0, link.1).unwrap();
        assert!(!passes(&sockets[0], &sockets[1], SILENCE));
        assert!(!passes(&sockets[1], &sockets[0], SILENCE));
        assert!(passes(&sockets[0], &sockets[2], PATIENCE));
        assert!(passes(&hub, &sockets[1], PATIENCE));
        mesh.heal(link.0, link.1).unwrap();
        assert!(passes(&sockets[0], &sockets[1], PATIENCE));
        mesh.cut(Station::Bus, Station::Node(1)).unwrap();
        assert!(!passes(&sockets[1], &bus, SILENCE));
        assert!(passes(&sockets[1], &sockets[0], PATIENCE));
        mesh.cut_media(link.0, link.1).unwrap();
        assert!(!passes(&sockets[0], &sockets[1], SILENCE));
        assert!(!passes(&sockets[1], &sockets[0], SILENCE));
        assert!(passes(&sockets[0], &sockets[2], PATIENCE));
        let listener = mesh.nodes()[1]
            .within(|| TcpListener::bind((mesh.nodes()[1].ip, 0)).unwrap())
            .unwrap();
        let address = listener.local_addr().unwrap();
        let connected = mesh.nodes()[0]
            .within(|| TcpStream::connect_timeout(&address, PATIENCE))
            .unwrap();
        assert!(connected.is_ok(), "TCP passes");
        mesh.heal_media(link.0, link.1).unwrap();
        assert!(passes(&sockets[0], &sockets[1], PATIENCE));
        let none = mesh.cut(Station::Node(0), Station::Node(9));
        assert!(matches!(none, Err(NamespaceError::NoLink(..))));
    }
}
