//! Calls whose signalling is left to the client. Codes and texts of errors: `plugins/nosip/tests`.

use portunus_core::record::Recorder;
use portunus_nosip::{NoSip, NoSipConfig};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Caller, Peer, Server};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.nosip";

const FAR: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
                   m=audio 9 RTP/SAVP 0\r\n\
                   a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\r\n";

fn result<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    object([("nosip", is("event")), ("result", object(members))])
}

fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio.add_codec(CodecName::Pcmu, None, None);
    Description::offer(OfferOptions {
        media: vec![audio],
        ..OfferOptions::default()
    })
}

async fn ask(client: &mut Caller, body: Value, jsep: Option<(&str, &str)>) -> Value {
    client.message(body, jsep).await;
    client.until("/janus", "event").await
}

fn check(event: &Value, shape: &Shape) {
    shape.check(&event["plugindata"]["data"]);
}

fn jsep(kind: &'static str) -> Shape {
    object([("type", is(kind)), ("sdp", Shape::Begins("v=0"))])
}

#[tokio::test]
async fn a_call_is_told_from_its_start_to_its_end() {
    let config = NoSipConfig {
        local_ip: Some("127.0.0.1".to_owned()),
        public: true,
        ..NoSipConfig::default()
    };
    let (server, mut watcher) = Server::watched::<NoSip>(config, Recorder::default()).await;
    let mut client = server.attach(PACKAGE).await;
    let mut peer = Peer::answering().await;
    // The far end calls.
    let process = json!({ "request": "process", "type": "offer", "sdp": FAR });
    let event = ask(&mut client, process, None).await;
    let unique = event["plugindata"]["data"]["result"]["unique_id"].clone();
    let processed = [
        ("event", is("processed")),
        ("srtp", is("sdes_mandatory")),
        ("unique_id", is(unique.clone())),
    ];
    check(&event, &result(processed));
    jsep("offer").check(&event["jsep"]);
    let told = |name: &'static str, kind: &'static str| {
        object([
            ("event", is(name)),
            ("type", is(kind)),
            ("sdp", Shape::Begins("v=0")),
            ("unique_id", is(unique.clone())),
        ])
    };
    told("processed", "offer").check(&watcher.told(PACKAGE, Some(&client)).await);
    let answer = peer.answer(event["jsep"]["sdp"].as_str().unwrap());
    let generate = json!({ "request": "generate" });
    let event = ask(&mut client, generate.clone(), Some(("answer", &answer))).await;
    let generated = |kind: &'static str| {
        object([
            ("event", is("generated")),
            ("type", is(kind)),
            ("sdp", Shape::Begins("v=0")),
            ("unique_id", is(unique.clone())),
        ])
    };
    let of = |shape: Shape| object([("nosip", is("event")), ("result", shape)]);
    check(&event, &of(generated("answer")));
    told("generated", "answer").check(&watcher.told(PACKAGE, Some(&client)).await);

    let state = server.state(&client).await;
    let expected = [
        ("unique_id", is(unique.clone())),
        ("srtp-required", Shape::Text),
        ("sdes-local", is("yes")),
        ("sdes-remote", is("yes")),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
    ];
    for (member, shape) in expected {
        assert!(shape.fits(&state[member]), "{member}: {state}");
    }
    assert!(state["legs"]["audio"].is_object(), "{state}");

    // The client changes the call.
    let sdp = peer.offer(description());
    let event = ask(&mut client, generate, Some(("offer", &sdp))).await;
    check(&event, &of(generated("offer").and([("update", is(true))])));
    let process =
        json!({ "request": "process", "type": "answer", "sdp": FAR.replace("o=- 1 1", "o=- 1 2") });
    let event = ask(&mut client, process, None).await;
    let processed = [
        ("event", is("processed")),
        ("update", is(true)),
        ("srtp", is("sdes_mandatory")),
        ("unique_id", is(unique)),
    ];
    check(&event, &result(processed));
    jsep("answer").check(&event["jsep"]);

    let forward = json!({ "request": "rtp_forward", "streams": [
        { "type": "peer_audio", "host": "127.0.0.1", "port": 11, "pt": 8, "ssrc": 7,
          "srtp_suite": 32, "srtp_crypto": "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj" },
    ] });
    let forwarder = object([
        ("stream_id", Shape::Count),
        ("type", is("peer_audio")),
        ("host", is("127.0.0.1")),
        ("port", is(11)),
        ("media", is("audio")),
        ("pt", is(8)),
        ("ssrc", is(7)),
        ("srtp", is(true)),
    ]);
    let forwarded = [
        ("event", is("rtp_forward")),
        ("forwarders", list([forwarder.clone()])),
    ];
    let event = ask(&mut client, forward, None).await;
    check(&event, &result(forwarded.clone()));
    object(forwarded).check(&watcher.told(PACKAGE, Some(&client)).await);
    let stream = event["plugindata"]["data"]["result"]["forwarders"][0]["stream_id"].clone();
    let listed = [
        ("event", is("forwarders")),
        ("rtp_forwarders", list([forwarder])),
    ];
    let event = ask(&mut client, json!({ "request": "listforwarders" }), None).await;
    check(&event, &result(listed));
    let stop = json!({ "request": "stop_rtp_forward", "stream_id": stream });
    let stopped = [("event", is("stop_rtp_forward")), ("stream_id", is(stream))];
    check(
        &ask(&mut client, stop, None).await,
        &result(stopped.clone()),
    );
    object(stopped).check(&watcher.told(PACKAGE, Some(&client)).await);

    for (request, event) in [
        (
            json!({ "request": "keyframe", "user": true, "peer": true }),
            "keyframesent",
        ),
        (
            json!({ "request": "recording", "action": "stop", "audio": true }),
            "recordingupdated",
        ),
        (json!({ "request": "hangup" }), "hangingup"),
    ] {
        check(
            &ask(&mut client, request, None).await,
            &result([("event", is(event))]),
        );
    }
    client.until("/janus", "hangup").await;
    let error = object([
        ("nosip", is("event")),
        ("error_code", is(442)),
        ("error", is("Unknown request (dance)")),
    ]);
    check(
        &ask(&mut client, json!({ "request": "dance" }), None).await,
        &error,
    );
    watcher.expect_silence();
}
