//! The echo test, end to end: JSON, ICE, DTLS, media and data over the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_echotest::EchoTest;
use portunus_rtc::{IceState, TransportEvent};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use serde_json::json;

const PACKAGE: &str = "janus.plugin.echotest";

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

fn description(kinds: &[Kind]) -> Description {
    let media = kinds.iter().map(|kind| {
        let mut media = MediaOffer::new(*kind, Direction::SendRecv);
        match kind {
            Kind::Audio => media.add_codec(CodecName::Opus, None, None),
            Kind::Video => media.add_codec(CodecName::Vp8, None, None),
            Kind::Data => {}
        }
        media
    });
    Description::offer(OfferOptions {
        media: media.collect(),
        ..Default::default()
    })
}

const ALL: [Kind; 3] = [Kind::Audio, Kind::Video, Kind::Data];

async fn connect(server: &Server) -> (Caller, Peer) {
    let mut caller = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description(&ALL));
    caller
        .message(json!({ "audio": true }), Some(("offer", &offer)))
        .await;
    let event = caller.next().await;
    assert_eq!(event["plugindata"]["data"]["result"], "ok", "{event}");
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    (caller, peer)
}

/// Sends on m-line `media` until something comes back on it that was sent since.
async fn echo(peer: &mut Peer, media: usize, payload: &[u8]) {
    peer.packets.clear();
    for n in 0..200 {
        peer.send(media, n * 960, payload).await;
        let mut turns = 0;
        peer.run_until(|_| {
            turns += 1;
            turns > 3
        })
        .await;
        if peer.packets.iter().any(|packet| packet.media == media) {
            break;
        }
    }
    let packet = peer
        .packets
        .iter()
        .find(|packet| packet.media == media)
        .expect("an echo");
    assert_eq!(packet.payload.last(), payload.last());
}

#[tokio::test]
async fn audio_video_and_data_come_back() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (mut caller, mut peer) = connect(&server).await;
    echo(&mut peer, 0, b"opus").await;
    let media = caller.until("/janus", "media").await;
    echo(&mut peer, 1, &KEYFRAME).await;
    assert_eq!(
        (&media["mid"], &media["receiving"]),
        (&json!("0"), &json!(true))
    );
    peer.send_text("chat", "hello");
    peer.run_until(|peer| !peer.texts("chat").is_empty()).await;
    assert_eq!(
        peer.texts("chat"),
        ["Janus EchoTest here! You wrote: hello"]
    );
}

#[tokio::test]
async fn a_hangup_closes_the_clients_connection_and_a_new_one_works() {
    let server = Server::start(2, Arc::new(EchoTest));
    let (mut caller, mut peer) = connect(&server).await;
    echo(&mut peer, 0, b"opus").await;
    assert_eq!(
        caller.request("hangup", json!({})).await["janus"],
        "success"
    );
    caller.until("/plugindata/data/result", "done").await;
    assert_eq!(caller.next().await["reason"], "Janus API");
    let closed = TransportEvent::Closed;
    peer.run_until(|peer| peer.events.contains(&closed)).await;

    let mut peer = Peer::offering().await;
    let offer = peer.offer(description(&ALL));
    caller
        .message(json!({ "video": true }), Some(("offer", &offer)))
        .await;
    let event = caller.next().await;
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    echo(&mut peer, 0, b"again").await;
}

#[tokio::test]
async fn a_client_that_closes_is_hung_up() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (mut caller, mut peer) = connect(&server).await;
    peer.connection.transport.close();
    let mut turns = 0;
    peer.run_until(|_| {
        turns += 1;
        turns > 5
    })
    .await;
    assert_eq!(
        caller.until("/janus", "hangup").await["reason"],
        "DTLS alert"
    );
}

#[tokio::test]
async fn muted_media_does_not_come_back() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (mut caller, mut peer) = connect(&server).await;
    echo(&mut peer, 0, b"opus").await;
    caller.message(json!({ "audio": false }), None).await;
    caller.until("/plugindata/data/result", "ok").await;
    // Messages after a configuring one are relayed after it took effect.
    for n in 0..20 {
        peer.send(0, n * 960, b"muted").await;
    }
    peer.send_text("chat", "fence");
    peer.run_until(|peer| !peer.texts("chat").is_empty()).await;
    assert!(!peer.packets.iter().any(|packet| packet.payload == b"muted"));
    caller.message(json!({ "audio": true }), None).await;
    echo(&mut peer, 0, b"opus").await;
}

#[tokio::test]
async fn ice_restarts_without_a_break() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (mut caller, mut peer) = connect(&server).await;
    echo(&mut peer, 0, b"before").await;
    let offer = peer.restart(description(&ALL));
    caller.message(json!({}), Some(("offer", &offer))).await;
    let answer = caller.until("/plugindata/data/result", "ok").await;
    peer.events.clear();
    peer.accept(answer["jsep"]["sdp"].as_str().unwrap());
    let done = TransportEvent::Ice(IceState::Completed);
    peer.run_until(|peer| peer.events.contains(&done)).await;
    echo(&mut peer, 0, b"after").await;
}

#[tokio::test]
async fn lines_are_added_and_removed() {
    let server = Server::start(1, Arc::new(EchoTest));
    let mut caller = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    for kinds in [&ALL[..1], &ALL[..2], &ALL] {
        let offer = peer.offer(description(kinds));
        caller.message(json!({}), Some(("offer", &offer))).await;
        let answer = caller.until("/plugindata/data/result", "ok").await;
        peer.accept(answer["jsep"]["sdp"].as_str().unwrap());
        peer.connect().await;
        echo(&mut peer, 0, b"opus").await;
        if kinds.len() > 1 {
            echo(&mut peer, 1, &KEYFRAME).await;
        }
    }
    peer.run_until(|peer| !peer.events.is_empty()).await;
    peer.send_text("chat", "hello");
    peer.run_until(|peer| !peer.texts("chat").is_empty()).await;
    let offer = peer.offer(description(&ALL[..1]));
    caller.message(json!({}), Some(("offer", &offer))).await;
    let answer = caller.until("/plugindata/data/result", "ok").await;
    peer.accept(answer["jsep"]["sdp"].as_str().unwrap());
    assert!(peer.negotiated().media[1].disabled);
    echo(&mut peer, 0, b"opus").await;
}
