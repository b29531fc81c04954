//! Calls between clients and far ends.

use portunus_core::Networks;
use portunus_core::events::EventFilter;
use portunus_core::media::leg::{LegEvent, LegGates, LegNews};
use portunus_core::testing::{Line, TestServer, everywhere, jsep};
use portunus_nosip::NoSipConfig;
use serde_json::{Value, json};

use crate::support::{
    BOTH, OPUS, PACKAGE, called, far, gates, offer, process, refusal, result, server, server_in,
    state,
};

#[tokio::test]
async fn a_client_calls_a_far_end() {
    let server = server();
    let watcher = server.watch(EventFilter::ALL);
    let mut client = server.attach(PACKAGE).await;
    let generate = json!({ "request": "GENERATE", "info": "x", "update": false });
    let generated = result(&mut client, generate, offer(&BOTH), "generated").await;
    let id = generated["unique_id"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &generated["type"]), (36, &json!("offer")));
    assert!(generated.get("update").is_none());
    let sdp = generated["sdp"].as_str().unwrap();
    let port = |kind: &str| -> u16 {
        let line = sdp.lines().find(|line| line.starts_with(kind)).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert!(port("m=audio").is_multiple_of(2) && port("m=audio") != port("m=video"));
    assert!(
        sdp.contains("RTP/AVP 111\r\nc=IN IP4 127.0.0.1\r\na=sendrecv\r\n"),
        "{sdp}"
    );
    // Nothing flows before the answer.
    assert!(
        server
            .requested()
            .legs
            .iter()
            .all(|leg| leg.remote.is_none())
    );

    let processed = {
        client.message(process("answer", &far(OPUS, 0)), None).await;
        let (processed, answer) = client.event_with_jsep().await;
        let answer = answer.unwrap();
        let text = answer["sdp"].as_str().unwrap();
        assert!(
            text.contains("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"),
            "{text}"
        );
        assert!(text.contains("m=video 0 "), "{text}");
        processed
    };
    let expected = json!({ "event": "processed", "unique_id": id });
    assert_eq!(processed, json!({ "nosip": "event", "result": expected }));
    let requested = server.requested();
    let audio = &requested.legs[0];
    let remote = audio.remote.as_ref().unwrap();
    assert_eq!(remote.rtp.unwrap().to_string(), "127.0.0.1:6000");
    assert_eq!(remote.rtcp_address().unwrap().port(), 6001);
    assert!(!remote.latching && remote.srtp.is_none());
    assert_eq!(audio.gates, LegGates::OPEN);
    let (from, _) = audio.from.as_ref().unwrap();
    assert_eq!(from.track().unwrap().mid.as_str(), "0");
    assert_eq!(requested.routes.len(), 1);
    // Video was not taken: its port waits.
    assert!(requested.legs[1].remote.is_none());

    let told: Vec<Value> = std::iter::from_fn(|| watcher.try_recv())
        .filter(|event| event.address.plugin == Some(PACKAGE))
        .map(|event| event.body()["data"].clone())
        .filter(|data| data["event"].is_string())
        .collect();
    let names: Vec<&Value> = told.iter().map(|data| &data["event"]).collect();
    assert_eq!(names, ["generated", "processed"]);
    assert!(
        told.iter()
            .all(|data| data["unique_id"] == id.as_str() && data["sdp"].is_string())
    );

    let state = state(&server, &client).await;
    assert_eq!(state["unique_id"], id.as_str());
    for key in ["srtp-required", "sdes-local", "sdes-remote"] {
        assert_eq!(state[key], "no", "{key}");
    }
    assert_eq!(state["legs"]["audio"]["codecs"], json!(["opus"]));

    // The end: the client gets an event, and the ports are released.
    let ended = result(
        &mut client,
        json!({ "request": "hangup" }),
        None,
        "hangingup",
    )
    .await;
    assert_eq!(ended, json!({ "event": "hangingup" }));
    let hangup = client.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    assert!(server.requested().legs.is_empty());
    result(
        &mut client,
        json!({ "request": "hangup" }),
        None,
        "hangingup",
    )
    .await;
    client.expect_silence().await;
}

#[tokio::test]
async fn a_far_end_calls_a_client_and_changes_the_call() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    for _ in 0..2 {
        client.message(process("Offer", &far(OPUS, 0)), None).await;
        let (processed, jsep) = client.event_with_jsep().await;
        assert_eq!(processed["result"]["event"], "processed", "{processed}");
        let jsep = jsep.unwrap();
        assert_eq!(jsep["type"], "offer");
        let text = jsep["sdp"].as_str().unwrap();
        assert!(
            text.contains("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"),
            "{text}"
        );
    }
    let answer = |ufrag| Some(jsep("answer", ufrag, &[Line::Audio]));
    let generate = json!({ "request": "generate" });
    let generated = result(&mut client, generate.clone(), answer("bbbb"), "generated").await;
    assert_eq!(generated["type"], "answer");
    assert!(generated.get("update").is_none());
    let sdp = generated["sdp"].as_str().unwrap();
    assert!(
        sdp.contains(" RTP/AVP 111\r\n") && !sdp.contains("red"),
        "{sdp}"
    );
    assert_eq!(server.requested().legs[0].gates, LegGates::OPEN);

    // The far end moves, and holds.
    let held = format!("{}a=sendonly\r\n", far("6010 RTP/AVP 111", 0));
    client.message(process("offer", &held), None).await;
    let (processed, jsep) = client.event_with_jsep().await;
    assert_eq!(processed["result"]["update"], true, "{processed}");
    assert!(
        jsep.unwrap()["sdp"]
            .as_str()
            .unwrap()
            .contains("a=sendonly")
    );
    let generated = result(&mut client, generate, answer("bbbb"), "generated").await;
    assert_eq!(generated["update"], true);
    let requested = server.requested();
    assert_eq!(requested.legs.len(), 1);
    let leg = &requested.legs[0];
    assert_eq!(leg.remote.as_ref().unwrap().rtp.unwrap().port(), 6010);
    assert_eq!((leg.gates.send, leg.gates.receive), (false, true));
    assert_eq!(requested.routes.len(), 1);
}

#[tokio::test]
async fn a_client_adds_video() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let generate = json!({ "request": "generate" });
    let first = result(
        &mut client,
        generate.clone(),
        offer(&[Line::Audio]),
        "generated",
    )
    .await;
    client.message(process("answer", &far(OPUS, 0)), None).await;
    client.event_with_jsep().await;
    let again = result(&mut client, generate, offer(&BOTH), "generated").await;
    assert_eq!(again["update"], true);
    let port = |generated: &Value, kind: &str| {
        let sdp = generated["sdp"].as_str().unwrap().to_owned();
        let line = sdp
            .lines()
            .find(|line| line.starts_with(kind))
            .unwrap()
            .to_owned();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(port(&first, "m=audio"), port(&again, "m=audio"));
    client
        .message(process("answer", &far(OPUS, 6002)), None)
        .await;
    let (processed, _) = client.event_with_jsep().await;
    assert_eq!(processed["result"]["update"], true, "{processed}");
    let requested = server.requested();
    assert_eq!((requested.legs.len(), requested.routes.len()), (2, 2));
    assert!(requested.legs.iter().all(|leg| leg.remote.is_some()));
    assert_eq!(gates(&requested), [LegGates::OPEN; 2]);
}

#[tokio::test]
async fn srtp_is_agreed_on_as_both_sides_want() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let generate = json!({ "request": "generate", "srtp": "sdes_mandatory", "srtp_profile": "AEAD_AES_128_GCM" });
    let generated = result(&mut client, generate, offer(&[Line::Audio]), "generated").await;
    let sdp = generated["sdp"].as_str().unwrap();
    assert!(sdp.contains(" RTP/SAVP 111\r\n"), "{sdp}");
    assert_eq!(
        sdp.matches("a=crypto:1 AEAD_AES_128_GCM inline:").count(),
        1,
        "{sdp}"
    );
    let plain = refusal(&mut client, process("answer", &far(OPUS, 0)), None).await;
    let text = "Can't process request: SDES-SRTP required, but caller didn't offer it";
    assert_eq!(plain, (450, text.to_owned()));
    let key = "A".repeat(38);
    let crypto = format!("a=crypto:1 AEAD_AES_128_GCM inline:{key}==\r\n");
    let sealed = format!("{}{crypto}", far("6000 RTP/SAVP 111", 0));
    client.message(process("answer", &sealed), None).await;
    let (processed, _) = client.event_with_jsep().await;
    assert_eq!(processed["result"]["srtp"], "sdes_mandatory", "{processed}");
    let requested = server.requested();
    assert!(requested.legs[0].remote.as_ref().unwrap().srtp.is_some());
    let state = state(&server, &client).await;
    for key in ["srtp-required", "sdes-local", "sdes-remote"] {
        assert_eq!(state[key], "yes", "{key}: {state}");
    }
    // An offer of the far end without keys cannot be answered with SRTP.
    let mut callee = server.attach(PACKAGE).await;
    callee.message(process("offer", &far(OPUS, 0)), None).await;
    callee.event_with_jsep().await;
    let answer = Some(jsep("answer", "bbbb", &[Line::Audio]));
    let generate = json!({ "request": "generate", "srtp": "sdes_mandatory" });
    let text = "Can't generate answer: SDES-SRTP required, but caller didn't offer it";
    assert_eq!(
        refusal(&mut callee, generate, answer).await,
        (450, text.to_owned())
    );
    // An unusable key leads to a reason.
    let mki = format!("{}{}", far(OPUS, 0), crypto.replace("==", "==|2^20|1:4"));
    let mut request = process("offer", &mki);
    request["srtp"] = json!("sdes_mandatory");
    let (code, text) = refusal(&mut callee, request, None).await;
    assert_eq!(code, 450);
    assert!(
        text.ends_with("(tag 1: a key with an identifier (MKI))"),
        "{text}"
    );
}

#[tokio::test]
async fn forwarders_begin_with_the_call_and_end_with_it() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let streams = json!([
        { "type": "peer_video", "host": "127.0.0.1", "port": 5004, "pt": 100, "ssrc": 7 },
        { "type": "audio", "host": "localhost", "port": 5006, "srtp_suite": 80, "srtp_crypto": "A".repeat(40) },
    ]);
    let forward = json!({ "request": "rtp_forward", "streams": streams });
    let forwarded = result(&mut client, forward, None, "rtp_forward").await;
    let forwarders = forwarded["forwarders"].as_array().unwrap();
    let id = forwarders[0]["stream_id"].as_u64().unwrap();
    assert_eq!(
        forwarders[0],
        json!({ "stream_id": id, "type": "peer_video", "host": "127.0.0.1", "port": 5004,
                "media": "video", "pt": 100, "ssrc": 7 })
    );
    assert_eq!(forwarders[1]["host"], "127.0.0.1");
    assert_eq!(forwarders[1]["srtp"], true);
    assert!(server.requested().outlets.is_empty());
    result(
        &mut client,
        json!({ "request": "generate" }),
        offer(&BOTH),
        "generated",
    )
    .await;
    client
        .message(process("answer", &far(OPUS, 6002)), None)
        .await;
    client.event_with_jsep().await;
    let requested = server.requested();
    assert_eq!(requested.outlets.len(), 2);
    let listed = result(
        &mut client,
        json!({ "request": "listforwarders" }),
        None,
        "forwarders",
    )
    .await;
    assert_eq!(listed["rtp_forwarders"], forwarded["forwarders"]);
    let stop = json!({ "request": "stop_rtp_forward", "stream_id": id });
    let stopped = result(&mut client, stop, None, "stop_rtp_forward").await;
    assert_eq!(stopped["stream_id"], id);
    assert_eq!(server.requested().outlets.len(), 1);
    result(
        &mut client,
        json!({ "request": "hangup" }),
        None,
        "hangingup",
    )
    .await;
    assert_eq!(client.next().await["janus"], "hangup");
    assert!(server.requested().outlets.is_empty());
    let listed = result(
        &mut client,
        json!({ "request": "listforwarders" }),
        None,
        "forwarders",
    )
    .await;
    assert_eq!(listed["rtp_forwarders"], json!([]));
}

#[tokio::test]
async fn a_far_end_that_takes_nothing_ends_the_call() {
    let server = server();
    let mut client = called(&server).await;
    result(
        &mut client,
        json!({ "request": "keyframe", "user": true, "peer": true }),
        None,
        "keyframesent",
    )
    .await;
    let leg = server.requested().legs[0].clone();
    let failed = LegNews {
        leg: leg.id,
        event: LegEvent::Failed,
    };
    leg.new.tell.send(failed).await.unwrap();
    let hangup = client.next().await;
    assert_eq!(hangup["janus"], "hangup", "{hangup}");
    drop(leg);
    assert!(server.requested().legs.is_empty());
    assert_eq!(counted(&server), [("begun_calls", 1), ("lost_calls", 1)]);
    // The handle can call again.
    result(
        &mut client,
        json!({ "request": "generate" }),
        offer(&BOTH),
        "generated",
    )
    .await;
}

/// The metrics that are not 0.
fn counted(server: &TestServer) -> Vec<(&'static str, u64)> {
    let (gauges, counters) = (
        server.gateway.plugin_gauges(),
        server.gateway.plugin_counters(),
    );
    let all = gauges.into_iter().chain(counters);
    let all = all.map(|(plugin, number)| {
        assert_eq!(plugin, "nosip");
        (number.name, number.value)
    });
    all.filter(|(_, value)| *value > 0).collect()
}

#[tokio::test]
async fn calls_and_refusals_are_counted() {
    let server = server_in(
        Networks(vec!["127.0.0.0/8".parse().unwrap()]),
        NoSipConfig {
            local_ip: Some("127.0.0.1".to_owned()),
            ..NoSipConfig::default()
        },
    );
    let mut client = called(&server).await;
    let running = [("calls", 1), ("answered_calls", 1), ("begun_calls", 1)];
    assert_eq!(counted(&server), running);
    let hangup = json!({ "request": "hangup" });
    result(&mut client, hangup, None, "hangingup").await;
    assert_eq!(counted(&server), [("begun_calls", 1)]);
    let elsewhere = far(OPUS, 0).replace("127.0.0.1", "10.1.2.3");
    let mut strict = process("offer", &far(OPUS, 0));
    strict["srtp"] = json!("sdes_mandatory");
    let mut other = server.attach(PACKAGE).await;
    for (body, code) in [
        (process("offer", "nonsense"), 446),
        (process("offer", &elsewhere), 447),
        (strict, 450),
    ] {
        assert_eq!(refusal(&mut other, body, None).await.0, code);
    }
    let refused = [
        ("begun_calls", 1),
        ("refused_descriptions", 1),
        ("refused_addresses", 1),
        ("refused_srtp", 1),
    ];
    assert_eq!(counted(&server), refused);
    // An offer that nobody has answered yet is a call, and ends with its handle.
    let offered = json!({ "request": "generate" });
    result(&mut other, offered, offer(&BOTH), "generated").await;
    assert_eq!(counted(&server)[..2], [("calls", 1), ("begun_calls", 2)]);
}

#[tokio::test]
async fn a_far_end_of_another_family_of_addresses_is_refused_or_answered_by_that() {
    let by_ipv6 = far(OPUS, 0).replace("IN IP4 127.0.0.1", "IN IP6 ::1");
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let (code, text) = refusal(&mut client, process("offer", &by_ipv6), None).await;
    assert_eq!(code, 447, "{text}");
    assert!(text.starts_with("::1 "), "{text}");

    let server = server_in(everywhere(), NoSipConfig::default());
    let mut client = server.attach(PACKAGE).await;
    client.message(process("offer", &by_ipv6), None).await;
    client.event_with_jsep().await;
    let answer = Some(jsep("answer", "aaaa", &[Line::Audio]));
    let generate = json!({ "request": "generate" });
    let generated = result(&mut client, generate, answer, "generated").await;
    let sdp = generated["sdp"].as_str().unwrap();
    assert!(
        sdp.contains("c=IN IP6 ::1\r\n") && !sdp.contains("IP4"),
        "{sdp}"
    );
}
