//! Mountpoints that pull from a camera, end to end: the requests to the camera, and packets that
//! cannot be relayed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_core::testing::everywhere;
use portunus_rtp::codec::{VideoCodec, is_keyframe};
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::rtcp::{Compound, Packet as Rtcp};
use portunus_rtp::{Pt, Ssrc};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::shape::{is, object};
use portunus_tests::{Peer, Server, vp8};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

const PACKAGE: &str = "janus.plugin.streaming";
const SSRC: u32 = 4_711;
const DESCRIPTION: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
    a=rtpmap:96 VP8/90000\r\na=control:v\r\n";

/// A camera of VP8 that sends a keyframe only on request.
#[derive(Clone, Default)]
struct Camera {
    /// The streams of keyframe requests.
    asked: Arc<Mutex<Vec<u32>>>,
    /// The length of an additional packet that it sends.
    besides: usize,
    /// Closes its connections.
    cut: Arc<Notify>,
}

/// Where its packets go.
enum Way {
    Tcp,
    Udp {
        rtp: UdpSocket,
        rtcp: UdpSocket,
        to: SocketAddr,
    },
}

impl Camera {
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
        let camera = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(camera.clone().serve(stream));
            }
        });
        url
    }

    async fn serve(self, mut stream: TcpStream) {
        let (mut way, mut plays) = (Way::Tcp, false);
        let (mut received, mut control) = (Vec::new(), [0; 1_500]);
        let mut frame = interval(Duration::from_millis(20));
        frame.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut sequence, mut answered) = (0u16, 0);
        loop {
            let rtcp = async {
                match &way {
                    Way::Tcp => std::future::pending().await,
                    Way::Udp { rtcp, .. } => rtcp.recv(&mut control).await.unwrap(),
                }
            };
            tokio::select! {
                () = self.cut.notified() => return,
                len = rtcp => self.hear(&control[..len]),
                read = stream.read_buf(&mut received) => if read.unwrap_or(0) == 0 {
                    return;
                },
                _ = frame.tick(), if plays => {
                    let asked = self.asked.lock().unwrap().len();
                    let keyframe = std::mem::replace(&mut answered, asked) != asked;
                    let picture = vp8(keyframe, 0, sequence);
                    let besides = vec![0; self.besides];
                    for payload in [picture, besides].iter().filter(|it| !it.is_empty()) {
                        let packet = packet(sequence, payload);
                        sequence = sequence.wrapping_add(1);
                        match &way {
                            Way::Tcp => {
                                let [high, low] = (packet.len() as u16).to_be_bytes();
                                let framed = [&[b'$', 0, high, low], &packet[..]].concat();
                                if stream.write_all(&framed).await.is_err() {
                                    return;
                                }
                            }
                            Way::Udp { rtp, to, .. } => {
                                rtp.send_to(&packet, to).await.unwrap();
                            }
                        }
                    }
                }
            }
            while let Some(len) = whole(&received) {
                let message: Vec<u8> = received.drain(..len).collect();
                if message[0] == b'$' {
                    assert_eq!(message[1], 1, "the channel of RTCP");
                    self.hear(&message[4..]);
                    continue;
                }
                let text = String::from_utf8(message).unwrap();
                plays |= text.starts_with("PLAY");
                let answer = answer(&text, &mut way).await;
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    fn hear(&self, compound: &[u8]) {
        for (index, packet) in Compound::new(compound).enumerate() {
            let packet = packet.unwrap();
            let is_report = matches!(packet, Rtcp::ReceiverReport(_));
            assert_eq!(is_report, index == 0, "RFC 3550 section 6.1");
            if let Rtcp::Pli(pli) = packet {
                self.asked.lock().unwrap().push(pli.media.0);
            }
        }
    }
}

/// Returns the length of the first message, if it is complete.
fn whole(received: &[u8]) -> Option<usize> {
    let len = match received {
        [b'$', _, high, low, ..] => 4 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => received.windows(4).position(|end| end == b"\r\n\r\n")? + 4,
    };
    (received.len() >= len).then_some(len)
}

fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let fields = Fields {
        marker: true,
        padding: false,
        pt: Pt(96),
        sequence,
        timestamp: u32::from(sequence) * 1_800,
        ssrc: Ssrc(SSRC),
    };
    let mut packet = vec![0; 12];
    write_header(&mut packet, &fields, []).unwrap();
    packet.extend_from_slice(payload);
    packet
}

async fn answer(text: &str, way: &mut Way) -> String {
    let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let number = header("CSeq: ").unwrap();
    let (mut more, mut body) = ("Session: abc\r\n".to_owned(), "");
    if text.starts_with("DESCRIBE") {
        body = DESCRIPTION;
    } else if text.starts_with("SETUP") {
        let mut transport = header("Transport: ").unwrap().to_owned();
        if let Some((_, ports)) = transport.split_once("client_port=") {
            let port = ports.split('-').next().unwrap().parse().unwrap();
            let (rtp, rtcp) = (bind().await, bind().await);
            let ports = [&rtp, &rtcp].map(|socket| socket.local_addr().unwrap().port());
            let to = SocketAddr::from(([127, 0, 0, 1], port));
            *way = Way::Udp { rtp, rtcp, to };
            transport = format!("{transport};server_port={}-{}", ports[0], ports[1]);
        }
        more = format!("{more}Transport: {transport}\r\n");
    }
    let len = body.len();
    format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{more}Content-Length: {len}\r\n\r\n{body}")
}

async fn bind() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

async fn server() -> Server {
    Server::start_with(2, async |media| {
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

#[tokio::test]
async fn a_camera_is_asked_for_the_keyframe_that_a_viewer_needs() {
    for transport in ["tcp", "udp"] {
        let server = server().await;
        let camera = Camera::default();
        let mut admin = server.attach(PACKAGE).await;
        let create = json!({
            "request": "create", "type": "rtsp", "id": 7, "url": camera.start().await, "video": true,
            "rtsp_transport": transport,
        });
        let created = admin.manage(create).await;
        assert_eq!(created["streaming"], "created", "{created}");
        for viewers in 1..=2 {
            let mut caller = server.attach(PACKAGE).await;
            caller
                .message(json!({ "request": "watch", "id": 7 }), None)
                .await;
            let status = "/plugindata/data/result/status";
            let preparing = caller.until(status, "preparing").await;
            let mut peer = Peer::answering().await;
            let answer = peer.answer(preparing["jsep"]["sdp"].as_str().unwrap());
            let start = json!({ "request": "start" });
            caller.message(start, Some(("answer", &answer))).await;
            peer.connect().await;
            peer.run_until(|peer| {
                let mut packets = peer.packets.iter();
                packets.any(|packet| is_keyframe(VideoCodec::Vp8, &packet.payload))
            })
            .await;
            let asked = camera.asked.lock().unwrap().clone();
            assert!(asked.len() >= viewers, "{transport}: {asked:?}");
            assert!(asked.iter().all(|ssrc| *ssrc == SSRC), "{asked:?}");
        }
    }
}

#[tokio::test]
async fn packets_of_a_camera_that_are_too_long_are_shown() {
    let server = server().await;
    let camera = Camera {
        besides: 1_900,
        ..Camera::default()
    };
    let mut admin = server.attach(PACKAGE).await;
    let create = json!({
        "request": "create", "type": "rtsp", "id": 7, "url": camera.start().await, "video": true,
        "rtsp_transport": "tcp",
    });
    let created = admin.manage(create).await;
    assert_eq!(created["streaming"], "created", "{created}");
    let patience = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        let info = admin.manage(json!({ "request": "info", "id": 7 })).await;
        let refused = info["info"]["media"][0]["refused"].clone();
        if !refused.is_null() {
            break refused;
        }
        assert!(Instant::now() < patience, "{info}");
        tokio::task::yield_now().await;
    };
    assert_eq!(refused["reason"], "too_long");
    assert!(refused["packets"].as_u64().unwrap() > 0);
    let totals = || server.gateway.media_totals().ingest_refused;
    while totals().contains(&("too_long", 0)) {
        assert!(Instant::now() < patience);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_camera_that_is_lost_and_comes_back_is_told() {
    let (server, mut watcher) =
        Server::watched::<Streaming>(StreamingConfig::default(), Recorder::default()).await;
    let camera = Camera::default();
    let mut caller = server.attach(PACKAGE).await;
    let create = json!({
        "request": "create", "type": "rtsp", "id": 7, "url": camera.start().await, "video": true,
        "rtsp_transport": "tcp", "rtsp_reconnect_delay": 1, "rtsp_notify_changes": true,
    });
    let created = caller.manage(create).await;
    assert_eq!(created["streaming"], "created", "{created}");
    watcher.told(PACKAGE, Some(&caller)).await;
    let watch = json!({ "request": "watch", "id": 7 });
    caller.message(watch, None).await;
    let status = "/plugindata/data/result/status";
    caller.until(status, "preparing").await;
    for event in ["rtsp-disconnected", "rtsp-reconnected"] {
        if event == "rtsp-disconnected" {
            camera.cut.notify_waiters();
        }
        let shape = object([("event", is(event)), ("id", is(7))]);
        let told = caller.until("/plugindata/data/event", event).await;
        shape.check(&told["plugindata"]["data"]);
        // No client caused it.
        shape.check(&watcher.told(PACKAGE, None).await);
    }
}
