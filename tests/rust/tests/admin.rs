//! The information about a real call for administrators, member by member, captures of it, and the
//! cost of requests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_admin::{AdminOptions, Administration};
use portunus_core::{Client, Requester};
use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.echotest";

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];

async fn call(server: &Server) -> (Caller, Peer) {
    let media = [Kind::Audio, Kind::Video, Kind::Data].map(|kind| {
        let mut media = MediaOffer::new(kind, Direction::SendRecv);
        match kind {
            Kind::Audio => media.add_codec(CodecName::Opus, None, None),
            Kind::Video => media.add_codec(CodecName::Vp8, None, None),
            Kind::Data => {}
        }
        media
    });
    let description = Description::offer(OfferOptions {
        media: media.into(),
        ..Default::default()
    });
    let mut caller = server.attach(PACKAGE).await;
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description);
    caller
        .message(json!({ "audio": true }), Some(("offer", &offer)))
        .await;
    let event = caller.next().await;
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    (caller, peer)
}

async fn ask(server: &Server, verb: &str, caller: &Caller, members: Value) -> Value {
    let client = Client::polled("test").on_behalf_of(Requester::unix());
    let mut request = json!({ "janus": verb, "transaction": "t", "session_id": caller.session,
        "handle_id": caller.handle });
    let all = request.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    administration(server).request_value(&client, request).await
}

async fn info(server: &Server, caller: &Caller) -> Value {
    let reply = ask(server, "handle_info", caller, json!({})).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    reply["info"].clone()
}

/// Fails if a member is missing. Names are paths.
fn has(value: &Value, paths: &[&str]) {
    for path in paths {
        let found = value.pointer(&format!("/{path}"));
        assert!(found.is_some_and(|it| !it.is_null()), "{path} in {value:#}");
    }
}

#[tokio::test]
async fn a_call_has_every_member() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (caller, mut peer) = call(&server).await;
    // Until the first second is over, and includes what was sent.
    let mut told = json!({});
    for n in 0..400 {
        peer.send(0, n * 960, &[1, 2, 3]).await;
        peer.send(1, n * 3_000, &KEYFRAME).await;
        peer.run_for(Duration::from_millis(20)).await;
        told = info(&server, &caller).await;
        let series = told.pointer("/webrtc/series/bitrate_in").unwrap();
        if series
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it.as_u64() > Some(0))
        {
            break;
        }
    }
    peer.send_text("chat", "hello");
    peer.run_for(Duration::from_millis(100)).await;
    let told_after = info(&server, &caller).await;
    has(
        &told,
        &[
            "session_id",
            "session_last_activity",
            "session_timeout",
            "session_transport",
            "handle_id",
            "loop-running",
            "created",
            "current_time",
            "plugin",
            "plugin_specific",
            "flags",
            "agent-created",
            "agent-started",
            "ice-mode",
            "ice-role",
            "sdps/profile",
            "sdps/local",
            "sdps/remote",
            "queued-packets",
            "diagnosis",
        ],
    );
    let webrtc = &told["webrtc"];
    has(
        webrtc,
        &[
            "ice/stream_id",
            "ice/component_id",
            "ice/state",
            "ice/gathered",
            "ice/connected",
            "ice/local-candidates/0",
            "ice/remote-candidates/0",
            "ice/selected-pair",
            "ice/ready",
            "dtls/fingerprint",
            "dtls/remote-fingerprint",
            "dtls/remote-fingerprint-hash",
            "dtls/dtls-role",
            "dtls/dtls-state",
            "dtls/retransmissions",
            "dtls/valid",
            "dtls/srtp-profile",
            "dtls/ready",
            "dtls/handshake-started",
            "dtls/connected",
            "dtls/sctp-association",
            "dtls/stats/in/packets",
            "dtls/stats/in/bytes",
            "dtls/stats/out/packets",
            "dtls/stats/out/bytes",
            "extensions",
            "bwe/twcc",
            "pairs/0/local/port",
            "pairs/0/remote/type",
            "pairs/0/state",
            "datagrams/received",
            "series/age/0",
            "series/loss_in/0",
        ],
    );
    assert_eq!(webrtc["ice"]["ready"], 1);
    assert_eq!(webrtc["dtls"]["dtls-state"], "connected");
    assert_eq!(webrtc["dtls"]["sctp-association"], true);
    assert_eq!(told["flags"]["ready"], true);
    let at = |path: &str| told.pointer(path).and_then(Value::as_u64).unwrap();
    assert!(at("/created") <= at("/agent-created"));
    assert!(at("/agent-created") <= at("/webrtc/ice/connected"));
    assert!(at("/webrtc/ice/connected") <= at("/webrtc/dtls/connected"));
    assert!(at("/webrtc/dtls/connected") <= at("/current_time"));
    let pair = webrtc["ice"]["selected-pair"].as_str().unwrap();
    assert!(
        pair.contains("[host,udp] <-> ") && pair.ends_with(",udp]"),
        "{pair}"
    );
    let media = webrtc["media"].as_object().unwrap();
    assert_eq!(media.len(), 3);
    for (place, kind) in ["audio", "video"].into_iter().enumerate() {
        let line = media.values().find(|line| line["type"] == kind).unwrap();
        assert_eq!(line["mindex"], place);
        has(
            line,
            &[
                "mid",
                "do_nacks",
                "nack-queue-ms",
                "ssrc/ssrc",
                "ssrc/ssrc-peer",
                "direction/send",
                "direction/recv",
                "codecs/pt",
                "codecs/codec",
                "rtcp/main/base",
                "rtcp/main/rtt",
                "rtcp/main/lost",
                "rtcp/main/lost-by-remote",
                "rtcp/main/jitter-local",
                "rtcp/main/jitter-remote",
                "rtcp/main/in-link-quality",
                "rtcp/main/in-media-link-quality",
                "rtcp/main/out-link-quality",
                "rtcp/main/out-media-link-quality",
                "stats/in/packets",
                "stats/in/bytes",
                "stats/in/bytes_lastsec",
                "stats/out/packets",
                "stats/out/bytes",
                "stats/out/bytes_lastsec",
                "stats/out/nacks",
                "received/0/packets",
                "sent/packets",
            ],
        );
        assert!(
            line["stats"]["in"]["packets"].as_u64() > Some(0),
            "{line:#}"
        );
        assert!(
            line["stats"]["out"]["packets"].as_u64() > Some(0),
            "{line:#}"
        );
    }
    let data = told_after["webrtc"]["media"].as_object().unwrap().values();
    let data = data.clone().find(|line| line["type"] == "data").unwrap();
    let members: Vec<&str> = data
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, ["type", "mindex", "mid", "stats"]);
    assert_eq!(data["stats"]["in"]["packets"], 1);
    let overview = json!({ "janus": "overview", "transaction": "t" });
    let client = Client::polled("test").on_behalf_of(Requester::unix());
    let reply = administration(&server)
        .request_value(&client, overview)
        .await;
    let handle = &reply["sessions"][0]["handles"][0];
    assert_eq!(handle["connection"], "connected", "{reply}");
    has(
        handle,
        &["bitrate_in", "bitrate_out", "loss_in", "loss_out"],
    );
    let workers = json!({ "janus": "workers_info", "transaction": "t" });
    let reply = administration(&server)
        .request_value(&client, workers)
        .await;
    assert_eq!(reply["workers"][0]["peers"], 1, "{reply}");
}

#[tokio::test]
async fn asking_of_a_call_is_cheap() {
    let server = Server::start(1, Arc::new(EchoTest));
    let (caller, _peer) = call(&server).await;
    let client = Client::polled("test").on_behalf_of(Requester::unix());
    let request = json!({ "janus": "handle_info", "transaction": "t", "session_id": caller.session,
        "handle_id": caller.handle })
    .to_string();
    let start = Instant::now();
    for _ in 0..1_000 {
        let reply = administration(&server)
            .request(&client, request.as_bytes())
            .await;
        assert!(reply.to_string().len() > 1_000);
    }
    // The time without optimization on a busy machine says little, but a gross mistake would show.
    println!("1000 handle_info: {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20));
}

fn administration(server: &Server) -> Administration {
    Administration::new(server.gateway.clone(), AdminOptions::default())
}
