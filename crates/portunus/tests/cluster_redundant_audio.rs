//! Redundant audio (RFC 2198) reaches another node as it is, and plain Opus reaches those who have
//! not negotiated it. Two processes with a real nats-server. Skipped with a message where none of
//! 2.11 or newer is installed.
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

use nodes::callers::Caller;
use nodes::events::Events;
use nodes::{Node, Site};
use portunus_rtp::Pt;
use portunus_rtp::red::unpack;
use portunus_sdp::negotiated::Codec;
use portunus_tests::Peer;
use serde_json::{Value, json};
use server::{PATIENCE, ask, attach, post};

/// The audio of a packet, and that of the one before, which it repeats.
const OWN: &[u8] = b"own audio";
const BEFORE: &[u8] = b"before";

/// The payload of redundant audio whose blocks are Opus of this payload type.
fn redundant(opus: u8) -> Vec<u8> {
    // 960 before, as 14 bits, and the length as 10 bits.
    let head = (960_u32 << 10) | u32::try_from(BEFORE.len()).unwrap();
    let [_, high, middle, low] = head.to_be_bytes();
    let mut payload = vec![0x80 | opus, high, middle, low, opus];
    payload.extend(BEFORE);
    payload.extend(OWN);
    payload
}

/// Returns the payload type of a codec on the first m-line of a peer.
fn payload_type(peer: &Peer, codec: Codec) -> Option<Pt> {
    let mut payloads = peer.negotiated().media[0].payloads.iter();
    payloads.find(|it| it.codec == codec).map(|it| it.pt)
}

/// Checks that a payload is redundant audio as this peer has negotiated it.
fn assert_redundant(peer: &Peer, payload: &[u8]) {
    let opus = payload_type(peer, Codec::Opus).unwrap();
    let blocks: Vec<_> = unpack(payload)
        .map(|block| (block.pt, block.offset, block.payload))
        .collect();
    assert_eq!(blocks, [(opus, 960, BEFORE), (opus, 0, OWN)]);
}

fn send(handle: &str, body: Value, answer: Option<&str>) {
    let mut message = json!({ "janus": "message", "transaction": "m", "body": body });
    if let Some(answer) = answer {
        message["jsep"] = json!({ "type": "answer", "sdp": answer });
    }
    let reply = post(handle, &message);
    assert_eq!(reply["janus"], "ack", "{reply}");
}

/// Connects a viewer, which takes redundant audio or not.
async fn watch(node: &Node, id: u64, red: bool) -> Peer {
    let handle = attach(node.api());
    let events = Events::of(&handle);
    send(&handle, json!({ "request": "watch", "id": id }), None);
    let preparing = events.until(|event| event["janus"] == "event");
    let offer = preparing["jsep"]["sdp"].as_str();
    let mut peer = Peer::answering().await;
    peer.red = red;
    let answer = peer.answer(offer.unwrap_or_else(|| panic!("{preparing}")));
    send(&handle, json!({ "request": "start" }), Some(&answer));
    peer.connect().await;
    assert_eq!(payload_type(&peer, Codec::Red).is_some(), red);
    peer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mountpoint_with_redundant_audio_is_heard_at_another_node() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = &site.nodes[..] else {
        panic!("two nodes")
    };
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "red", "pt": 100, "fmtp": "102/102" },
    ]);
    let create = json!({ "request": "create", "type": "rtp", "id": 51, "media": media });
    let created = ask(&attach(a.api()), create);
    let port = created["stream"]["ports"][0]["port"].as_u64().unwrap();
    let (handle, begin) = (attach(b.api()), Instant::now());
    loop {
        let info = ask(&handle, json!({ "request": "info", "id": 51 }));
        if info["info"]["media"][0]["codec"] == "red" {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{info:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut number = 0_u16;
    for (node, red) in [(a, true), (a, false), (b, false), (b, true), (b, false)] {
        let mut viewer = watch(node, 51, red).await;
        let begin = Instant::now();
        while viewer.packets.is_empty() {
            assert!(begin.elapsed() < PATIENCE, "no sound at {}", node.name);
            let mut packet = vec![0x80, 100];
            packet.extend(number.to_be_bytes());
            packet.extend((u32::from(number) * 960).to_be_bytes());
            packet.extend([0, 0, 0, 7]);
            packet.extend(redundant(102));
            let to = ("127.0.0.1", u16::try_from(port).unwrap());
            socket.send_to(&packet, to).unwrap();
            number = number.wrapping_add(1);
            viewer.run_for(Duration::from_millis(20)).await;
        }
        let payload = &viewer.packets[0].payload;
        match red {
            true => assert_redundant(&viewer, payload),
            false => assert_eq!(payload, OWN, "at {}", node.name),
        }
    }
}

/// Checks that what one side of a call sends is heard by the other one as it was sent.
async fn heard(from: &mut Caller, to: &mut Caller, red: bool) {
    let sent = match red {
        true => redundant(payload_type(from.peer(), Codec::Opus).unwrap().0),
        false => OWN.to_vec(),
    };
    let payload = to.hear(from, &sent).await;
    match red {
        true => assert_redundant(to.peer(), &payload),
        false => assert_eq!(payload, OWN),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_at_two_nodes_call_each_other_with_redundant_audio() {
    let Some(site) = Site::start(&["a", "b"]) else {
        return;
    };
    let [a, b] = [0, 1].map(|index| site.nodes[index].api());
    let mut ada = Caller::registered(a, "ada");
    let mut bob = Caller::registered(b, "bob");
    for red in [true, false] {
        let begin = Instant::now();
        loop {
            let calling = ada.call_redundantly("bob").await;
            if calling["result"]["event"] == "calling" {
                break;
            }
            // The other node does not know the user, or the last call, yet.
            assert!(begin.elapsed() < PATIENCE, "{calling}");
        }
        bob.accept_with("ada", red).await;
        ada.accepted().await;
        for caller in [&mut ada, &mut bob] {
            let is_there = payload_type(caller.peer(), Codec::Red).is_some();
            assert_eq!(is_there, red, "what was negotiated");
        }
        heard(&mut ada, &mut bob, red).await;
        heard(&mut bob, &mut ada, red).await;
        let ended = bob.ask(json!({ "request": "hangup" }), None);
        assert_eq!(ended["result"]["event"], "hangup", "{ended}");
        ada.until("hangup");
    }
}
