//! Network namespaces for the nodes of a cluster: a link between each two of them, one from each to
//! the bus, and one from each to the load.
//!
//! Each namespace has one address, on its loopback interface, and a route over each link. So a node
//! has the same address for all others, and each link can be cut, delayed or lossy by itself, also in
//! one direction. Links that delay or lose packets cost CPU time, so there are meshes without them.

use std::fmt;
use std::net::Ipv4Addr;

use super::addresses::Addresses;
use super::carrier::{Carrier, Links, Quality, Way};
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
    carried: Option<Carried>,
}

/// Links that can delay and lose packets.
#[derive(Debug)]
struct Carried {
    carrier: Carrier,
    /// The ways of these links, by their ends.
    ways: Vec<((Station, Station), Way)>,
}

/// An end of a link: its namespace, its interface, and the address at the other end.
type End<'a> = (&'a Namespace, String, String);

impl Mesh {
    /// Makes the namespaces of `count` nodes, the bus and the load. Links can be cut.
    pub fn new(count: u8) -> Result<Self, NamespaceError> {
        let mesh = Self::of(count)?;
        for (a, b) in mesh.pairs() {
            let [(from, at_from, _), (to, at_to, _)] = mesh.ends(a, b)?;
            join((from, &at_from), (to, &at_to))?;
        }
        mesh.finish()
    }

    /// The same, with links that can also delay and lose packets.
    pub fn impaired(count: u8) -> Result<Self, NamespaceError> {
        let mut mesh = Self::of(count)?;
        let (mut links, mut ways) = (Links::default(), Vec::new());
        for (a, b) in mesh.pairs() {
            let ends = mesh.ends(a, b)?;
            let [(from, at_from, _), (to, at_to, _)] = &ends;
            let [there, back] = links.join((from, at_from), (to, at_to))?;
            ways.extend([((a, b), there), ((b, a), back)]);
            for (namespace, interface, other) in &ends {
                lead(namespace, interface, other)?;
            }
        }
        let carrier = links.start()?;
        mesh.carried = Some(Carried { carrier, ways });
        mesh.finish()
    }

    /// Makes the namespaces, and the links to the load.
    fn of(count: u8) -> Result<Self, NamespaceError> {
        let nodes = (0..count).map(|number| Namespace::new(TO_HUB, node_ip(number)));
        let mesh = Self {
            hub: Namespace::new(TO_FIRST, HUB_IP)?,
            bus: Namespace::new(TO_FIRST, BUS_IP)?,
            nodes: nodes.collect::<Result<_, _>>()?,
            carried: None,
        };
        for namespace in mesh.nodes.iter().chain([&mesh.hub, &mesh.bus]) {
            let address = format!("{}/32", namespace.ip);
            namespace.ip(&["link", "set", "lo", "up"])?;
            namespace.ip(&["address", "add", &address, "dev", "lo"])?;
        }
        for (number, node) in mesh.nodes.iter().enumerate() {
            let name = Station::Node(number).interface();
            join((node, TO_HUB), (&mesh.hub, &name))?;
        }
        Ok(mesh)
    }

    /// Sets what all links have in common.
    fn finish(self) -> Result<Self, NamespaceError> {
        // All addresses of the network belong to the load.
        let (network, hub) = (Addresses::LAB.to_string(), HUB_IP.to_string());
        self.hub
            .ip(&["route", "add", "local", &network, "dev", "lo"])?;
        for node in &self.nodes {
            let own = node.ip.to_string();
            node.ip(&[
                "route", "add", &network, "via", &hub, "dev", TO_HUB, "onlink", "src", &own,
            ])?;
            node.steering_off()?;
        }
        Ok(self)
    }

    /// Returns the ends of all links but those to the load.
    fn pairs(&self) -> Vec<(Station, Station)> {
        let count = self.nodes.len();
        let to_bus = (0..count).map(|number| (Station::Node(number), Station::Bus));
        let between = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let between = between.map(|(a, b)| (Station::Node(a), Station::Node(b)));
        to_bus.chain(between).collect()
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
        self.cut_way(a, b)?;
        self.cut_way(b, a)
    }

    /// Cuts a link in one direction.
    pub fn cut_way(&self, from: Station, to: Station) -> Result<(), NamespaceError> {
        if self.carried.is_some() {
            return self.change(from, to, |quality| quality.is_cut = true);
        }
        let [(namespace, interface, other), _] = self.ends(from, to)?;
        lead_to_nobody(namespace, &interface, &other)
    }

    /// Mends a link that was cut.
    pub fn heal(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        self.heal_way(a, b)?;
        self.heal_way(b, a)
    }

    /// Mends a link that was cut in this direction.
    pub fn heal_way(&self, from: Station, to: Station) -> Result<(), NamespaceError> {
        if self.carried.is_some() {
            return self.change(from, to, |quality| quality.is_cut = false);
        }
        let [(namespace, interface, other), _] = self.ends(from, to)?;
        namespace.ip(&["neighbour", "del", &other, "dev", &interface])
    }

    /// Changes what a link does to packets in one direction. It takes a mesh with impaired links.
    pub fn change(
        &self,
        from: Station,
        to: Station,
        change: impl FnOnce(&mut Quality),
    ) -> Result<(), NamespaceError> {
        let none = || NamespaceError::NoLink(from.to_string(), to.to_string());
        let carried = self.carried.as_ref().ok_or_else(none)?;
        let way = carried.ways.iter().find(|(ends, _)| *ends == (from, to));
        let (_, way) = way.ok_or_else(none)?;
        carried.carrier.change(*way, change);
        Ok(())
    }

    /// Cuts a link for UDP only, in both directions: TCP passes.
    pub fn cut_media(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        self.cut_media_way(a, b)?;
        self.cut_media_way(b, a)
    }

    /// Cuts a link for UDP only, in one direction.
    pub fn cut_media_way(&self, from: Station, to: Station) -> Result<(), NamespaceError> {
        if self.carried.is_some() {
            return self.change(from, to, |quality| quality.is_cut_for_udp = true);
        }
        let [(namespace, interface, other), _] = self.ends(from, to)?;
        lead_to_nobody(namespace, &interface, NOWHERE)?;
        let (to, own) = (format!("{other}/32"), namespace.ip.to_string());
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
        udp_rule(namespace, "add", &other)
    }

    /// Mends a link that was cut for UDP only.
    pub fn heal_media(&self, a: Station, b: Station) -> Result<(), NamespaceError> {
        self.heal_media_way(a, b)?;
        self.heal_media_way(b, a)
    }

    /// Mends a link that was cut for UDP only in this direction.
    pub fn heal_media_way(&self, from: Station, to: Station) -> Result<(), NamespaceError> {
        if self.carried.is_some() {
            return self.change(from, to, |quality| quality.is_cut_for_udp = false);
        }
        let [(namespace, _, other), _] = self.ends(from, to)?;
        udp_rule(namespace, "del", &other)
    }

    /// Changes what all links between nodes do to packets, in both directions.
    pub fn change_all(&self, change: impl Fn(&mut Quality)) -> Result<(), NamespaceError> {
        let between = self.pairs().into_iter().filter(|(_, b)| *b != Station::Bus);
        for (a, b) in between {
            self.change(a, b, &change)?;
            self.change(b, a, &change)?;
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
        lead(here, interface, &there.ip.to_string())?;
    }
    Ok(())
}

/// Has what is for `other` sent to a hardware address that no interface has.
fn lead_to_nobody(here: &Namespace, interface: &str, other: &str) -> Result<(), NamespaceError> {
    here.ip(&[
        "neighbour",
        "replace",
        other,
        "lladdr",
        NOBODY,
        "nud",
        "permanent",
        "dev",
        interface,
    ])
}

/// Adds or deletes the rule by which UDP for `other` leads nowhere.
fn udp_rule(here: &Namespace, verb: &str, other: &str) -> Result<(), NamespaceError> {
    here.ip(&[
        "rule",
        verb,
        "to",
        other,
        "ipproto",
        "udp",
        "table",
        NOWHERE_TABLE,
    ])
}

/// Leads what is for `other` over an interface.
fn lead(here: &Namespace, interface: &str, other: &str) -> Result<(), NamespaceError> {
    let (to, own) = (format!("{other}/32"), here.ip.to_string());
    here.ip(&["route", "add", &to, "dev", interface, "src", &own])
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::machine::PartsPerMillion;

    /// Longer than a datagram takes on the busiest machine.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How long a datagram that must not come is awaited.
    const SILENCE: Duration = Duration::from_millis(300);

    /// Returns `None` with a message where namespaces cannot be made.
    fn made(mesh: Result<Mesh, NamespaceError>) -> Option<Mesh> {
        match mesh {
            Ok(mesh) => Some(mesh),
            Err(
                error @ (NamespaceError::NotAllowed(_)
                | NamespaceError::NoIp(_)
                | NamespaceError::NoTun(_)),
            ) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn bound(namespace: &Namespace) -> UdpSocket {
        let ip = namespace.ip;
        let socket = namespace.within(|| UdpSocket::bind((ip, 0)).unwrap());
        socket.unwrap()
    }

    /// Returns whether a datagram arrives.
    fn passes(from: &UdpSocket, to: &UdpSocket, patience: Duration) -> bool {
        to.set_read_timeout(Some(patience)).unwrap();
        from.send_to(b"x", to.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 8];
        let received = to.recv_from(&mut buffer).ok();
        received.map(|(_, sender)| sender) == Some(from.local_addr().unwrap())
    }

    /// Cuts and mends each link of a mesh of three nodes.
    fn cut_and_mend(mesh: &Mesh) {
        let sockets: Vec<UdpSocket> = mesh.nodes().iter().map(bound).collect();
        let (hub, bus) = (bound(mesh.hub()), bound(mesh.bus()));
        assert!(passes(&sockets[0], &sockets[1], PATIENCE));
        assert!(passes(&sockets[0], &hub, PATIENCE) && passes(&hub, &sockets[2], PATIENCE));
        assert!(passes(&sockets[1], &bus, PATIENCE));
        let link = (Station::Node(0), Station::Node(1));
        mesh.cut(link.0, link.1).unwrap();
        assert!(!passes(&sockets[0], &sockets[1], SILENCE));
        assert!(!passes(&sockets[1], &sockets[0], SILENCE));
        assert!(passes(&sockets[0], &sockets[2], PATIENCE));
        assert!(passes(&hub, &sockets[1], PATIENCE));
        mesh.heal_way(link.0, link.1).unwrap();
        assert!(passes(&sockets[0], &sockets[1], PATIENCE));
        assert!(!passes(&sockets[1], &sockets[0], SILENCE));
        mesh.heal_way(link.1, link.0).unwrap();
        assert!(passes(&sockets[1], &sockets[0], PATIENCE));
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

    #[test]
    fn a_link_is_cut_by_itself_and_mended() {
        for mesh in [Mesh::new(3), Mesh::impaired(3)] {
            if let Some(mesh) = made(mesh) {
                cut_and_mend(&mesh);
            }
        }
    }

    #[test]
    fn impaired_links_delay_and_lose_packets_in_each_direction_by_itself() {
        let Some(mesh) = made(Mesh::impaired(2)) else {
            return;
        };
        let [a, b] = [0, 1].map(|node| bound(&mesh.nodes()[node]));
        let (there, back) = (Station::Node(0), Station::Node(1));
        let delay = Duration::from_millis(80);
        mesh.change(there, back, |quality| quality.delay = delay)
            .unwrap();
        let begin = Instant::now();
        assert!(passes(&a, &b, PATIENCE));
        assert!(begin.elapsed() >= delay);
        let begin = Instant::now();
        assert!(passes(&b, &a, PATIENCE));
        println!("the way without a delay took {:?}", begin.elapsed());
        mesh.change_all(|quality| quality.loss = PartsPerMillion::of_percent(100.0))
            .unwrap();
        assert!(!passes(&b, &a, SILENCE));
        let plain = Mesh::new(2).unwrap();
        assert!(plain.change(there, back, |_| ()).is_err());
    }
}
