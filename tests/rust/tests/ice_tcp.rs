//! ICE-TCP, end to end: clients that reach the server by TCP only, and strangers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_echotest::EchoTest;
use portunus_media::{Carrier, Event, IceState, TcpTotals};
use portunus_rtc::framing::frame_head;
use portunus_rtc::{SelectedPair, TransportEvent};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Peer, Server, Stage, Viewer, vp8};
use serde_json::json;

const VIDEO: [(Kind, Option<CodecName>); 1] = [(Kind::Video, Some(CodecName::Vp8))];

/// Waits until the figures are as wanted, 20 s at most.
async fn counted(stage: &Stage, mut are_so: impl FnMut(&TcpTotals) -> bool) -> TcpTotals {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let tcp = stage.media.totals().tcp;
        if are_so(&tcp) {
            return tcp;
        }
        assert!(Instant::now() < patience, "{tcp:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn refused(tcp: &TcpTotals, kind: &str) -> u64 {
    let index = TcpTotals::REFUSED.iter().position(|name| *name == kind);
    tcp.refused[index.unwrap()]
}

fn closed(tcp: &TcpTotals, kind: &str) -> u64 {
    let index = TcpTotals::CLOSED.iter().position(|name| *name == kind);
    tcp.closed[index.unwrap()]
}

/// Returns where a viewer's worker listens, according to its candidates.
fn listens_at(stage: &Stage, viewer: &Viewer) -> SocketAddr {
    let candidates = stage.media.candidates(viewer.id);
    let passive = candidates.iter().find(|c| c.contains("tcptype passive"));
    let words: Vec<&str> = passive.expect("a candidate of TCP").split(' ').collect();
    SocketAddr::new(words[4].parse().unwrap(), words[5].parse().unwrap())
}

fn frame(datagram: &[u8]) -> Vec<u8> {
    [&frame_head(datagram.len()).unwrap()[..], datagram].concat()
}

/// Returns a check in a frame, without integrity.
fn check(username: &[u8]) -> Vec<u8> {
    let mut check = vec![0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42];
    check.extend([7; 12]);
    check.extend([0, 6, 0, username.len() as u8]);
    check.extend(username);
    check.resize(check.len().next_multiple_of(4), 0);
    check[3] = (check.len() - 20) as u8;
    frame(&check)
}

fn selected(peer: &Peer) -> &SelectedPair {
    let pair = peer.connection.transport.selected_pair();
    pair.expect("a selected pair")
}

/// Connects, and sends `first`.
fn say(server: SocketAddr, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(first).unwrap();
    stream
}

/// Returns whether the other end closes the connection within 10 s.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    // A reset counts like an end.
    match stream.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[tokio::test]
async fn audio_video_and_data_come_back_by_tcp() {
    let server = Server::with_tcp(1, Arc::new(EchoTest));
    let mut caller = server.attach("janus.plugin.echotest").await;
    let mut peer = Peer::offering_by_tcp();
    let kinds = [
        (Kind::Audio, Some(CodecName::Opus)),
        (Kind::Video, Some(CodecName::Vp8)),
        (Kind::Data, None),
    ];
    let media = kinds.map(|(kind, codec)| {
        let mut media = MediaOffer::new(kind, Direction::SendRecv);
        if let Some(codec) = codec {
            media.add_codec(codec, None, None);
        }
        media
    });
    let offer = peer.offer(Description::offer(OfferOptions {
        media: media.into(),
        ..Default::default()
    }));
    let body = json!({ "audio": true });
    caller.message(body, Some(("offer", &offer))).await;
    let event = caller.next().await;
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    assert_eq!(selected(&peer).carrier, Carrier::Tcp);
    for (media, size) in [(0, 160), (1, 1_100)] {
        let mut payload = vec![0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0];
        payload.resize(size, 7);
        for n in 0..200 {
            peer.send(media, n * 960, &payload).await;
            peer.run_for(Duration::from_millis(20)).await;
            if peer.packets.iter().any(|packet| packet.media == media) {
                break;
            }
        }
        let echo = peer.packets.iter().find(|packet| packet.media == media);
        assert_eq!(echo.expect("an echo").payload, payload);
    }
    peer.send_text("chat", "hello");
    peer.run_until(|peer| !peer.texts("chat").is_empty()).await;
    // Longer than a datagram, and than a read of the connection.
    peer.send_bytes("chat", &vec![9; 200_000]);
    peer.run_until(|peer| peer.messages("chat").len() == 2)
        .await;
}

#[tokio::test]
async fn viewers_by_tcp_and_by_udp_get_the_same() {
    let stage = Stage::with_tcp(1);
    let (mut sender, source) = stage.fed(1_000);
    let mut by_tcp = stage.viewer_by_tcp(0, &VIDEO);
    let mut by_udp = stage.viewer(0, &VIDEO).await;
    for viewer in [&mut by_tcp, &mut by_udp] {
        stage.show(source.id, viewer).await;
    }
    let carriers = [&by_tcp, &by_udp].map(|viewer| selected(&viewer.peer).carrier);
    assert_eq!(carriers, [Carrier::Tcp, Carrier::Udp]);
    sender.start(&mut by_tcp.peer).await;
    for _ in 0..20 {
        sender.picture(false, 3);
    }
    for viewer in [&mut by_tcp, &mut by_udp] {
        let came = |peer: &mut Peer| peer.packets.len() >= 60;
        viewer.peer.run_until(came).await;
    }
    let tcp = counted(&stage, |tcp| tcp.sent_frames >= 60).await;
    assert_eq!(
        (tcp.connections, tcp.accepted, tcp.dropped_frames),
        (1, 1, 0)
    );
    assert_eq!(tcp.refused, [0; TcpTotals::REFUSED.len()]);
}

#[tokio::test]
async fn a_closed_connection_is_noticed_at_once() {
    let mut stage = Stage::with_tcp(1);
    let mut viewer = stage.viewer_by_tcp(0, &VIDEO);
    viewer.peer.connect().await;
    let mut pair = None;
    let wait = async |stage: &mut Stage, wanted: &dyn Fn(&Event) -> bool| {
        let next = tokio::time::timeout(Duration::from_secs(3), async {
            loop {
                let event = stage.events.recv().await.expect("an event").event;
                if wanted(&event) {
                    return event;
                }
            }
        });
        next.await.expect("in time")
    };
    let selected = wait(&mut stage, &|event| matches!(event, Event::SelectedPair(_))).await;
    if let Event::SelectedPair(selected) = selected {
        pair = Some(selected);
    }
    let pair = pair.unwrap();
    assert_eq!(pair.carrier, Carrier::Tcp);
    assert_eq!(pair.local, listens_at(&stage, &viewer));
    viewer.peer.hang_up();
    let gone = |event: &Event| matches!(event, Event::Ice(IceState::Disconnected));
    wait(&mut stage, &gone).await;
    counted(&stage, |tcp| tcp.connections == 0).await;
}

#[tokio::test]
async fn another_connection_takes_the_place_of_a_broken_one() {
    let stage = Stage::with_tcp(1);
    let (mut sender, source) = stage.fed(1_000);
    let mut viewer = stage.viewer_by_tcp(0, &VIDEO);
    stage.show(source.id, &mut viewer).await;
    sender.start(&mut viewer.peer).await;
    for times in 1..=3 {
        viewer.peer.connect_again();
        // The end of the connection is noticed, and the client checks again.
        let patience = Instant::now() + Duration::from_secs(20);
        while stage.media.totals().tcp.accepted <= times {
            assert!(Instant::now() < patience);
            viewer.peer.run_for(Duration::from_millis(20)).await;
        }
        let before = viewer.peer.packets.len();
        loop {
            assert!(Instant::now() < patience);
            sender.picture(true, 1);
            viewer.peer.run_for(Duration::from_millis(20)).await;
            if viewer.peer.packets.len() > before {
                break;
            }
        }
    }
    let tcp = counted(&stage, |tcp| tcp.connections == 1).await;
    assert_eq!((tcp.accepted, closed(&tcp, "left")), (4, 3));
    assert!(viewer.peer.connection.transport.is_connected());
}

#[tokio::test]
async fn viewers_by_ipv6_get_the_same() {
    let localhost = IpAddr::from(Ipv6Addr::LOCALHOST);
    let stage = Stage::with_tcp_at(localhost, 1);
    let mut viewer = stage.viewer_by(Peer::answering_by_tcp_from(localhost), 0, &VIDEO);
    assert_eq!(listens_at(&stage, &viewer).ip(), localhost);
    viewer.peer.connect().await;
    let pair = selected(&viewer.peer);
    assert_eq!(
        (pair.carrier, pair.remote),
        (Carrier::Tcp, listens_at(&stage, &viewer))
    );
}

#[tokio::test]
async fn connections_come_to_the_worker_of_their_peer() {
    let stage = Stage::with_tcp(2);
    let mut viewers: Vec<Viewer> = (0..2)
        .map(|worker| stage.viewer_by_tcp(worker, &VIDEO))
        .collect();
    let ports: Vec<SocketAddr> = viewers.iter().map(|v| listens_at(&stage, v)).collect();
    assert_eq!(ports, stage.media.listeners().collect::<Vec<_>>());
    assert_ne!(ports[0], ports[1]);
    for viewer in &mut viewers {
        viewer.peer.connect().await;
    }
    // Another worker's port leads to no peer.
    let user = format!("{}:else", viewers[0].ufrag);
    let mut stream = say(ports[1], &check(user.as_bytes()));
    assert!(is_closed(&mut stream));
    let tcp = counted(&stage, |tcp| tcp.accepted == 3 && tcp.connections == 2).await;
    assert_eq!(refused(&tcp, "unknown_peer"), 1);
}

#[tokio::test]
async fn the_end_of_a_peer_closes_its_connection() {
    let stage = Stage::with_tcp(1);
    let mut viewer = stage.viewer_by_tcp(0, &VIDEO);
    viewer.peer.connect().await;
    counted(&stage, |tcp| tcp.connections == 1).await;
    stage.media.close_peer(viewer.id);
    // The last message has arrived before.
    let closed = |event: &TransportEvent| matches!(event, TransportEvent::Closed);
    let said = |peer: &mut Peer| peer.events.iter().any(closed);
    viewer.peer.run_until(said).await;
    counted(&stage, |tcp| tcp.connections == 0).await;
}

#[tokio::test]
async fn who_is_no_peer_is_closed() {
    let stage = Stage::with_tcp(1);
    let viewer = stage.viewer_by_tcp(0, &VIDEO);
    let server = listens_at(&stage, &viewer);
    for (first, kind) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "not_a_check"),
        (frame(&[22, 254, 253, 0, 0]), "not_a_check"),
        (frame(&[0; 3_000]), "not_a_check"),
        (check(b"nobody:else"), "unknown_peer"),
    ] {
        let before = refused(&stage.media.totals().tcp, kind);
        let mut stream = say(server, &first);
        assert!(is_closed(&mut stream), "{kind}");
        counted(&stage, |tcp| refused(tcp, kind) == before + 1).await;
    }
    drop(say(server, &[]));
    counted(&stage, |tcp| refused(tcp, "left") == 1).await;
    // A check without integrity is for a peer, but from a stranger.
    let user = format!("{}:else", viewer.ufrag);
    let mut stream = say(server, &check(user.as_bytes()));
    assert!(is_closed(&mut stream));
    counted(&stage, |tcp| refused(tcp, "refused_check") == 1).await;
    // The timeout of silence is short.
    let since = Instant::now();
    let mut stream = say(server, &[0]);
    assert!(is_closed(&mut stream));
    assert!(since.elapsed() >= Duration::from_secs(4));
    counted(&stage, |tcp| {
        refused(tcp, "silent") == 1 && tcp.connections == 0
    })
    .await;
}

#[tokio::test]
async fn too_many_strangers_displace_each_other_and_nobody_else() {
    let stage = Stage::with_tcp(1);
    let mut viewer = stage.viewer_by_tcp(0, &VIDEO);
    viewer.peer.connect().await;
    let server = listens_at(&stage, &viewer);
    let strangers: Vec<TcpStream> = (0..300).map(|_| say(server, &[])).collect();
    let tcp = counted(&stage, |tcp| tcp.accepted == 301).await;
    // All come from one address.
    assert!(refused(&tcp, "displaced") >= 300 - 64, "{tcp:?}");
    let mut another = stage.viewer_by_tcp(0, &VIDEO);
    another.peer.connect().await;
    assert!(viewer.peer.connection.transport.is_connected());
    drop(strangers);
    counted(&stage, |tcp| tcp.connections == 2).await;
}

#[tokio::test]
async fn who_does_not_read_loses_whole_frames_and_holds_up_nobody() {
    let stage = Stage::with_tcp(1);
    let (mut sender, source) = stage.fed(1_000);
    let mut stuck = stage.viewer_by_tcp(0, &VIDEO);
    let mut by_udp = stage.viewer(0, &VIDEO).await;
    for viewer in [&mut stuck, &mut by_udp] {
        stage.show(source.id, viewer).await;
    }
    sender.start(&mut by_udp.peer).await;
    let patience = Instant::now() + Duration::from_secs(20);
    let mut payload = vp8(false, 0, 1);
    payload.resize(1_100, 7);
    while stage.media.totals().tcp.dropped_frames == 0 {
        assert!(Instant::now() < patience, "{:?}", stage.media.totals().tcp);
        for _ in 0..30 {
            let packet = sender.packet(true, &payload);
            sender.send(&packet);
            sender.timestamp = sender.timestamp.wrapping_add(3_000);
        }
        let before = by_udp.peer.packets.len();
        by_udp
            .peer
            .run_until(|peer| peer.packets.len() > before)
            .await;
    }
    // It reads again: all frames that it receives are whole, and later ones arrive.
    for _ in 0..200 {
        stuck.peer.run_for(Duration::from_millis(20)).await;
        sender.picture(false, 1);
    }
    stuck
        .peer
        .run_until(|peer| peer.packets.last().is_some_and(|p| p.payload.len() < 100))
        .await;
    assert!(stuck.peer.connection.transport.is_connected());
    let dropped = stuck.peer.connection.transport.counters().dropped;
    assert_eq!(dropped.iter().sum::<u32>(), 0);
}
