//! Workers that share a port, end to end: the kernel passes most datagrams to another worker than
//! their peer's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use portunus_media::{Carrier, RouteOptions, TcpTotals};
use portunus_rtc::framing::frame_head;
use portunus_sdp::{CodecName, Kind};
use portunus_tests::{Stage, Viewer, vp8};

const VIDEO: [(Kind, Option<CodecName>); 1] = [(Kind::Video, Some(CodecName::Vp8))];
const WORKERS: usize = 4;
/// So many that the kernel does not pass all datagrams to the worker of their peer.
const PEERS: usize = 24;

/// Sends pictures from one peer until each of the others has received one that was sent from now
/// on.
async fn flows(sender: &mut Viewer, receivers: &mut [Viewer], timestamp: &mut u32) {
    let before: Vec<usize> = receivers.iter().map(|it| it.peer.packets.len()).collect();
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        *timestamp = timestamp.wrapping_add(3_000);
        let picture = vp8(true, 0, *timestamp as u16);
        sender.peer.send(0, *timestamp, &picture).await;
        let pause = Duration::from_millis(2);
        sender.peer.run_for(pause).await;
        for receiver in &mut *receivers {
            receiver.peer.run_for(pause).await;
        }
        let came = |(it, before): (&Viewer, &usize)| it.peer.packets.len() > *before;
        if receivers.iter().zip(&before).all(came) {
            return;
        }
        assert!(Instant::now() < patience, "{:?}", before);
    }
}

#[tokio::test]
async fn peers_of_all_workers_join_by_one_port() {
    let stage = Stage::on_one_port(WORKERS);
    let ports: Vec<u16> = stage.media.sockets().map(|it| it.port()).collect();
    assert_eq!(ports, [ports[0]; WORKERS]);
    let (mut sender, source) = stage.fed(1_000);
    let mut viewers = Vec::new();
    for n in 0..PEERS {
        let viewer = stage.watch(n % WORKERS, source.id).await;
        let pair = *viewer.peer.connection.transport.selected_pair().unwrap();
        assert_eq!(pair.remote.port(), ports[0]);
        viewers.push(viewer);
    }
    for viewer in &mut viewers {
        sender.start(&mut viewer.peer).await;
    }
    let totals = stage.media.totals();
    assert_eq!(totals.handover_dropped, 0);
    // Of each peer, at least some checks and the handshake. By chance, a few arrive at their
    // worker.
    assert!(totals.handed_over > PEERS as u64, "{}", totals.handed_over);
    // The destination that the TURN server may relay to exists once.
    let addresses: Vec<_> = stage.media.addresses().collect();
    let is_once = |it| addresses.iter().filter(|other| *other == it).count() == 1;
    assert!(addresses.iter().all(is_once), "{addresses:?}");
}

#[tokio::test]
async fn what_peers_send_reaches_viewers_on_all_workers() {
    let stage = Stage::on_one_port(WORKERS);
    for n in 0..8 {
        let mut caller = stage.caller(n % WORKERS).await;
        caller.peer.connect().await;
        let mut viewers = Vec::new();
        for worker in 0..WORKERS {
            viewers.push(stage.watch(worker, caller.tracks[0]).await);
        }
        flows(&mut caller, &mut viewers, &mut 0).await;
    }
    let totals = stage.media.totals();
    assert!(totals.handed_over > 100, "{}", totals.handed_over);
    assert_eq!(totals.handover_dropped, 0);
}

#[tokio::test]
async fn a_call_goes_on_at_another_port_and_another_address() {
    let stage = Stage::on_one_port(WORKERS);
    let mut callers = Vec::new();
    for worker in 0..WORKERS {
        let mut caller = stage.caller(worker).await;
        // It hears itself.
        stage
            .media
            .route(caller.tracks[0], caller.tracks[0], RouteOptions::default());
        caller.peer.connect().await;
        callers.push((caller, 0_u32));
    }
    for ip in ["127.0.0.1", "127.0.0.2"] {
        let ip: IpAddr = ip.parse().unwrap();
        for (caller, _) in &mut callers {
            caller.peer.move_to(ip).await;
        }
        let before: Vec<usize> = callers
            .iter()
            .map(|(it, _)| it.peer.packets.len())
            .collect();
        let patience = Instant::now() + Duration::from_secs(40);
        loop {
            for (caller, timestamp) in &mut callers {
                *timestamp = timestamp.wrapping_add(3_000);
                let picture = vp8(true, 0, *timestamp as u16);
                caller.peer.send(0, *timestamp, &picture).await;
                caller.peer.run_for(Duration::from_millis(5)).await;
            }
            let came = callers.iter().zip(&before);
            if came
                .into_iter()
                .all(|((it, _), before)| it.peer.packets.len() > before + 3)
            {
                break;
            }
            assert!(Instant::now() < patience, "{ip}");
        }
    }
}

#[tokio::test]
async fn connections_are_passed_to_the_worker_of_their_peer() {
    let stage = Stage::on_one_port(WORKERS);
    let listeners: Vec<SocketAddr> = stage.media.listeners().collect();
    assert_eq!(listeners.len(), 1);
    let (mut sender, source) = stage.fed(1_000);
    let mut viewers: Vec<Viewer> = (0..2 * WORKERS)
        .map(|n| stage.viewer_by_tcp(n % WORKERS, &VIDEO))
        .collect();
    for viewer in &mut viewers {
        stage.show(source.id, viewer).await;
        let pair = viewer.peer.connection.transport.selected_pair().unwrap();
        assert_eq!(pair.carrier, Carrier::Tcp);
        assert_eq!(pair.remote.port(), listeners[0].port());
        sender.start(&mut viewer.peer).await;
    }
    let tcp = stage.media.totals().tcp;
    let count = viewers.len() as u64;
    assert_eq!((tcp.accepted, tcp.connections), (count, count));
    assert_eq!(tcp.refused, [0; TcpTotals::REFUSED.len()]);
    // A broken connection ends at the peer's worker, and another one replaces it.
    for viewer in &mut viewers {
        viewer.peer.connect_again();
        viewer.peer.packets.clear();
        sender.start(&mut viewer.peer).await;
    }
    // A check that names a worker is handled there. Nobody has this user fragment.
    let mut check = vec![0, 1, 0, 16, 0x21, 0x12, 0xA4, 0x42];
    check.extend([7; 12]);
    check.extend([0, 6, 0, 11]);
    check.extend(b"nobAC:youyo\0");
    let server = SocketAddr::from(([127, 0, 0, 1], listeners[0].port()));
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(&frame_head(check.len()).unwrap()).unwrap();
    stream.write_all(&check).unwrap();
    let patience = Some(Duration::from_secs(10));
    stream.set_read_timeout(patience).unwrap();
    assert!(matches!(stream.read(&mut [0; 9]), Ok(0) | Err(_)));
    let patience = Instant::now() + Duration::from_secs(10);
    let unknown = TcpTotals::REFUSED
        .iter()
        .position(|it| *it == "unknown_peer")
        .unwrap();
    while stage.media.totals().tcp.refused[unknown] == 0 {
        assert!(Instant::now() < patience);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
