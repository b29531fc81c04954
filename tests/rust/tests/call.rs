//! A video call, end to end: two clients on two workers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use portunus_videocall::VideoCall;
use serde_json::{Value, json};

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Opus, None, None);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendRecv);
    video.add_codec(CodecName::Vp8, None, None);
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    let media = vec![audio, video, data];
    Description::offer(OfferOptions {
        media,
        ..Default::default()
    })
}

async fn register(server: &Server, name: &str) -> Caller {
    let mut caller = server.attach("janus.plugin.videocall").await;
    caller
        .message(json!({ "request": "register", "username": name }), None)
        .await;
    result(&mut caller, "registered").await;
    caller
}

/// Returns the plugin's next message about `event`.
async fn result(caller: &mut Caller, event: &str) -> Value {
    caller.until("/plugindata/data/result/event", event).await
}

fn sdp(message: &Value) -> &str {
    message["jsep"]["sdp"].as_str().expect("a description")
}

struct Call {
    _server: Server,
    al: Caller,
    bo: Caller,
    caller: Peer,
    callee: Peer,
}

async fn call(workers: usize) -> Call {
    let server = Server::start(workers, Arc::new(VideoCall::default()));
    let (mut al, mut bo) = (register(&server, "al").await, register(&server, "bo").await);
    let (mut caller, mut callee) = (Peer::offering().await, Peer::answering().await);
    let offer = caller.offer(description());
    al.message(
        json!({ "request": "call", "username": "bo" }),
        Some(("offer", &offer)),
    )
    .await;
    let incoming = result(&mut bo, "incomingcall").await;
    let answer = callee.answer(sdp(&incoming));
    bo.message(json!({ "request": "accept" }), Some(("answer", &answer)))
        .await;
    let accepted = result(&mut al, "accepted").await;
    caller.accept(sdp(&accepted));
    tokio::join!(caller.connect(), callee.connect());
    // The server's sides may still wait for the response to the last check.
    tokio::select! {
        () = caller.run_until(|_| false) => {}
        () = callee.run_until(|_| false) => {}
        () = async {
            al.until("/janus", "webrtcup").await;
            bo.until("/janus", "webrtcup").await;
        } => {}
    }
    Call {
        _server: server,
        al,
        bo,
        caller,
        callee,
    }
}

/// Lets both sides send and receive a little.
async fn few_turns(a: &mut Peer, b: &mut Peer) {
    let few = || {
        let mut turns = 0;
        move |_: &mut Peer| {
            turns += 1;
            turns > 3
        }
    };
    tokio::join!(a.run_until(few()), b.run_until(few()));
}

/// Sends on m-line `media` until the other side receives it.
async fn relay(from: &mut Peer, to: &mut Peer, media: usize, payload: &[u8]) {
    to.packets.clear();
    for n in 0..200 {
        from.send(media, n * 960, payload).await;
        few_turns(from, to).await;
        if to
            .packets
            .iter()
            .any(|packet| packet.media == media && packet.payload == payload)
        {
            return;
        }
    }
    panic!("nothing came through: {:?}", to.packets);
}

#[tokio::test]
async fn media_and_data_cross_between_two_workers() {
    let Call {
        _server,
        caller: mut al,
        callee: mut bo,
        ..
    } = call(2).await;
    relay(&mut al, &mut bo, 0, b"from al").await;
    relay(&mut bo, &mut al, 0, b"from bo").await;
    relay(&mut al, &mut bo, 1, &KEYFRAME).await;
    relay(&mut bo, &mut al, 1, &KEYFRAME).await;
    // Each side opens its channel with its first message. Messages before the other side's first
    // one are lost.
    let heard = |peer: &Peer, text: &str| peer.texts("chat").contains(&text);
    for _ in 0..200 {
        al.send_text("chat", "hello");
        bo.send_text("chat", "hi");
        few_turns(&mut al, &mut bo).await;
        if heard(&al, "hi") && heard(&bo, "hello") {
            return;
        }
    }
    panic!("al heard {:?}, bo {:?}", al.texts("chat"), bo.texts("chat"));
}

#[tokio::test]
async fn a_hangup_closes_both_connections() {
    let mut call = call(2).await;
    call.bo.message(json!({ "request": "hangup" }), None).await;
    assert_eq!(
        result(&mut call.bo, "hangup").await["plugindata"]["data"]["result"]["reason"],
        "Explicit hangup"
    );
    let told = result(&mut call.al, "hangup").await;
    assert_eq!(
        told["plugindata"]["data"]["result"]["reason"],
        "We did the hangup"
    );
    let closed = portunus_rtc::TransportEvent::Closed;
    let gone = |peer: &mut Peer| peer.events.contains(&closed);
    tokio::join!(call.caller.run_until(gone), call.callee.run_until(gone));
    for caller in [&mut call.al, &mut call.bo] {
        assert_eq!(caller.until("/janus", "hangup").await["reason"], "Close PC");
    }
}
