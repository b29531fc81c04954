//! Each kind of mountpoint of one node is watched on another one: fed by WHIP with simulcast, by a
//! camera over RTSP, by files, and watched by WHEP players. Two processes with a real nats-server.
//! Skipped with a message where none of 2.11 or newer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod nodes;
mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nodes::events::Events;
use nodes::{Node, Site};
use portunus_rtp::ExtensionKind;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::Peer;
use portunus_tests::layered::with_rids;
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach, post};

/// The encodings of a publisher, the best first, with the mark of their pictures.
const ENCODINGS: [(&str, u8); 3] = [("h", 3), ("m", 2), ("l", 1)];

/// A VP8 keyframe of 16 by 16 pixels, which ends with a mark.
fn picture(mark: u8) -> Vec<u8> {
    vec![0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, mark]
}

fn send(handle: &str, body: Value, jsep: Option<(&str, &str)>) {
    let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
    if let Some((kind, sdp)) = jsep {
        message["jsep"] = json!({ "type": kind, "sdp": sdp });
    }
    let reply = post(handle, &message);
    assert_eq!(reply["janus"], "ack", "{reply}");
}

/// Waits until a node lists a mountpoint.
fn listed(node: &Node, id: u64) -> Value {
    let (handle, begin) = (attach(node.api()), Instant::now());
    loop {
        let answer = ask(&handle, json!({ "request": "list" }));
        let list = answer["list"].as_array().unwrap();
        if let Some(found) = list.iter().find(|it| it["id"] == id) {
            return found.clone();
        }
        assert!(begin.elapsed() < PATIENCE, "{id}: {answer:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A viewer by the Janus API.
struct Viewer {
    handle: String,
    events: Events,
    peer: Peer,
}

impl Viewer {
    async fn new(node: &Node, id: u64) -> Self {
        let handle = attach(node.api());
        let events = Events::of(&handle);
        send(&handle, json!({ "request": "watch", "id": id }), None);
        let preparing = events.until(|event| event["janus"] == "event");
        let offer = preparing["jsep"]["sdp"].as_str();
        let mut peer = Peer::answering().await;
        let answer = peer.answer(offer.unwrap_or_else(|| panic!("{preparing}")));
        let start = json!({ "request": "start" });
        send(&handle, start, Some(("answer", &answer)));
        peer.connect().await;
        Viewer {
            handle,
            events,
            peer,
        }
    }

    /// Waits for some packets of an m-line, and returns the last byte of the last one.
    async fn sees(&mut self, media: usize) -> u8 {
        sees(&mut self.peer, media).await
    }
}

async fn sees(peer: &mut Peer, media: usize) -> u8 {
    peer.packets.clear();
    let of_media = |peer: &Peer| {
        let packets = peer.packets.iter().filter(|packet| packet.media == media);
        let ends = packets.filter_map(|packet| packet.payload.last().copied());
        ends.collect::<Vec<u8>>()
    };
    peer.run_until(|peer| of_media(peer).len() >= 5).await;
    of_media(peer).last().copied().unwrap()
}

fn publishing() -> Description {
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(CodecName::Vp8, None, None);
    video.extensions = vec![(ExtensionKind::Mid, 1), (ExtensionKind::Rid, 2)];
    Description::offer(OfferOptions {
        media: vec![video],
        ..OfferOptions::default()
    })
}

/// Publishes VP8 in three encodings.
struct Publisher {
    handle: String,
    events: Events,
    peer: Peer,
    clock: u32,
}

impl Publisher {
    async fn new(node: &Node, id: u64) -> Self {
        let handle = attach(node.api());
        let events = Events::of(&handle);
        let mut peer = Peer::offering().await;
        let offer = peer.offer(publishing());
        let offer = with_rids(&offer, "0", &ENCODINGS.map(|(rid, _)| rid));
        let publish = json!({ "request": "publish", "id": id });
        send(&handle, publish, Some(("offer", &offer)));
        let published = events.until(|event| event["janus"] == "event");
        let answer = published["jsep"]["sdp"].as_str();
        peer.accept(answer.unwrap_or_else(|| panic!("{published}")));
        peer.connect().await;
        events.until(|event| event["janus"] == "webrtcup");
        Publisher {
            handle,
            events,
            peer,
            clock: 0,
        }
    }

    /// Sends a picture in each encoding.
    async fn send(&mut self) {
        self.clock += 3_000;
        for (rid, mark) in ENCODINGS {
            self.peer
                .send_encoding((0, rid), self.clock, &[], &picture(mark))
                .await;
        }
        self.peer.run_for(Duration::from_millis(10)).await;
    }

    /// Sends until a viewer has this mark.
    async fn until_mark(&mut self, peer: &mut Peer, mark: u8) {
        let begin = Instant::now();
        loop {
            peer.packets.clear();
            for _ in 0..5 {
                self.send().await;
                peer.run_for(Duration::from_millis(10)).await;
            }
            let mut packets = peer.packets.iter();
            if packets.any(|packet| packet.payload.last() == Some(&mark)) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "no picture {mark}");
        }
    }
}

/// A player by WHEP, with an offer of its own.
async fn player(node: &Node, id: u64) -> Peer {
    let mut peer = Peer::offering().await;
    let mut video = MediaOffer::new(Kind::Video, Direction::RecvOnly);
    video.add_codec(CodecName::Vp8, None, None);
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![video],
        ..OfferOptions::default()
    }));
    let url = node.url().strip_prefix("http://").unwrap();
    let host = url.trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "POST /whep/{id} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{offer}",
        offer.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    peer.accept(response.split_once("\r\n\r\n").unwrap().1);
    peer.connect().await;
    peer
}

#[tokio::test(flavor = "multi_thread")]
async fn simulcast_of_a_publisher_is_watched_at_another_node_in_each_layer() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    let media = json!([{ "type": "video", "mid": "v", "codec": "vp8" }]);
    let create = json!({ "request": "create", "type": "whip", "id": 21, "media": media });
    let created = ask(&attach(a.api()), create);
    assert_eq!(created["streaming"], "created", "{created}");
    listed(b, 21);
    let mut publisher = Publisher::new(a, 21).await;
    publisher.send().await;
    // Publishers go to the node that has it.
    let elsewhere = attach(b.api());
    let refused = Events::of(&elsewhere);
    let offer = Peer::offering().await.offer(publishing());
    let publish = json!({ "request": "publish", "id": 21 });
    send(&elsewhere, publish, Some(("offer", &offer)));
    let refused = refused.until(|event| event["janus"] == "event");
    assert_eq!(
        refused["plugindata"]["data"]["error_code"], 460,
        "{refused}"
    );

    let mut viewer = Viewer::new(b, 21).await;
    publisher.until_mark(&mut viewer.peer, 3).await;
    for (substream, mark) in [(0, 1), (1, 2), (2, 3)] {
        let configure = json!({ "request": "configure", "mid": "v", "substream": substream });
        send(&viewer.handle, configure, None);
        publisher.until_mark(&mut viewer.peer, mark).await;
    }
    let mut player = player(b, 21).await;
    publisher.until_mark(&mut player, 3).await;

    // The publisher goes, and the next one is seen by the same viewers.
    send(&publisher.handle, json!({ "request": "unpublish" }), None);
    publisher.events.until(|event| event["janus"] == "hangup");
    let mut next = Publisher::new(a, 21).await;
    next.until_mark(&mut viewer.peer, 3).await;
    next.until_mark(&mut player, 3).await;
    let told = viewer.events.come();
    assert_eq!(told.filter(|event| event["janus"] == "hangup").count(), 0);
}

/// A camera that sends a keyframe each 20 ms in the RTSP connection. Returns its URL.
fn camera(mark: u8) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rtsp://{}/s", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || record(&stream, mark));
        }
    });
    url
}

/// Answers requests, and sends from PLAY on.
fn record(stream: &TcpStream, mark: u8) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        let mut request = Vec::new();
        loop {
            let line = lines.next()?.ok()?;
            if line.is_empty() {
                break;
            }
            request.push(line);
        }
        let number = request
            .iter()
            .find_map(|line| line.strip_prefix("CSeq: "))?;
        let method = request.first()?.split(' ').next()?.to_owned();
        let description = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
            a=rtpmap:96 VP8/90000\r\na=control:v\r\n";
        let (headers, body) = match &*method {
            "DESCRIBE" => ("Content-Type: application/sdp\r\n", description),
            "SETUP" => (
                "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
                "",
            ),
            "OPTIONS" => ("Public: DESCRIBE, SETUP, PLAY, TEARDOWN, OPTIONS\r\n", ""),
            _ => ("Session: 1\r\n", ""),
        };
        let answer = format!(
            "RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut writer = stream;
        writer.write_all(answer.as_bytes()).ok()?;
        if method == "PLAY" {
            break;
        }
    }
    let mut number = 0_u16;
    loop {
        let mut packet = vec![0x80, 0xe0];
        packet.extend(number.to_be_bytes());
        packet.extend((u32::from(number) * 1_800).to_be_bytes());
        packet.extend(4_711_u32.to_be_bytes());
        packet.extend(picture(mark));
        let [high, low] = u16::try_from(packet.len()).ok()?.to_be_bytes();
        let framed = [&[b'$', 0, high, low], &packet[..]].concat();
        let mut writer = stream;
        writer.write_all(&framed).ok()?;
        number = number.wrapping_add(1);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_camera_and_files_of_one_node_are_watched_at_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tone.mulaw");
    std::fs::write(&file, vec![77; 8_000]).unwrap();
    let camera = camera(9);
    let sections = format!(
        "[[streaming.mountpoint]]\nname = \"camera\"\nid = 31\ntype = \"rtsp\"\nurl = \"{camera}\"\nvideo = true\n\
         rtsp_transport = \"tcp\"\nrtsp_failcheck = false\nrtsp_reconnect_delay = 1\n\
         [[streaming.mountpoint]]\nname = \"tone\"\nid = 32\ntype = \"live\"\nfilename = {file:?}\n\
         [[streaming.mountpoint]]\nname = \"tape\"\nid = 33\ntype = \"ondemand\"\nfilename = {file:?}\n"
    );
    let Some(site) = Site::with(&[("a", &sections), ("b", "")]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    for (id, kind) in [(31, "live"), (32, "live")] {
        let entry = listed(b, id);
        assert_eq!(
            (&entry["node"], &entry["type"]),
            (&json!("a"), &json!(kind))
        );
    }
    // The camera describes itself once it is connected.
    let begin = Instant::now();
    while listed(b, 31)["media"][0]["codec"] != "vp8" && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    for node in [a, b] {
        let mut viewer = Viewer::new(node, 31).await;
        assert_eq!(viewer.sees(0).await, 9, "the camera at {}", node.name);
        let mut viewer = Viewer::new(node, 32).await;
        assert_eq!(viewer.sees(0).await, 77, "the file at {}", node.name);
    }
    let mut player = player(b, 31).await;
    assert_eq!(sees(&mut player, 0).await, 9);
    // A file that begins anew for each viewer stays at its node, where it plays.
    assert_eq!(listed(a, 33)["type"], "on demand");
    let handle = attach(b.api());
    let events = Events::of(&handle);
    send(&handle, json!({ "request": "watch", "id": 33 }), None);
    let refused = events.until(|event| event["janus"] == "event");
    assert_eq!(
        refused["plugindata"]["data"]["error_code"], 455,
        "{refused}"
    );
    let mut viewer = Viewer::new(a, 33).await;
    assert_eq!(viewer.sees(0).await, 77);
}
