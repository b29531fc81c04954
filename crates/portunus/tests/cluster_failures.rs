//! What breaks in a cluster, and what clients see of it: processes, a real nats-server, and clients
//! with real media. Skipped with a message where no nats-server of 2.11 or newer is installed, or
//! where the rights for raw sockets are missing. `cluster_broken_links.rs` has broken links.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nodes::guests::Guest;
use nodes::{Node, Site, home, home_of, links_up, path_of};
use serde_json::{Value, json};
use server::{PATIENCE, get, metric};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const ROOM: u64 = 1234;

/// The mark of pictures that are no part of the order.
const NO_PART: u8 = 251;

/// The ids of publishers in data of the plugin.
fn publishers(data: &Value) -> Vec<u64> {
    let all = data["publishers"].as_array();
    let ids = all.into_iter().flatten();
    ids.filter_map(|it| it["id"].as_u64()).collect()
}

/// Asserts that a viewer has got each picture once and in order, from the one with the mark 1 on to
/// the one before `next`.
async fn has_all(viewer: &mut Guest, next: u8) {
    viewer.peer.run_for(Duration::from_millis(300)).await;
    viewer
        .peer
        .packets
        .retain(|it| it.payload.last() != Some(&NO_PART));
    let marks = viewer.marks();
    let first = marks.iter().position(|mark| *mark == 1);
    let marks = &marks[first.expect("the first picture")..];
    let broken = marks.windows(2).find(|pair| pair[1] != (pair[0] + 1) % 250);
    assert_eq!(broken, None, "{marks:?}");
    assert_eq!(marks.last().map(|mark| (mark + 1) % 250), Some(next));
}

/// A listener at a node, which is the first in the room, so that its node is the home.
async fn listener_at_home(node: &Node, id: u64) -> Guest {
    let (listener, _) = Guest::listener(node.api(), ROOM, id).await;
    let name = node.name.clone();
    node.until("a home", |status| {
        home_of(status, "1234").is_some_and(|home| home["node"] == *name)
    });
    listener
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_loses_anything_while_the_bus_is_away() {
    // Until the entries of all nodes have expired, so that none is known when the bus is back.
    the_bus_is_away(Duration::from_secs(17)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn nobody_loses_anything_while_the_bus_is_away_for_ten_minutes() {
    the_bus_is_away(Duration::from_secs(600)).await;
}

async fn the_bus_is_away(time: Duration) {
    let Some(mut site) = Site::start(&["a", "b", "c", "d"]) else {
        return;
    };
    let api = |site: &Site, index: usize| site.nodes[index].api().to_owned();
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| api(&site, index));
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut viewer = Guest::viewer(&b, ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    site.nodes[3].until("the home", |status| home_of(status, "1234").is_some());
    let before = home(&site.nodes[3].status());
    viewer.peer.packets.clear();
    bob.untold();

    site.stop_bus();
    let away = Instant::now();
    let mut mark = viewer.flow(&mut ada, 1, Duration::from_secs(1)).await;
    // A node that had the room not open yet joins it, and a client there meets the others.
    let (_cleo, joined) = Guest::listener(&c, ROOM, 33).await;
    assert_eq!(publishers(&joined), [11], "{joined}");
    let mut at_c = Guest::viewer(&c, ROOM, 11).await;
    let begin = Instant::now();
    let degraded = |api: &str| get(&path_of(api, "/readyz")).starts_with("ok\ndegraded: cluster: ");
    while ![&a, &b, &c, &d].into_iter().all(|api| degraded(api)) {
        assert!(
            begin.elapsed() < PATIENCE,
            "nobody says that the bus is away"
        );
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(500))
            .await;
    }
    for api in [&a, &b, &c, &d] {
        assert_eq!(get(&path_of(api, "/livez")), "ok\n");
    }
    for node in &site.nodes {
        assert_eq!(links_up(&node.status()), 3);
    }
    let mut joined_at = Instant::now();
    while away.elapsed() < time {
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(500))
            .await;
        // So that its connection stays.
        at_c.peer.run_for(Duration::from_millis(10)).await;
        at_c.peer.packets.clear();
        if joined_at.elapsed() > Duration::from_secs(30) {
            joined_at = Instant::now();
            let (dan, joined) = Guest::listener(&d, ROOM, 44).await;
            assert_eq!(publishers(&joined), [11], "{joined}");
            dan.send(json!({ "request": "leave" }), None);
            assert_eq!(get(&path_of(&b, "/livez")), "ok\n");
        }
    }
    at_c.watch(&mut ada, NO_PART).await;

    site.start_bus();
    let begin = Instant::now();
    let is_ready = |api: &str| get(&path_of(api, "/readyz")) == "ok\n";
    while ![&a, &b, &c, &d].into_iter().all(|api| is_ready(api)) {
        assert!(begin.elapsed() < PATIENCE, "a node is without the bus");
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(100))
            .await;
    }
    let took = begin.elapsed();
    println!("all is normal {took:?} after the bus was started");
    assert!(took < Duration::from_secs(5), "{took:?}");
    for node in &site.nodes {
        node.until("nothing that disagrees", |status| {
            links_up(status) == 3 && status["disagreements"] == json!([])
        });
    }
    let mark = viewer.flow(&mut ada, mark, Duration::from_secs(1)).await;
    has_all(&mut viewer, mark).await;
    assert_eq!(home(&site.nodes[3].status()), before);
    let gone = |data: &Value| data["leaving"] == 11 || data["leaving"] == 33;
    assert!(!bob.comes_within(Duration::from_millis(100), gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_dies_and_clients_elsewhere_see_nothing_of_it() {
    let Some(mut site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api().to_owned());
    let cleo = listener_at_home(&site.nodes[2], 33).await;
    let mut ada = Guest::publisher(&a, ROOM, 11).await;
    let (mut bob, _) = Guest::listener(&b, ROOM, 22).await;
    let mut viewer = Guest::viewer(&b, ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    // The home has no client of its own any more.
    cleo.send(json!({ "request": "leave" }), None);
    bob.until(|data| data["leaving"] == 33);
    let status = site.nodes[2].until("two registrations", |status| {
        home_of(status, "1234").is_some_and(|home| home["members"] == json!(["a", "b"]))
    });
    let (node, revision) = home(&status);
    assert_eq!(node, "c");
    ada.untold();
    bob.untold();
    viewer.untold();
    viewer.peer.packets.clear();

    site.nodes[2].running = None;
    let begin = Instant::now();
    let mut mark = 1;
    let taken = loop {
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(500))
            .await;
        let (node, now) = home(&site.nodes[0].status());
        if now != revision {
            break node;
        }
        assert!(begin.elapsed() < PATIENCE, "nobody takes the home");
    };
    let took = begin.elapsed();
    println!("the home is taken by {taken} after {took:?}");
    assert!(taken == "a" || taken == "b", "{taken}");
    // A node's entry expires after 15 s. A busy machine looks a moment later.
    assert!(took < Duration::from_secs(17), "{took:?}");
    let mark = viewer.flow(&mut ada, mark, Duration::from_secs(1)).await;
    has_all(&mut viewer, mark).await;
    for (name, guest) in [
        ("ada", &mut ada),
        ("bob", &mut bob),
        ("viewer", &mut viewer),
    ] {
        assert_eq!(guest.untold(), Vec::<Value>::new(), "{name}");
    }
    // The new home orders the room as the old one did.
    let mut dan = Guest::publisher(&a, ROOM, 44).await;
    bob.until(|data| publishers(data) == [44]);
    let mut at_b = Guest::viewer(&b, ROOM, 44).await;
    at_b.watch(&mut dan, 1).await;
}

/// Somebody on the way between two nodes, who can read and send all.
struct Intruder {
    raw: Socket,
    from: u16,
    to: u16,
}

impl Intruder {
    /// Reads what `from` sends to `to`, by the ports of their media links. Returns `None` with a
    /// message without the right.
    fn new(from: &Node, to: &Node) -> Option<Self> {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP));
        let raw = match raw {
            Ok(raw) => raw,
            Err(error) => {
                println!("skipped: no raw socket: {error}");
                return None;
            }
        };
        raw.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
            .unwrap();
        raw.set_recv_buffer_size(8 << 20).unwrap();
        raw.set_nonblocking(true).unwrap();
        Some(Intruder {
            raw,
            from: from.media_port,
            to: to.media_port,
        })
    }

    /// Returns the RTP packets that have passed.
    fn passed(&self) -> Vec<Vec<u8>> {
        let (mut raw, mut buffer) = (&self.raw, vec![0; 1 << 16]);
        let mut packets = Vec::new();
        while let Ok(len) = raw.read(&mut buffer) {
            let header = usize::from(buffer[0] & 0xf) * 4;
            let udp = &buffer[header..len];
            let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
            let payload = &udp[8..];
            // RFC 5761: 64 to 95 are RTCP.
            let is_rtp = payload.len() > 12 && !(64..96).contains(&(payload[1] & 0x7f));
            if (port(0), port(2)) == (self.from, self.to) && is_rtp {
                packets.push(payload.to_vec());
            }
        }
        packets
    }

    /// Sends a datagram as if the node had.
    fn send(&self, payload: &[u8]) {
        let len = u16::try_from(payload.len() + 8).unwrap();
        let mut datagram = Vec::new();
        // No checksum.
        for field in [self.from, self.to, len, 0] {
            datagram.extend(field.to_be_bytes());
        }
        datagram.extend(payload);
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.raw.send_to(&datagram, &SockAddr::from(to)).unwrap();
    }
}

/// Returns what a node has refused of its media links for this reason.
fn refused(node: &Node, reason: &str) -> u64 {
    let name = format!("portunus_media_node_link_refused_total{{reason=\"{reason}\"}}");
    metric(node.api(), &name)
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_replayed_packets_between_nodes_are_counted_and_change_nothing() {
    let Some(site) = Site::start(&["a", "b", "c"]) else {
        return;
    };
    let [a, b, _] = &site.nodes[..] else {
        panic!("three nodes")
    };
    let Some(intruder) = Intruder::new(a, b) else {
        return;
    };
    let mut ada = Guest::publisher(a.api(), ROOM, 11).await;
    let (_bob, _) = Guest::listener(b.api(), ROOM, 22).await;
    let mut viewer = Guest::viewer(b.api(), ROOM, 11).await;
    viewer.watch(&mut ada, 0).await;
    intruder.passed();
    viewer.peer.packets.clear();
    let mut mark = viewer.flow(&mut ada, 1, Duration::from_secs(2)).await;
    let packets = intruder.passed();
    assert!(packets.len() >= 20, "{}", packets.len());
    let last: Vec<&Vec<u8>> = packets.iter().rev().take(20).collect();

    let reasons = ["replayed", "unauthentic", "unknown_ssrc", "malformed"];
    assert_eq!(reasons.map(|reason| refused(b, reason)), [0; 4]);
    let changed = |packet: &[u8], change: fn(&mut [u8])| {
        let mut packet = packet.to_vec();
        change(&mut packet);
        packet
    };
    for packet in last.iter().copied() {
        intruder.send(packet);
        // The next numbers of the stream, before the node sends them.
        let next = changed(packet, |it| {
            let number = u16::from_be_bytes([it[2], it[3]]).wrapping_add(100);
            it[2..4].copy_from_slice(&number.to_be_bytes());
        });
        intruder.send(&next);
        intruder.send(&changed(packet, |it| it[9] ^= 0x55));
        intruder.send(&packet[..7]);
    }
    // From another address than the node's.
    let before = refused(b, "unknown_address");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for packet in &last {
        let to = (Ipv4Addr::LOCALHOST, b.media_port);
        stranger.send_to(packet, to).unwrap();
    }
    let begin = Instant::now();
    loop {
        mark = viewer
            .flow(&mut ada, mark, Duration::from_millis(200))
            .await;
        let counts = reasons.map(|reason| refused(b, reason));
        let strangers = refused(b, "unknown_address") - before;
        if counts.iter().all(|count| *count >= 20) && strangers >= 20 {
            println!("refused {reasons:?}: {counts:?}, of strangers {strangers}");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{counts:?}, {strangers}");
    }
    let mark = viewer.flow(&mut ada, mark, Duration::from_secs(1)).await;
    has_all(&mut viewer, mark).await;
    assert_eq!(links_up(&b.status()), 2);
}
