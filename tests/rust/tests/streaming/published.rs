//! Mountpoints published by clients.

use std::time::{Duration, Instant};

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Packet, Peer};
use serde_json::json;

use crate::world::{KEYFRAME, PACKAGE, Viewer, server};

#[tokio::test]
async fn what_is_published_reaches_viewers_and_the_next_publisher_too() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let created = admin
        .manage(json!({
            "request": "create", "type": "whip", "id": 7,
            "media": [{ "type": "video", "mid": "v", "codec": "vp8" }],
        }))
        .await;
    assert_eq!(created["streaming"], "created", "{created}");
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    for round in 0..2 {
        let mut publisher = server.attach(PACKAGE).await;
        let mut peer = Peer::offering().await;
        let mut line = MediaOffer::new(Kind::Video, Direction::SendOnly);
        line.add_codec(CodecName::Vp8, None, None);
        let offer = peer.offer(Description::offer(OfferOptions {
            media: vec![line],
            ..OfferOptions::default()
        }));
        let publish = json!({ "request": "publish", "id": 7 });
        publisher.message(publish, Some(("offer", &offer))).await;
        let publishing = publisher
            .until("/plugindata/data/result/status", "publishing")
            .await;
        peer.accept(publishing["jsep"]["sdp"].as_str().unwrap());
        peer.connect().await;
        publisher.until("/janus", "webrtcup").await;
        let mut keyframe = KEYFRAME.to_vec();
        keyframe.push(round);
        for n in 0..200 {
            peer.send(0, n * 3_000, &keyframe).await;
            viewer.few_turns().await;
            let of_round = |packet: &Packet| packet.payload.last() == Some(&round);
            if viewer.peer.packets.iter().any(of_round) {
                break;
            }
        }
        let last = viewer.peer.packets.last().expect("a packet");
        assert_eq!(last.payload.last(), Some(&round));
        publisher
            .message(json!({ "request": "unpublish" }), None)
            .await;
        publisher.until("/janus", "hangup").await;
    }
}

#[tokio::test]
async fn the_next_publisher_takes_over_from_one_that_vanished() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let created = admin
        .manage(json!({
            "request": "create", "type": "whip", "id": 7, "media": [{ "type": "video", "mid": "v" }],
        }))
        .await;
    assert_eq!(created["streaming"], "created", "{created}");
    let offer = |peer: &mut Peer| {
        let mut line = MediaOffer::new(Kind::Video, Direction::SendOnly);
        line.add_codec(CodecName::Vp8, None, None);
        peer.offer(Description::offer(OfferOptions {
            media: vec![line],
            ..OfferOptions::default()
        }))
    };
    let publish = json!({ "request": "publish", "id": 7 });
    let mut first = server.attach(PACKAGE).await;
    let mut first_peer = Peer::offering().await;
    let offered = offer(&mut first_peer);
    first
        .message(publish.clone(), Some(("offer", &offered)))
        .await;
    let status = "/plugindata/data/result/status";
    let publishing = first.until(status, "publishing").await;
    first_peer.accept(publishing["jsep"]["sdp"].as_str().unwrap());
    first_peer.connect().await;
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    for n in 0..200 {
        first_peer.send(0, n * 3_000, &KEYFRAME).await;
        viewer.few_turns().await;
        if !viewer.peer.packets.is_empty() {
            break;
        }
    }
    assert!(!viewer.peer.packets.is_empty());

    // It crashes: nothing arrives any more, not even a goodbye.
    drop(first_peer);
    let crashed = Instant::now();
    let mut second = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    let offered = offer(&mut peer);
    let answer = loop {
        second
            .message(publish.clone(), Some(("offer", &offered)))
            .await;
        let event = second.next().await;
        if event.pointer(status).is_some() {
            break event["jsep"]["sdp"].as_str().unwrap().to_owned();
        }
        assert_eq!(event["plugindata"]["data"]["error_code"], 460, "{event}");
        // It must be faster than noticing the loss of a peer.
        assert!(crashed.elapsed() < Duration::from_secs(15));
        viewer.few_turns().await;
    };
    first.until(status, "replaced").await;
    first.until("/janus", "hangup").await;
    peer.accept(&answer);
    peer.connect().await;
    let mut picture = KEYFRAME.to_vec();
    picture.push(2);
    for n in 0..200 {
        peer.send(0, n * 3_000, &picture).await;
        viewer.few_turns().await;
        if viewer.peer.packets.last().unwrap().payload.last() == Some(&2) {
            break;
        }
    }
    assert_eq!(viewer.peer.packets.last().unwrap().payload.last(), Some(&2));
}
