//! The delay that a hop to another node adds, over the loopback interface and with 50 sources of
//! 1 Mbit/s that cross: `cargo run --release -p portunus-relay --example hop_delay`.
//!
//! Two media planes with a worker each are in this process. A tap at either end notes when packets
//! arrived there: the difference is what the first node takes to send, the kernel to carry, and the
//! second node to notice.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be set up has failed"
)]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use portunus_media::{
    IngestFeed, IngestOptions, MediaConfig, MediaPlane, NodeLinkKey, NodeLinkOptions, PacketFeed,
    PeerEvent, RouteOptions, Tap, TapOptions, Tapped, packet_feed,
};
use portunus_relay::{FarNodeId, FarNodeOptions, SourceDescription, State, TreeOptions};
use portunus_rtp::{Fields, Pt, Ssrc, write_header};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;
use tokio::sync::mpsc;

const SOURCES: usize = 50;
const FRAMES: u32 = 500;
/// The time between two frames, of four packets each.
const FRAME: Duration = Duration::from_millis(33);
const PACKETS: u32 = 4;

struct Node {
    media: MediaPlane,
    state: State,
    other: FarNodeId,
    _events: mpsc::Receiver<PeerEvent>,
}

fn main() {
    let mut nodes = nodes();
    let mut feeds = Vec::new();
    let mut taps: [Vec<Tap>; 2] = Default::default();
    for _ in 0..SOURCES {
        let (feed, packets) = packet_feed(1);
        let options = IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets));
        let source = nodes[0].media.add_ingest(options).id;
        let description = SourceDescription::new(CodecName::Vp8);
        let offer = nodes[0].state.offer(source.into(), description);
        let there = &mut nodes[1];
        let ingest = there.state.subscribe(there.other, &offer).unwrap();
        for (taps, (media, source)) in taps
            .iter_mut()
            .zip([(&nodes[0].media, source), (&nodes[1].media, ingest)])
        {
            let tap = TapOptions {
                capacity: (FRAMES * PACKETS) as usize,
                ..TapOptions::default()
            };
            taps.push(media.tap(source, RouteOptions::default(), tap).1);
        }
        feeds.push(feed);
    }
    // What each node wants is carried to the other one.
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        for n in 0..2 {
            nodes[n].state.take_reports(Instant::now());
            while let Some((_, message)) = nodes[n].state.poll_message() {
                let other = &mut nodes[1 - n];
                other
                    .state
                    .take_message(other.other, &message, Instant::now());
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    let start = Instant::now();
    for frame in 0..FRAMES {
        for (n, feed) in feeds.iter().enumerate() {
            // Sources do not send at the same moment.
            let due = start + FRAME * frame + FRAME * n as u32 / SOURCES as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            send(feed, frame);
        }
    }
    thread::sleep(Duration::from_millis(300));
    let [near, far] = taps;
    let (mut delays, mut missing) = (Vec::new(), 0);
    for (mut near, mut far) in near.into_iter().zip(far) {
        let there: HashMap<[u8; 8], Instant> = arrivals(&mut far).into_iter().collect();
        for (packet, at) in arrivals(&mut near) {
            match there.get(&packet) {
                Some(then) => delays.push(then.saturating_duration_since(at)),
                None => missing += 1,
            }
        }
    }
    delays.sort_unstable();
    let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize].as_micros();
    println!(
        "{} packets, {missing} not there; added delay in µs: median {}, p90 {}, p99 {}, p99.9 {}",
        delays.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999)
    );
    for node in &nodes {
        node.media.shutdown();
    }
}

fn nodes() -> [Node; 2] {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let keys = [NodeLinkKey::random(), NodeLinkKey::random()];
    let planes = [0, 1].map(|_| {
        let config = MediaConfig {
            workers: 1,
            pin: false,
            port: 0,
            ..MediaConfig::default()
        };
        let (media, events) = MediaPlane::start(config).unwrap();
        let addresses = media.open_node_links(loopback, 0).unwrap();
        ((media, events), addresses)
    });
    let addresses: Vec<Vec<SocketAddr>> = planes.iter().map(|plane| plane.1.clone()).collect();
    let mut n = 0;
    planes.map(|((media, events), _)| {
        let mut state = State::new(media.clone(), TreeOptions::default());
        let link = NodeLinkOptions {
            far: addresses[1 - n].clone(),
            send: keys[n].clone(),
            receive: keys[1 - n].clone(),
        };
        n += 1;
        let options = FarNodeOptions {
            link,
            max_bps: None,
            place: None,
            is_suspect: false,
        };
        let other = state.connect(&options, Instant::now());
        Node {
            media,
            state,
            other,
            _events: events,
        }
    })
}

/// Sends a frame. Each is a keyframe, so that none is waited for.
fn send(feed: &PacketFeed, frame: u32) {
    for n in 0..PACKETS {
        let mut packet = vec![0; 1_040];
        let fields = Fields {
            marker: n + 1 == PACKETS,
            padding: false,
            pt: Pt(96),
            sequence: (frame * PACKETS + n) as u16,
            timestamp: frame * 3_000,
            ssrc: Ssrc(1),
        };
        let head = write_header(&mut packet, &fields, []).unwrap();
        let payload = &mut packet[head..];
        if n == 0 {
            payload[..11].copy_from_slice(&[0x10, 0x10, 0, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0]);
        }
        payload[20..24].copy_from_slice(&frame.to_be_bytes());
        payload[24..28].copy_from_slice(&n.to_be_bytes());
        let _ = feed.send(0, &packet);
    }
}

/// The packets of a tap, by frame and place, and when they arrived at its node.
fn arrivals(tap: &mut Tap) -> Vec<([u8; 8], Instant)> {
    let mut arrivals = Vec::new();
    while let Some(tapped) = tap.try_recv() {
        if let Tapped::Packet(packet) = tapped {
            let id = packet.payload()[20..28].try_into().unwrap();
            arrivals.push((id, packet.arrival()));
        }
    }
    arrivals
}
