//! Faults of one participant, which must not disturb others.

use portunus_rtp::Pt;
use portunus_sdp::{CodecName, Direction};
use portunus_tests::Peer;
use serde_json::{Value, json};

use crate::phone::{Phone, received, socket};
use crate::world::{Member, PACKAGE, ROOM, manage, offer, talk, talk_for, with_room};

const A: f32 = 400.0;
const B: f32 = 700.0;
const C: f32 = 1_100.0;

#[tokio::test]
async fn whoever_dies_in_mid_join_leaves_and_the_others_talk_on() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2 })).await;
    // With a PeerConnection that never connects, and with the last message before the answer
    // arrives.
    for (id, waits) in [(3, true), (4, false)] {
        let mut caller = server.attach(PACKAGE).await;
        let text = Peer::offering()
            .await
            .offer(offer(CodecName::Opus, Direction::SendRecv));
        let join = json!({ "request": "join", "room": ROOM, "id": id });
        caller.message(join, Some(("offer", &text))).await;
        if waits {
            caller.until("/plugindata/data/audiobridge", "joined").await;
        }
        let detached = caller.request("detach", json!({})).await;
        assert_eq!(detached["janus"], "success", "{detached}");
        for member in [&mut ann, &mut bob] {
            let gone = member.told("leaving", id).await;
            assert_eq!(gone["room"], ROOM);
        }
        // Its id is free again.
        let mut again = Member::join(&server, C, json!({ "id": id })).await;
        let left = again.ask(json!({ "request": "leave" })).await;
        assert_eq!(left["audiobridge"], "left", "{left}");
        for member in [&mut ann, &mut bob] {
            member.told("leaving", id).await;
        }
    }
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
    let list = manage(&server, json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["num_participants"], 2);
}

#[tokio::test]
async fn a_forwarder_to_a_closed_port_disturbs_no_other() {
    let server = with_room(json!({})).await;
    let closed = socket().1;
    let (open, port) = socket();
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut bob = Member::join(&server, B, json!({})).await;
    for port in [closed, port] {
        let forward = json!({ "request": "rtp_forward", "room": ROOM, "host": "127.0.0.1",
                              "port": port, "codec": "pcma" });
        let forwarded = manage(&server, forward).await;
        assert_eq!(forwarded["port"], port, "{forwarded}");
    }
    talk(&mut [&mut ann, &mut bob], "a talk", |it| it[0].hears(B)).await;
    talk_for(&mut [&mut ann, &mut bob], 50).await;
    let sequences: Vec<u16> = received(&open).iter().map(|it| it.0.sequence).collect();
    assert!(sequences.len() > 40, "{} packets", sequences.len());
    let is_next = |pair: &[u16]| pair[1] == pair[0].wrapping_add(1);
    assert!(sequences.windows(2).all(is_next), "{sequences:?}");
    assert!(ann.hears(B) && bob.hears(A));
    let list = json!({ "request": "listforwarders", "room": ROOM });
    let list = manage(&server, list).await;
    assert_eq!(list["rtp_forwarders"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn packets_of_wrong_types_twice_and_out_of_order_are_borne() {
    let server = with_room(json!({ "allow_rtp_participants": true })).await;
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut phone = Phone::join(&server, B, 2).await;
    // With a payload type that was not negotiated, and with random bytes: nothing is heard.
    phone.pt = Pt(8);
    for _ in 0..50 {
        let packet = phone.packet();
        phone.send(&packet);
        phone.send(b"no RTP");
        talk_for(&mut [&mut ann], 1).await;
    }
    assert!(ann.is_deaf_to(B), "heard: {}", ann.loudness(B));
    // Valid packets in swapped pairs, each twice: as loud as packets in order.
    phone.pt = Pt(0);
    let mut is_heard = false;
    for _ in 0..250 {
        let pair = [phone.packet(), phone.packet()];
        for packet in pair.iter().rev() {
            phone.send(packet);
            phone.send(packet);
        }
        talk_for(&mut [&mut ann], 2).await;
        phone.receive();
        let loudness = ann.loudness(B);
        is_heard = (0.2..0.3).contains(&loudness) && phone.loudness(A) > 0.03;
        if is_heard {
            break;
        }
    }
    assert!(
        is_heard,
        "heard: {}, {}",
        ann.loudness(B),
        phone.loudness(A)
    );
}

#[tokio::test]
async fn bad_opus_of_one_is_counted_and_the_others_talk_on() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2 })).await;
    let mut bad = Member::join(&server, C, json!({ "id": 3 })).await;
    bad.is_silent = true;
    let payloads: [&[u8]; 4] = [b"", b"\x6fp\x30", &[0xff; 40], &[0x03, 0xff, 0xff, 0xff]];
    for n in 0..40_u32 {
        let payload = payloads[n as usize % payloads.len()];
        bad.peer.send(0, n * 960, payload).await;
        talk_for(&mut [&mut ann, &mut bob, &mut bad], 1).await;
    }
    let state: Value = server.state(&bad.caller).await;
    assert!(state["refused"].as_u64() > Some(0), "{state}");
    talk(&mut [&mut ann, &mut bob, &mut bad], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A) && it[2].hears(A) && it[2].hears(B)
    })
    .await;
    // It talks as it should, and is heard.
    bad.is_silent = false;
    talk(
        &mut [&mut ann, &mut bob, &mut bad],
        "a talk of three",
        |it| it[0].hears(C) && it[1].hears(C),
    )
    .await;
}
