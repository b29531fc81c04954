//! A mountpoint of one node is watched on another one. Two processes with a real nats-server.
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

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portunus_tests::Peer;
use serde_json::{Value, json};

use nodes::{Node, Site};
use server::{PATIENCE, ask, attach, get, metric, post, response};

/// Sends audio and video with a keyframe in each packet, until it is dropped.
struct Sender {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    fn start(ports: [u16; 2]) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let ended = ends.clone();
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            // The first partition of a VP8 keyframe of 16 x 16.
            let video = [
                0x10, 0x10, 0, 0, 0x9d, 1, 0x2a, 16, 0, 16, 0, 1, 2, 3, 4, 5, 6,
            ];
            let mut number = 0_u16;
            while !ended.load(Ordering::Relaxed) {
                for (port, pt, payload) in [(ports[0], 111, &b"sound"[..]), (ports[1], 96, &video)]
                {
                    let mut packet = vec![0x80, pt | 0x80];
                    packet.extend(number.to_be_bytes());
                    packet.extend((u32::from(number) * 1_800).to_be_bytes());
                    packet.extend([0, 0, 0, pt]);
                    packet.extend(payload);
                    socket.send_to(&packet, ("127.0.0.1", port)).unwrap();
                }
                number = number.wrapping_add(1);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Sender {
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Makes a mountpoint with audio and video. Returns its ports.
fn create(node: &Node, id: u64, description: &str) -> [u16; 2] {
    let created = ask(
        &attach(node.api()),
        json!({
            "request": "create", "type": "rtp", "id": id, "description": description, "pin": "1234",
            "media": [
                { "type": "audio", "mid": "a", "port": 0, "codec": "opus" },
                { "type": "video", "mid": "v", "port": 0, "codec": "vp8" },
            ],
        }),
    );
    let port = |index: usize| created["stream"]["ports"][index]["port"].as_u64();
    [0, 1].map(|index| u16::try_from(port(index).expect("a port")).unwrap())
}

/// Waits until a node lists a mountpoint like this, or none.
fn listed(node: &Node, id: u64, holds: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
    let handle = attach(node.api());
    let begin = Instant::now();
    loop {
        let answer = ask(&handle, json!({ "request": "list" }));
        let list = answer["list"].as_array().unwrap();
        let found = list.iter().find(|it| it["id"] == id);
        if holds(found) {
            return found.cloned();
        }
        assert!(begin.elapsed() < PATIENCE, "{id}: {answer:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the next event of the plugin or the core that a handle's session gets.
fn next_event(handle: &str) -> Value {
    let session = handle.rsplit_once('/').unwrap().0;
    loop {
        let event: Value = serde_json::from_str(&get(session)).unwrap();
        let name = event["janus"].as_str().unwrap_or_default();
        if !["keepalive", "webrtcup", "media", "slowlink"].contains(&name) {
            return event;
        }
    }
}

fn message(handle: &str, body: Value, answer: Option<&str>) {
    let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
    if let Some(answer) = answer {
        message["jsep"] = json!({ "type": "answer", "sdp": answer });
    }
    assert_eq!(post(handle, &message)["janus"], "ack");
}

/// A viewer by the Janus API that is connected.
async fn watch(node: &Node, id: u64) -> (String, Peer) {
    let handle = attach(node.api());
    message(
        &handle,
        json!({ "request": "watch", "id": id, "pin": "1234" }),
        None,
    );
    let preparing = next_event(&handle);
    let mut peer = Peer::answering().await;
    let answer = peer.answer(preparing["jsep"]["sdp"].as_str().expect("an offer"));
    message(&handle, json!({ "request": "start" }), Some(&answer));
    peer.connect().await;
    (handle, peer)
}

/// Waits for packets of both streams.
async fn sees(peer: &mut Peer) {
    peer.packets.clear();
    let has = |peer: &Peer, media: usize| {
        let of_media = peer.packets.iter().filter(|packet| packet.media == media);
        of_media.count() >= 10
    };
    peer.run_until(|peer| has(peer, 0) && has(peer, 1)).await;
    let sound = peer.packets.iter().find(|packet| packet.media == 0);
    assert_eq!(sound.unwrap().payload, b"sound");
}

/// Returns the number of streams that a node sends to others.
fn crossing(node: &Node) -> u64 {
    metric(
        node.api(),
        "portunus_cluster_media_streams{direction=\"out\"}",
    )
}

fn wait_for_crossing(node: &Node, streams: u64) {
    let begin = Instant::now();
    while crossing(node) != streams {
        assert!(begin.elapsed() < PATIENCE, "{} streams", crossing(node));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mountpoint_of_one_node_is_watched_on_another_one() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    let _sender = Sender::start(create(a, 7, "of a"));
    let entry = listed(b, 7, |entry| {
        entry.is_some_and(|entry| entry["media"][0]["age_ms"] == 0)
    });
    let entry = entry.unwrap();
    assert_eq!(
        (&entry["node"], &entry["description"], &entry["type"]),
        (&json!("a"), &json!("of a"), &json!("live"))
    );
    let handle = attach(b.api());
    let info = ask(&handle, json!({ "request": "info", "id": 7 }));
    assert_eq!(info["info"]["media"][1]["codec"], "vp8", "{info}");
    assert_eq!(info["info"]["pin"], Value::Null);
    let refused = ask(&handle, json!({ "request": "destroy", "id": 7 }));
    assert_eq!(refused["error_code"], 460, "{refused}");
    message(
        &handle,
        json!({ "request": "watch", "id": 7, "pin": "4321" }),
        None,
    );
    let refused = next_event(&handle);
    assert_eq!(
        refused["plugindata"]["data"]["error_code"], 457,
        "{refused}"
    );
    // Nothing crosses as long as nobody watches.
    assert_eq!(crossing(a), 0);

    let (first, mut one) = watch(b, 7).await;
    sees(&mut one).await;
    let (second, mut two) = watch(b, 7).await;
    sees(&mut two).await;
    // Each stream crosses once for both.
    assert_eq!(crossing(a), 2);
    // By WHEP, with an offer of the server.
    let offered = response("POST", &format!("{}whep/7?pin=1234", b.url()), "");
    assert!(offered.starts_with("HTTP/1.1 201 "), "{offered}");
    let place = offered
        .lines()
        .find_map(|line| line.strip_prefix("location: /"));
    let deleted = response("DELETE", &format!("{}{}", b.url(), place.unwrap()), "");
    assert!(deleted.starts_with("HTTP/1.1 2"), "{deleted}");

    // A change at the home reaches the others.
    let edit = json!({ "request": "edit", "id": 7, "new_description": "renamed" });
    ask(&attach(a.api()), edit);
    listed(b, 7, |entry| {
        entry.is_some_and(|entry| entry["description"] == "renamed")
    });
    message(&first, json!({ "request": "stop" }), None);
    sees(&mut two).await;
    assert_eq!(crossing(a), 2);
    message(&second, json!({ "request": "stop" }), None);
    wait_for_crossing(a, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_learn_that_the_node_of_their_mountpoint_has_died() {
    let Some(mut site) = Site::start(&["a", "b"]) else {
        return;
    };
    let _sender = Sender::start(create(&site.nodes[0], 7, "of a"));
    listed(&site.nodes[1], 7, |entry| entry.is_some());
    let (handle, mut peer) = watch(&site.nodes[1], 7).await;
    sees(&mut peer).await;
    site.nodes[0].running = None;
    loop {
        let event = next_event(&handle);
        let status = &event["plugindata"]["data"]["result"]["status"];
        if status == "stopped" {
            break;
        }
        assert_eq!(event["janus"], "event", "{event}");
    }
    listed(&site.nodes[1], 7, |entry| entry.is_none());
}

#[test]
fn a_mountpoint_of_the_node_itself_hides_that_of_another_one() {
    let mountpoint = |node: &str| {
        format!(
            "[[streaming.mountpoint]]\nname = \"stage\"\nid = 8\ntype = \"whip\"\ndescription = \"of {node}\"\n\
             [[streaming.mountpoint.media]]\ntype = \"audio\"\nmid = \"a\"\n"
        )
    };
    let (of_a, of_b) = (mountpoint("a"), mountpoint("b"));
    let Some(site) = Site::with(&[("a", &of_a), ("b", &of_b)]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    create(a, 9, "marks that a has told all before");
    listed(b, 9, |entry| entry.is_some());
    let entry = listed(b, 8, |entry| entry.is_some()).unwrap();
    assert_eq!(
        (&entry["description"], &entry["node"]),
        (&json!("of b"), &Value::Null)
    );
    // Nobody makes a mountpoint with an id that another node has.
    let handle = attach(b.api());
    let media = json!([{ "type": "audio", "mid": "a" }]);
    let create = json!({ "request": "create", "type": "whip", "id": 9, "media": media });
    assert_eq!(ask(&handle, create)["error_code"], 456);

    ask(&handle, json!({ "request": "destroy", "id": 8 }));
    listed(b, 8, |entry| {
        entry.is_some_and(|entry| entry["node"] == "a" && entry["description"] == "of a")
    });
    ask(&attach(a.api()), json!({ "request": "destroy", "id": 8 }));
    listed(b, 8, |entry| entry.is_none());
}
