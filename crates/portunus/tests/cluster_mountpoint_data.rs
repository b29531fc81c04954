//! The messages of a mountpoint's data streams reach its viewers at another node. Two processes
//! with a real nats-server. Skipped with a message where none of 2.11 or newer is installed.
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
use std::time::{Duration, Instant};

use nodes::events::Events;
use nodes::{Node, Site, links_up};
use portunus_tests::Peer;
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach, post};

/// The data channel of all mountpoints.
const LABEL: &str = "JanusDataChannel";

/// Fewer than may cross in 100 ms.
const PACE: Duration = Duration::from_millis(4);

fn send(handle: &str, body: Value, answer: Option<&str>) {
    let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
    if let Some(answer) = answer {
        message["jsep"] = json!({ "type": "answer", "sdp": answer });
    }
    let reply = post(handle, &message);
    assert_eq!(reply["janus"], "ack", "{reply}");
}

/// Makes a mountpoint with audio and data. Returns where its messages are sent to.
fn create(node: &Node, id: u64, datatype: &str, buffermsg: bool) -> (UdpSocket, u16) {
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "opus" },
        { "type": "data", "mid": "d", "port": 0, "datatype": datatype, "buffermsg": buffermsg },
    ]);
    let create = json!({ "request": "create", "type": "rtp", "id": id, "media": media });
    let created = ask(&attach(node.api()), create);
    let port = created["stream"]["ports"][1]["port"].as_u64().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    (socket, u16::try_from(port).unwrap())
}

fn write((socket, port): &(UdpSocket, u16), message: &[u8]) {
    socket.send_to(message, ("127.0.0.1", *port)).unwrap();
}

/// Waits until a node shows that a mountpoint has got messages, or has not.
fn until_info(node: &Node, id: u64, holds: impl Fn(&Value) -> bool) {
    let (handle, begin) = (attach(node.api()), Instant::now());
    loop {
        let info = ask(&handle, json!({ "request": "info", "id": id }));
        if holds(&info["info"]) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{id}: {info:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Connects a viewer.
async fn watch(node: &Node, id: u64) -> Peer {
    let handle = attach(node.api());
    let events = Events::of(&handle);
    send(&handle, json!({ "request": "watch", "id": id }), None);
    let preparing = events.until(|event| event["janus"] == "event");
    let offer = preparing["jsep"]["sdp"].as_str();
    let mut peer = Peer::answering().await;
    let answer = peer.answer(offer.unwrap_or_else(|| panic!("{preparing}")));
    send(&handle, json!({ "request": "start" }), Some(&answer));
    peer.connect().await;
    peer
}

/// Waits until a viewer has this text, and returns all that it has.
async fn texts_until(peer: &mut Peer, last: &str) -> Vec<String> {
    peer.run_until(|peer| peer.texts(LABEL).last() == Some(&last))
        .await;
    let texts = peer.texts(LABEL).into_iter();
    texts.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_at_another_node_get_each_text_in_order_and_the_last_one_at_first() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    let texts = create(a, 41, "text", true);
    write(&texts, b"before");
    until_info(a, 41, |info| info["media"][1].get("waiting").is_none());
    until_info(b, 41, |info| info["media"][1]["datatype"] == "text");

    let mut viewer = watch(b, 41).await;
    texts_until(&mut viewer, "before").await;
    let mut expected = vec!["before".to_owned()];
    for number in 0..200 {
        let text = format!("text {number}");
        write(&texts, text.as_bytes());
        viewer.run_for(PACE).await;
        expected.push(text);
    }
    assert_eq!(texts_until(&mut viewer, "text 199").await, expected);
    // Who comes later gets the last one first, at each node.
    for node in [a, b] {
        let mut late = watch(node, 41).await;
        assert_eq!(texts_until(&mut late, "text 199").await, ["text 199"]);
        write(&texts, b"again");
        assert_eq!(texts_until(&mut late, "again").await, ["text 199", "again"]);
        write(&texts, b"text 199");
        texts_until(&mut late, "text 199").await;
    }

    // The nodes lose each other, and a message is sent meanwhile.
    b.signal("-STOP");
    a.until("a lost node", |status| links_up(status) == 0);
    write(&texts, b"missed");
    b.signal("-CONT");
    site.until_linked();
    let came = texts_until(&mut viewer, "missed").await;
    assert_eq!(came.iter().filter(|text| *text == "missed").count(), 1);
    write(&texts, b"after");
    assert_eq!(
        texts_until(&mut viewer, "after").await.len(),
        came.len() + 1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_at_another_node_get_bytes_of_a_mountpoint_that_starts_anew() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    for mark in [1, 2] {
        let bytes = create(a, 42, "binary", false);
        until_info(b, 42, |info| info["media"][1]["datatype"] == "binary");
        write(&bytes, &[0]);
        let mut viewer = watch(b, 42).await;
        // Nothing is kept, so the viewer gets what comes once it is there.
        let begin = Instant::now();
        while viewer.messages(LABEL).is_empty() {
            assert!(begin.elapsed() < PATIENCE, "no message");
            write(&bytes, &[mark, 255]);
            viewer.run_for(PACE).await;
        }
        let is_mark = |message: &&portunus_rtc::data::DataMessage| {
            **message == portunus_rtc::data::DataMessage::Binary(vec![mark, 255])
        };
        let messages = viewer.messages(LABEL);
        assert_eq!(
            messages.iter().filter(|it| is_mark(it)).count(),
            messages.len()
        );
        let destroyed = ask(&attach(a.api()), json!({ "request": "destroy", "id": 42 }));
        assert_eq!(destroyed["streaming"], "destroyed", "{destroyed}");
        let (handle, begin) = (attach(b.api()), Instant::now());
        while ask(&handle, json!({ "request": "info", "id": 42 }))["info"].is_object() {
            assert!(begin.elapsed() < PATIENCE, "the mountpoint stays");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
