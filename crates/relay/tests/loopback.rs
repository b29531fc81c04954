//! Two media planes in one process, joined over the loopback interface: sockets, workers and
//! threads are real, and messages go by a TCP connection.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portunus_media::{
    Ingest, IngestFeed, IngestOptions, MediaConfig, MediaPlane, NodeLinkKey, NodeLinkOptions,
    PacketFeed, PeerEvent, RouteOptions, Tap, TapOptions, Tapped, packet_feed,
};
use portunus_relay::{Event, FarNodeId, FarNodeOptions, Message, Relays, SourceDescription};
use portunus_rtp::rtcp::{Compound, Packet};
use portunus_rtp::{Fields, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Longer than a busy machine takes for anything here.
const PATIENCE: Duration = Duration::from_secs(30);

struct Node {
    media: MediaPlane,
    relays: Relays,
    other: FarNodeId,
    // Nobody reads events, but the channel has to stay open.
    _events: mpsc::Receiver<PeerEvent>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

/// A media plane, and the addresses of its workers for links.
struct Plane {
    media: MediaPlane,
    events: mpsc::Receiver<PeerEvent>,
    addresses: Vec<SocketAddr>,
}

fn plane() -> Plane {
    let config = MediaConfig {
        workers: 2,
        pin: false,
        port: 0,
        ..MediaConfig::default()
    };
    let (media, events) = MediaPlane::start(config).unwrap();
    let addresses = media.open_node_links(LOOPBACK, 0).unwrap();
    Plane {
        media,
        events,
        addresses,
    }
}

/// Returns two nodes that are connected.
async fn nodes() -> [Node; 2] {
    let keys = [NodeLinkKey::random(), NodeLinkKey::random()];
    let planes = [plane(), plane()];
    let addresses = planes.each_ref().map(|plane| plane.addresses.clone());
    let mut index = 0;
    let nodes = planes.map(|Plane { media, events, .. }| {
        let relays = Relays::new(media.clone());
        let link = NodeLinkOptions {
            far: addresses[1 - index].clone(),
            send: keys[index].clone(),
            receive: keys[1 - index].clone(),
        };
        index += 1;
        let max_bps = None;
        let (other, _) = relays.connect(&FarNodeOptions {
            link,
            max_bps,
            place: None,
            is_suspect: false,
        });
        let running = relays.clone();
        tokio::spawn(async move { running.run().await });
        Node {
            media,
            relays,
            other,
            _events: events,
        }
    });
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (one, other) = tokio::join!(connecting, listener.accept());
    for (node, stream) in nodes.iter().zip([one.unwrap(), other.unwrap().0]) {
        carry(node.relays.clone(), node.other, stream);
    }
    nodes
}

/// Carries the messages of a node, a line for each.
fn carry(relays: Relays, other: FarNodeId, stream: TcpStream) {
    let (read, mut write) = stream.into_split();
    let sender = relays.clone();
    tokio::spawn(async move {
        loop {
            let (_, message) = sender.next_message().await;
            let mut line = serde_json::to_string(&message).unwrap();
            line.push('\n');
            if write.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Message = serde_json::from_str(&line).unwrap();
            relays.take_message(other, &message);
        }
    });
}

/// A source of three encodings that sends as a camera does, and a keyframe when it is asked.
struct Film {
    source: Ingest,
    stops: Arc<AtomicBool>,
}

impl Drop for Film {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
    }
}

fn film(media: &MediaPlane) -> Film {
    let (tell, mut feedback) = mpsc::channel(64);
    let (feed, packets) = packet_feed(3);
    let packets = packets.with_feedback(tell);
    let options = IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets));
    let source = media.add_ingest(options);
    let stops = Arc::<AtomicBool>::default();
    let stopped = Arc::clone(&stops);
    tokio::spawn(async move {
        let mut wanted = [true; 3];
        let mut frame = 0_u32;
        while !stopped.load(Ordering::Relaxed) {
            while let Ok(compound) = feedback.try_recv() {
                for packet in Compound::new(&compound).flatten() {
                    if let Packet::Pli(pli) = packet {
                        wanted[pli.media.0 as usize - 1] = true;
                    }
                }
            }
            for encoding in 0..3_u8 {
                let keyframe = std::mem::take(&mut wanted[usize::from(encoding)]);
                send_frame(&feed, encoding, frame, keyframe);
            }
            frame += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    Film { source, stops }
}

/// Sends a frame of two packets, and now and then a report.
fn send_frame(feed: &PacketFeed, encoding: u8, frame: u32, keyframe: bool) {
    let timestamp = frame.wrapping_mul(1_800);
    for n in 0..2_u32 {
        let seq = SeqNo(u64::from(frame * 2 + n) + 60_000);
        let fields = Fields {
            marker: n == 1,
            padding: false,
            pt: Pt(120),
            sequence: seq.wire(),
            timestamp,
            ssrc: Ssrc(u32::from(encoding) + 1),
        };
        let mut packet = vec![0; 700];
        let head = write_header(&mut packet, &fields, []).unwrap();
        let payload = &mut packet[head..];
        payload[20..24].copy_from_slice(&frame.to_be_bytes());
        payload[24] = encoding;
        match (n, keyframe) {
            (0, true) => {
                payload[..11].copy_from_slice(&[0x10, 0x10, 0, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0]);
            }
            (0, false) => payload[..2].copy_from_slice(&[0x10, 0x11]),
            _ => {}
        }
        // A feed that is full loses the packet, as a network would.
        let _ = feed.send(encoding, &packet);
    }
    if frame.is_multiple_of(10) {
        let ntp = (3_900_000_000 << 32) + (u64::from(frame) << 32) / 50;
        let _ = feed.sender_report(encoding, ntp, timestamp);
    }
}

async fn next(tap: &mut Tap) -> Tapped {
    let next = tokio::time::timeout(PATIENCE, tap.recv());
    next.await.unwrap().unwrap()
}

/// Takes packets of an encoding until there are `count`. Returns their frames and numbers.
async fn watch(tap: &mut Tap, encoding: u8, count: usize) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let Tapped::Packet(packet) = next(tap).await else {
            continue;
        };
        if packet.encoding() == encoding {
            let payload = packet.payload();
            assert_eq!(payload[24], encoding);
            let frame = u32::from_be_bytes(payload[20..24].try_into().unwrap());
            seen.push((frame, packet.seq().0));
        }
    }
    seen
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waits).await;
    assert!(waited.is_ok(), "{what}");
}

fn tap(
    media: &MediaPlane,
    ingest: portunus_media::IngestId,
    substream: u8,
) -> (portunus_media::RouteId, Tap) {
    let options = RouteOptions {
        substream,
        ..RouteOptions::default()
    };
    let tap = TapOptions {
        reports: true,
        ..TapOptions::default()
    };
    media.tap(ingest, options, tap)
}

fn description() -> SourceDescription {
    SourceDescription {
        encodings: 3,
        ..SourceDescription::new(CodecName::Vp8)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_one_media_plane_is_a_source_of_the_other_as_long_as_it_is_watched() {
    let [near, there] = nodes().await;
    let film = film(&near.media);
    let offer = near.relays.offer(film.source.id.into(), description());
    let ingest = there.relays.subscribe(there.other, &offer).unwrap();
    let (route, mut high) = tap(&there.media, ingest, 2);
    let seen = watch(&mut high, 2, 100).await;
    for pair in seen.windows(2) {
        assert_eq!(pair[1].1, pair[0].1 + 1, "numbers have no gaps");
        assert!(pair[1].0 - pair[0].0 <= 1, "and neither have frames");
    }
    // What the camera says of its clock arrives.
    let report = loop {
        match next(&mut high).await {
            Tapped::Report(report) => break report,
            Tapped::Packet(_) | Tapped::Message(_) => {}
        }
    };
    let seconds = report.ntp as f64 / 2_f64.powi(32) - 3_900_000_000.0;
    let frames = f64::from(report.timestamp) / 90_000.0;
    assert!((seconds - frames).abs() < 1.0, "{seconds} {frames}");
    // Somebody who looks at less needs nothing more to cross.
    let (_low, mut low) = tap(&there.media, ingest, 0);
    watch(&mut low, 0, 50).await;
    let stats = near.relays.stats(near.other).unwrap();
    assert_eq!(stats.sent_streams, 3);
    until("a round trip", || {
        near.relays.stats(near.other).unwrap().round_trip.is_some()
    })
    .await;
    there.media.remove_route(route);
    until("one encoding is left", || {
        near.relays.stats(near.other).unwrap().sent_streams == 1
    })
    .await;
    watch(&mut low, 0, 50).await;
    drop(low);
    until("nothing crosses", || {
        near.relays.stats(near.other).unwrap().sent_streams == 0
    })
    .await;
    let stats = there.relays.stats(there.other).unwrap();
    assert_eq!(
        (stats.unauthentic, stats.malformed, stats.replayed),
        (0, 0, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_source_ends_it_on_the_other_node() {
    let [near, there] = nodes().await;
    let film = film(&near.media);
    let offer = near.relays.offer(film.source.id.into(), description());
    let ingest = there.relays.subscribe(there.other, &offer).unwrap();
    let (_route, mut seen) = tap(&there.media, ingest, 0);
    watch(&mut seen, 0, 10).await;
    near.relays.withdraw(offer.id);
    drop(near.media.remove_ingest(film.source.id));
    let event = tokio::time::timeout(PATIENCE, there.relays.next_event());
    let event = event.await.unwrap();
    assert!(matches!(event, Event::Ended { ingest: ended, .. } if ended == ingest));
    let ended = async { while seen.recv().await.is_some() {} };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_strangers_are_counted_and_disturb_nothing() {
    let [near, there] = nodes().await;
    let film = film(&near.media);
    let offer = near.relays.offer(film.source.id.into(), description());
    let ingest = there.relays.subscribe(there.other, &offer).unwrap();
    let (_route, mut seen) = tap(&there.media, ingest, 1);
    watch(&mut seen, 1, 10).await;
    let stranger = std::net::UdpSocket::bind((LOOPBACK, 0)).unwrap();
    // Each worker of the other node has a socket; some other media plane opens more.
    let other = plane();
    for n in 0..100_u8 {
        for to in &other.addresses {
            stranger
                .send_to(&[0x80, 96, 0, n, 0, 0, 0, 0, 0, 0, 0, 1, 7], to)
                .unwrap();
        }
    }
    let refused = |media: &MediaPlane| {
        let refused = media.totals().node_link_refused;
        let of = refused.iter().find(|(why, _)| *why == "unknown_address");
        of.map_or(0, |(_, count)| *count)
    };
    until("they are counted", || refused(&other.media) == 200).await;
    let frames = watch(&mut seen, 1, 50).await;
    assert!(frames.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redundant_audio_is_on_the_other_node_as_it_came() {
    let [near, there] = nodes().await;
    let (feed, packets) = packet_feed(1);
    let options = IngestOptions::rtp(Codec::Red, 48_000, IngestFeed::Packets(packets));
    let source = near.media.add_ingest(options);
    let description = SourceDescription::new(CodecName::Opus);
    let offer = near.relays.offer(source.id.into(), description);
    let ingest = there.relays.subscribe(there.other, &offer).unwrap();
    let (_route, mut heard) = tap(&there.media, ingest, 0);
    // A block of two bytes, 960 before, and one of three bytes.
    let payload = [0x80 | 111, 0x0f, 0x00, 2, 111, 1, 2, 3, 4, 5];
    let sends = async {
        for number in 0.. {
            let fields = Fields {
                marker: false,
                padding: false,
                pt: Pt(63),
                sequence: number,
                timestamp: u32::from(number) * 960,
                ssrc: Ssrc(1),
            };
            let mut packet = vec![0; 64];
            let head = write_header(&mut packet, &fields, []).unwrap();
            packet.truncate(head);
            packet.extend(payload);
            feed.send(0, &packet).unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let hears = async {
        for _ in 0..20 {
            let packet = loop {
                if let Tapped::Packet(packet) = next(&mut heard).await {
                    break packet;
                }
            };
            assert_eq!(
                (packet.codec(), packet.payload()),
                (Codec::Red, &payload[..])
            );
        }
    };
    tokio::select! {
        () = sends => {}
        () = hears => {}
    }
}
