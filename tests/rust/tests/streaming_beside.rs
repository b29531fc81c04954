//! A watched mountpoint under bad input to it and to the rest of the server: the input is refused
//! clearly, and the viewer loses nothing and waits for nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portunus_core::media::MediaTotals;
use portunus_core::record::Recorder;
use portunus_core::testing::everywhere;
use portunus_core::testing::signed_token;
use portunus_core::{CoreConfig, Plugin};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Peer, Sender, Server, header, http, serve};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PACKAGE: &str = "janus.plugin.streaming";
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest gap between packets on a machine that is busy with other tests. A blocked server
/// shows, since it waits for unresponsive servers for longer.
const GAP: Duration = Duration::from_secs(3);
const HANGS: u64 = 5;
/// The end of the watched source's payloads, after a number.
const OURS: [u8; 4] = *b"ours";

/// With one worker, which all share.
async fn server(core: CoreConfig) -> Server {
    Server::configured(core, 1, async |media| {
        let config = StreamingConfig {
            folders: vec!["/".into()],
            outgoing: everywhere(),
            ..StreamingConfig::default()
        };
        let plugin = Streaming::start(config, media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await
}

async fn create(admin: &mut Caller, mut body: Value) -> Value {
    body["request"] = json!("create");
    admin.manage(body).await
}

/// Creates a mountpoint of one picture. Returns the address of its RTP.
async fn mountpoint(admin: &mut Caller, id: u64) -> SocketAddr {
    let media = json!([{ "type": "video", "mid": "v", "port": 0, "codec": "vp8" }]);
    let body = json!({ "type": "rtp", "id": id, "media": media, "collision": 600_000 });
    let created = create(admin, body).await;
    let port = created["stream"]["ports"][0]["port"].as_u64();
    let port = port.unwrap_or_else(|| panic!("{created}"));
    (Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()).into()
}

/// Watches mountpoint 7.
async fn watch(caller: &mut Caller) -> Peer {
    let watch = json!({ "request": "watch", "id": 7 });
    caller.message(watch, None).await;
    let status = "/plugindata/data/result/status";
    let preparing = caller.until(status, "preparing").await;
    let mut peer = Peer::answering().await;
    let answer = peer.answer(preparing["jsep"]["sdp"].as_str().unwrap());
    let start = json!({ "request": "start" });
    caller.message(start, Some(("answer", &answer))).await;
    peer.connect().await;
    caller.until(status, "started").await;
    peer
}

/// A source with a viewer that counts.
struct Watched {
    stop: Arc<AtomicBool>,
    /// The time of each sent packet.
    source: thread::JoinHandle<Vec<Instant>>,
    last: Arc<AtomicU64>,
    /// The number of received packets.
    count: Arc<AtomicU64>,
    /// The numbers of the received packets, with their times.
    viewer: JoinHandle<Vec<(u64, Instant)>>,
    /// The packets that the viewer received from others.
    strange: Arc<AtomicU64>,
}

impl Watched {
    /// Watches mountpoint 7 with `caller` until media flows.
    async fn start(mut caller: Caller, to: SocketAddr) -> Self {
        let mut peer = watch(&mut caller).await;
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let source = thread::spawn(move || {
            let mut sender = Sender::new(to, 7);
            let mut sent = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let mut payload = match sent.len() % 30 {
                    0 => vec![0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0],
                    _ => vec![0x10, 0x11, 0, 0],
                };
                payload.extend(sent.len().to_be_bytes());
                payload.extend(OURS);
                let packet = sender.packet(true, &payload);
                sent.push(Instant::now());
                sender.send(&packet);
                sender.timestamp = sender.timestamp.wrapping_add(450);
                thread::sleep(Duration::from_millis(5));
            }
            sent
        });
        let last = Arc::new(AtomicU64::new(u64::MAX));
        let strange = Arc::<AtomicU64>::default();
        let count = Arc::<AtomicU64>::default();
        let (until, others, counted) = (last.clone(), strange.clone(), count.clone());
        let (started, flows) = tokio::sync::oneshot::channel();
        let viewer = tokio::spawn(async move {
            let mut came: Vec<(u64, Instant)> = Vec::new();
            let (mut seen, mut started) = (0, Some(started));
            // The last packet may arrive before it is known to be the last. A retransmitted packet
            // is not lost.
            let ended = |came: &[(u64, Instant)]| {
                let last = until.load(Ordering::Relaxed);
                let (Some((first, _)), Some((_, at))) = (came.first(), came.last()) else {
                    return false;
                };
                last != u64::MAX
                    && (came.len() as u64 > last - first || at.elapsed() > PATIENCE / 4)
            };
            while !ended(&came) {
                let more = |peer: &mut Peer| peer.packets.len() > seen || ended(&came);
                peer.run_until(more).await;
                let now = Instant::now();
                for packet in &peer.packets[seen..] {
                    match packet.payload.strip_suffix(&OURS) {
                        Some(payload) => {
                            let (_, number) = payload.split_last_chunk().unwrap();
                            came.push((u64::from_be_bytes(*number), now));
                        }
                        None => drop(others.fetch_add(1, Ordering::Relaxed)),
                    }
                }
                seen = peer.packets.len();
                counted.store(seen as u64, Ordering::Relaxed);
                if let Some(started) = started.take() {
                    let _ = started.send(());
                }
            }
            drop(caller);
            came
        });
        timeout(PATIENCE, flows).await.expect("media").unwrap();
        Watched {
            stop,
            source,
            last,
            count,
            viewer,
            strange,
        }
    }

    /// Waits until this number of further packets has arrived.
    async fn go_on(&self, packets: u64) {
        let goal = self.count.load(Ordering::Relaxed) + packets;
        let deadline = Instant::now() + PATIENCE;
        while self.count.load(Ordering::Relaxed) < goal {
            assert!(Instant::now() < deadline, "media has stopped");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Checks that nothing was lost since the viewer's first packet, and nothing was late.
    async fn assert_undisturbed(self) {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.source.join().unwrap();
        let last = sent.len() as u64 - 1;
        self.last.store(last, Ordering::Relaxed);
        let came = timeout(PATIENCE, self.viewer).await;
        let mut came = came.expect("the last packet").unwrap();
        came.sort_unstable();
        let numbers: Vec<u64> = came.iter().map(|(number, _)| *number).collect();
        let expected: Vec<u64> = (numbers[0]..=last).collect();
        assert_eq!(numbers, expected, "something is missing");
        let delay = |(number, at): &(u64, Instant)| *at - sent[*number as usize];
        let worst = came.iter().map(delay).max().unwrap();
        println!("{} packets, the slowest took {worst:?}", came.len());
        assert!(worst < GAP, "a packet took {worst:?}");
        assert_eq!(self.strange.load(Ordering::Relaxed), 0);
    }
}

fn offer(peer: &mut Peer) -> String {
    let mut line = MediaOffer::new(Kind::Video, Direction::SendOnly);
    line.add_codec(CodecName::Vp8, None, None);
    peer.offer(Description::offer(OfferOptions {
        media: vec![line],
        ..OfferOptions::default()
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whip_requests_that_cannot_be_cost_a_viewer_nothing() {
    const SECRET: &str = "signs";
    let server = server(CoreConfig {
        token_auth: true,
        token_auth_secret: Some(SECRET.into()),
        ..CoreConfig::default()
    })
    .await;
    let (_transports, to) = serve(&server.gateway).await;

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let token = |end: u64, secret: &str| signed_token(&format!("{end},janus,{PACKAGE}"), secret);
    let valid = token(now.as_secs() + 600, SECRET);
    let mut admin = server.attach_with(PACKAGE, &valid).await;
    let stage = json!({ "type": "whip", "id": 9, "media": [{ "type": "video", "mid": "v" }] });
    let created = create(&mut admin, stage).await;
    assert_eq!(created["streaming"], "created", "{created}");
    let port = mountpoint(&mut admin, 7).await;
    let viewer = server.attach_with(PACKAGE, &valid).await;
    let watched = Watched::start(viewer, port).await;

    const SDP: &str = "Content-Type: application/sdp";
    const FRAGMENT: &str = "Content-Type: application/trickle-ice-sdpfrag";
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let right = bearer(&valid);
    let mut peer = Peer::offering().await;
    let good = offer(&mut peer);
    let large = "v".repeat(2 << 20);
    for _ in 0..100 {
        for (status, body) in [
            (400, ""),
            (400, "hello"),
            (400, "{}"),
            (400, "v=0\r\nx"),
            (413, &large),
        ] {
            let (answered, all) = http(to, "POST /whip/9", &[SDP, &right], body.as_bytes()).await;
            assert_eq!(answered, status, "{all}");
            assert!(all.contains("\"detail\":\""), "{all}");
        }
        for wrong in [
            token(now.as_secs() - 1, SECRET),
            token(now.as_secs() + 600, "guessed"),
        ] {
            let headers = [SDP, &bearer(&wrong)];
            let (status, all) = http(to, "POST /whip/9", &headers, good.as_bytes()).await;
            assert_eq!(status, 401, "{all}");
            assert!(all.contains("invalid_token"), "{all}");
        }
        // A resource that existed, and ended.
        let (status, all) = http(to, "POST /whip/9", &[SDP, &right], good.as_bytes()).await;
        assert_eq!(status, 201, "{all}");
        let location = header(&all, "location").unwrap();
        let delete = format!("DELETE {location}");
        assert_eq!(http(to, &delete, &[&right], b"").await.0, 200);
        for path in [location, "/whip/resource/0123456789abcdef0123456789abcdef"] {
            let patch = format!("PATCH {path}");
            let (status, all) = http(to, &patch, &[FRAGMENT, &right], b"a=ice-ufrag:x").await;
            assert_eq!(status, 404, "{all}");
            assert!(all.contains("has ended"), "{all}");
        }
    }
    watched.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rtsp_servers_that_lie_or_hang_cost_a_viewer_nothing() {
    let server = server(CoreConfig::default()).await;
    let mut admin = server.attach(PACKAGE).await;
    let port = mountpoint(&mut admin, 7).await;
    let viewer = server.attach(PACKAGE).await;
    let watched = Watched::start(viewer, port).await;
    let endless = [
        b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 4000000000\r\n\r\n",
        vec![b'v'; 4 << 20].as_slice(),
    ]
    .concat();
    // No answer, and half an answer, mean that it is unresponsive.
    for (says, error) in [
        (Vec::new(), "no answer to DESCRIBE"),
        (
            b"RTSP/1.0 200 OK\r\nCSeq:".to_vec(),
            "no answer to DESCRIBE",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "not RTSP"),
        (endless, "is longer than"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
        let liar = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1_024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(&says).await;
                open.push(stream);
            }
        });
        let camera = |id: u64, failcheck: bool| {
            json!({ "type": "rtsp", "id": id, "url": url, "video": true, "rtsp_failcheck": failcheck,
                    "rtsp_timeout": HANGS, "rtsp_conn_timeout": HANGS, "rtsp_reconnect_delay": 1 })
        };
        // This one is retried until the end.
        let tried = create(&mut admin, camera(8, false)).await;
        assert_eq!(tried["streaming"], "created", "{tried}");
        let refused = create(&mut admin, camera(9, true)).await;
        assert_eq!(refused["error_code"], 456, "{refused}");
        assert!(
            refused["error"].as_str().unwrap().contains(error),
            "{refused}"
        );
        admin.manage(json!({ "request": "destroy", "id": 8 })).await;
        liar.abort();
    }
    watched.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_and_files_that_cannot_be_cost_a_viewer_nothing() {
    let server = server(CoreConfig::default()).await;
    let mut admin = server.attach(PACKAGE).await;
    let port = mountpoint(&mut admin, 7).await;
    let viewer = server.attach(PACKAGE).await;
    let watched = Watched::start(viewer, port).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    let mut noise = vec![0; 100_000];
    StdRng::seed_from_u64(1).fill_bytes(&mut noise);
    let mut bad = Vec::new();
    let mut halves = Vec::new();
    for name in ["vp8-opus.webm", "h264-opus.mp4", "tone.opus"] {
        let whole = std::fs::read(format!("{data}/{name}")).unwrap();
        bad.push(write(&format!("empty-{name}"), b""));
        bad.push(write(&format!("head-{name}"), &whole[..20]));
        bad.push(write(&format!("noise-{name}"), &noise));
        halves.push(write(&format!("half-{name}"), &whole[..whole.len() / 2]));
    }
    for _ in 0..5 {
        for (code, port) in [(454, json!(70_000)), (456, json!(port.port()))] {
            let media = json!([{ "type": "video", "mid": "v", "port": port, "codec": "vp8" }]);
            let refused = create(
                &mut admin,
                json!({ "type": "rtp", "id": 8, "media": media }),
            )
            .await;
            assert_eq!(refused["error_code"], code, "{refused}");
        }
        for kind in ["live", "ondemand"] {
            let play = |file: &String| {
                let video = !file.ends_with(".opus");
                json!({ "type": kind, "id": 8, "filename": file, "audio": true, "video": video })
            };
            for file in &bad {
                let refused = create(&mut admin, play(file)).await;
                assert_eq!(refused["error_code"], 456, "{file}: {refused}");
                assert!(refused["error"].as_str().unwrap().len() > 10, "{refused}");
            }
            // The existing part may be played.
            for file in &halves {
                let created = create(&mut admin, play(file)).await;
                let refused = created["error_code"] == 456;
                assert!(refused || created["streaming"] == "created", "{created}");
                admin.manage(json!({ "request": "destroy", "id": 8 })).await;
            }
        }
    }
    watched.go_on(50).await;
    watched.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_rtp_and_a_flood_elsewhere_cost_a_viewer_nothing() {
    let server = server(CoreConfig::default()).await;
    let mut admin = server.attach(PACKAGE).await;
    let port = mountpoint(&mut admin, 7).await;
    let other = mountpoint(&mut admin, 8).await;
    let viewer = server.attach(PACKAGE).await;
    let watched = Watched::start(viewer, port).await;
    let before = server.gateway.media_totals();
    let stop = Arc::<AtomicBool>::default();
    let stopped = stop.clone();
    let flooding = thread::spawn(move || {
        let mut flood = Sender::new(other, 1);
        let mut foreign = Sender::new(port, 1_234);
        let mut rng = StdRng::seed_from_u64(5);
        while !stopped.load(Ordering::Relaxed) {
            // So few go to the watched port that its buffer has room for all, since a loss there is
            // not repaired.
            for _ in 0..200 {
                flood.picture(true, 1);
            }
            // Random bytes, and RTP of another sender.
            let mut noise = vec![0; rng.random_range(0..200)];
            rng.fill_bytes(&mut noise);
            foreign.send(&noise);
            foreign.picture(true, 1);
            thread::yield_now();
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let enough = loop {
        let totals = server.gateway.media_totals();
        let flooded = totals.ingested_packets - before.ingested_packets;
        let count = |totals: &MediaTotals| -> u64 {
            totals.ingest_refused.iter().map(|(_, count)| count).sum()
        };
        let refused = count(&totals) - count(&before);
        if (flooded > 100_000 && refused > 300) || Instant::now() > deadline {
            break (flooded, refused);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    stop.store(true, Ordering::Relaxed);
    flooding.join().unwrap();
    assert!(enough.0 > 100_000 && enough.1 > 300, "{enough:?}");
    watched.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_that_vanish_cost_another_nothing() {
    let server = server(CoreConfig::default()).await;
    let mut admin = server.attach(PACKAGE).await;
    let port = mountpoint(&mut admin, 7).await;
    let viewer = server.attach(PACKAGE).await;
    let watched = Watched::start(viewer, port).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        let mut caller = server.attach(PACKAGE).await;
        let mut peer = watch(&mut caller).await;
        peer.run_until(|peer| !peer.packets.is_empty()).await;
        // Its socket closes without a goodbye, so that packets to it return errors.
        drop(peer);
        others.push(caller);
    }
    watched.go_on(200).await;
    let info = json!({ "request": "info", "id": 7 });
    assert_eq!(admin.manage(info).await["info"]["viewers"], 11);
    watched.assert_undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_cost_a_viewer_nothing() {
    let server = server(CoreConfig::default()).await;
    let mut admin = server.attach(PACKAGE).await;
    let port = mountpoint(&mut admin, 7).await;
    let viewer = server.attach(PACKAGE).await;
    let watched = Watched::start(viewer, port).await;
    for n in 0..20 {
        let edit = json!({
            "request": "edit", "id": 7, "new_description": format!("take {n}"), "new_metadata": format!("{n}"),
            "new_pin": format!("{n}"), "new_is_private": n % 2 == 0, "edited_event": true,
        });
        let edited = admin.manage(edit).await;
        assert_eq!(edited["streaming"], "edited", "{edited}");
        watched.go_on(10).await;
    }
    watched.assert_undisturbed().await;
}
