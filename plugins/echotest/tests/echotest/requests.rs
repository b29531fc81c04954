//! Requests, answers, refusals, and the end.

use portunus_core::events::{EventFilter, EventKind};
use portunus_core::media::{CloseReason, Event};
use portunus_core::testing::{Line, TestClient, jsep};
use portunus_echotest::EchoTest;
use serde_json::json;

use crate::world::{LINES, PACKAGE, call, ok, server, state};

#[tokio::test]
async fn every_setting_is_taken() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    for body in [
        json!({ "audio": false }),
        json!({ "video": false }),
        json!({ "video": true, "request": "anything", "unknown": [1] }),
        json!({ "bitrate": 0 }),
        json!({ "bitrate": 512_000 }),
        json!({ "substream": 0 }),
        json!({ "temporal": 2 }),
        json!({ "fallback": 0 }),
        json!({ "spatial_layer": 1 }),
        json!({ "temporal_layer": 1 }),
        json!({ "videocodec": "vp9" }),
        json!({ "videoprofile": "2" }),
        json!({ "opusred": true }),
        json!({ "min_delay": 10 }),
        json!({ "max_delay": -1 }),
        json!({ "record": false }),
    ] {
        client.message(body.clone(), None).await;
        assert_eq!(client.event_with_jsep().await, (ok(), None), "{body}");
    }
    client.expect_silence().await;
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let nothing = "Message error: no supported attributes found";
    for (body, text) in [
        (json!({}), nothing),
        (json!({ "request": "x" }), nothing),
        (json!({ "audiocodec": "opus" }), nothing),
        (json!({ "filename": "x" }), nothing),
        (json!({ "svc": true }), nothing),
        (
            json!({ "audio": 1 }),
            "Invalid element type (audio should be a boolean)",
        ),
        (
            json!({ "video": "x" }),
            "Invalid element type (video should be a boolean)",
        ),
        (
            json!({ "bitrate": -1 }),
            "Invalid element type (bitrate should be a positive integer)",
        ),
        (
            json!({ "bitrate": 1.5 }),
            "Invalid element type (bitrate should be a positive integer)",
        ),
        (
            json!({ "record": 1 }),
            "Invalid element type (record should be a boolean)",
        ),
        (
            json!({ "filename": 1 }),
            "Invalid element type (filename should be a string)",
        ),
        (
            json!({ "substream": "0" }),
            "Invalid element type (substream should be a positive integer)",
        ),
        (
            json!({ "substream": 3 }),
            "Invalid value (substream should be 0, 1 or 2)",
        ),
        (
            json!({ "temporal": 3 }),
            "Invalid value (temporal should be 0, 1 or 2)",
        ),
        (
            json!({ "spatial_layer": 3 }),
            "Invalid value (spatial_layer should be 0, 1 or 2)",
        ),
        (
            json!({ "temporal_layer": 3 }),
            "Invalid value (temporal_layer should be 0, 1 or 2)",
        ),
        (
            json!({ "fallback": -1 }),
            "Invalid element type (fallback should be a positive integer)",
        ),
        (
            json!({ "svc": 1 }),
            "Invalid element type (svc should be a boolean)",
        ),
        (
            json!({ "audiocodec": 1 }),
            "Invalid element type (audiocodec should be a string)",
        ),
        (
            json!({ "videocodec": 1 }),
            "Invalid element type (videocodec should be a string)",
        ),
        (
            json!({ "videoprofile": 1 }),
            "Invalid element type (videoprofile should be a string)",
        ),
        (
            json!({ "opusred": 1 }),
            "Invalid element type (opusred should be a boolean)",
        ),
        (
            json!({ "min_delay": "x" }),
            "Invalid element type (min_delay should be an integer)",
        ),
        (
            json!({ "max_delay": 0.5 }),
            "Invalid element type (max_delay should be an integer)",
        ),
        (
            json!({ "record": true, "audio": false }),
            "Cannot record: recording is switched off (recording.enabled)",
        ),
    ] {
        client.message(body.clone(), None).await;
        let error = json!({ "echotest": "event", "error_code": 413, "error": text });
        assert_eq!(client.event().await, error, "{body}");
    }
    let state = state(&server, &client).await;
    assert_eq!(
        state["audio_active"], true,
        "a refused request changes nothing"
    );
}

#[tokio::test]
async fn an_offer_is_answered_line_by_line() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let sdp = call(&mut client, json!({}), &LINES).await;
    for line in [
        "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "a=fmtp:111 useinbandfec=1",
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level",
    ] {
        assert!(sdp.lines().any(|known| known == line), "{line} in {sdp}");
    }
    assert_eq!(
        sdp.lines().filter(|line| *line == "a=sendrecv").count(),
        3,
        "{sdp}"
    );
    let state = state(&server, &client).await;
    assert_eq!(
        (&state["audio_codec"], &state["video_codec"]),
        (&json!("opus"), &json!("vp8"))
    );
    assert_eq!(state.get("simulcast"), None);
}

#[tokio::test]
async fn codecs_profiles_and_red_can_be_chosen() {
    for (body, line) in [
        (
            json!({ "videocodec": "vp9" }),
            "m=video 9 UDP/TLS/RTP/SAVPF 98 99",
        ),
        (
            json!({ "videocodec": "h264" }),
            "m=video 9 UDP/TLS/RTP/SAVPF 102 103",
        ),
        (
            json!({ "videocodec": "h264", "videoprofile": "42e01f" }),
            "a=fmtp:102 profile-level-id=42e01f;packetization-mode=1",
        ),
        (
            json!({ "videocodec": "vp9", "videoprofile": "2" }),
            "m=video 0 UDP/TLS/RTP/SAVPF 0",
        ),
        (
            json!({ "videocodec": "av1" }),
            "m=video 0 UDP/TLS/RTP/SAVPF 0",
        ),
        (
            json!({ "videocodec": "x" }),
            "m=video 0 UDP/TLS/RTP/SAVPF 0",
        ),
        (
            json!({ "audiocodec": "pcmu" }),
            "m=audio 0 UDP/TLS/RTP/SAVPF 0",
        ),
        (
            json!({ "opusred": true }),
            "m=audio 9 UDP/TLS/RTP/SAVPF 63 111",
        ),
    ] {
        let server = server();
        let mut client = server.attach(PACKAGE).await;
        let sdp = call(&mut client, body.clone(), &LINES).await;
        assert!(
            sdp.lines().any(|known| known == line),
            "{body}: {line} in {sdp}"
        );
    }
}

#[tokio::test]
async fn what_only_receives_gets_nothing() {
    for (offered, answered) in [
        ("sendrecv", "sendrecv"),
        ("sendonly", "recvonly"),
        ("recvonly", "inactive"),
        ("inactive", "inactive"),
    ] {
        let server = server();
        let mut client = server.attach(PACKAGE).await;
        let offer = jsep("offer", "abcd", &[Line::Audio]);
        let sdp = offer["sdp"].as_str().unwrap().replace("sendrecv", offered);
        client
            .message(json!({}), Some(json!({ "type": "offer", "sdp": sdp })))
            .await;
        let answer = client.event_with_jsep().await.1.unwrap();
        let sdp = answer["sdp"].as_str().unwrap();
        assert!(
            sdp.lines().any(|line| line == format!("a={answered}")),
            "{offered}: {sdp}"
        );
    }
}

#[tokio::test]
async fn end_to_end_encryption_is_acknowledged() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let mut offer = jsep("offer", "abcd", &LINES);
    offer["e2ee"] = true.into();
    client.message(json!({ "audio": true }), Some(offer)).await;
    assert_eq!(client.event_with_jsep().await.1.unwrap()["e2ee"], true);
    assert_eq!(state(&server, &client).await["e2ee"], true);
}

#[tokio::test]
async fn settings_outlive_a_renegotiation_but_not_a_hangup() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let settings =
        json!({ "audio": false, "bitrate": 64_000, "substream": 1, "fallback": 500_000 });
    call(&mut client, settings, &[Line::Audio, Line::Simulcast]).await;
    call(&mut client, json!({}), &[Line::Audio, Line::Simulcast]).await;
    let kept = state(&server, &client).await;
    assert_eq!(kept["audio_active"], false);
    assert_eq!(kept["bitrate"], 64_000);
    assert_eq!(
        (&kept["simulcast"], &kept["substream-target"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(kept["fallback"], 500_000);

    client.on_handle("hangup", json!({})).await;
    assert_eq!(
        client.event().await,
        json!({ "echotest": "event", "result": "done" })
    );
    assert_eq!(client.next().await["janus"], "hangup");
    let reset = state(&server, &client).await;
    assert_eq!(
        (&reset["audio_active"], &reset["bitrate"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(reset.get("video_codec"), None);
    call(&mut client, json!({}), &LINES).await;
}

#[tokio::test]
async fn a_lost_peer_connection_ends_with_done() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({}), &LINES).await;
    let lost = Event::Closed(CloseReason::IceFailed(Box::default()));
    server.happen(server.peers()[0], lost).await;
    assert_eq!(client.event().await["result"], "done");
    assert_eq!(client.next().await["reason"], "ICE failed");
}

#[tokio::test]
async fn detaching_is_silent() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    call(&mut client, json!({}), &LINES).await;
    assert_eq!(
        client.on_handle("detach", json!({})).await["janus"],
        "success"
    );
    assert_eq!(client.next().await["janus"], "detached");
    client.expect_silence().await;
}

#[tokio::test]
async fn whoever_watches_the_server_is_told_of_what_is_set() {
    let server = server();
    let filter = EventFilter {
        kinds: EventKind::Plugins.into(),
        plugins: vec![PACKAGE.to_owned()],
    };
    let watcher = server.watch(filter);
    let mut client = server.attach(PACKAGE).await;
    client.message(json!({ "audio": 1 }), None).await;
    assert_eq!(client.event().await["error_code"], 413);
    client
        .message(json!({ "audio": false, "bitrate": 9_000 }), None)
        .await;
    assert_eq!(client.event().await, ok());
    let told = watcher.try_recv().unwrap();
    let told = watcher.to_json(&told);
    let members = ["session_id", "handle_id", "opaque_id"].map(|member| told[member].clone());
    assert_eq!(
        members,
        [json!(client.session), json!(client.handle), json!("mine")]
    );
    let data = json!({ "audio_active": false, "video_active": true, "bitrate": 9_000 });
    assert_eq!(told["event"], json!({ "plugin": PACKAGE, "data": data }));
    assert_eq!(watcher.try_recv(), None);
}

#[tokio::test]
async fn an_administrator_gets_an_echo_too() {
    use portunus_core::{Plugin, Reply};
    let reply = EchoTest.admin(json!({ "a": 1 }));
    assert!(matches!(reply, Some(Reply::Success(echo)) if echo == json!({ "a": 1 })));
}

#[tokio::test]
async fn an_offer_that_is_refused_leaves_nothing_behind() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let refused = async |client: &mut TestClient| {
        let offer = jsep("offer", "abcd", &LINES);
        client.message(json!({ "audio": 1 }), Some(offer)).await;
        let (data, answer) = client.event_with_jsep().await;
        assert!(data["error_code"].is_u64(), "{data}");
        assert_eq!(answer, None);
    };
    refused(&mut client).await;
    assert!(server.peers().is_empty());
    call(&mut client, json!({}), &LINES).await;
    refused(&mut client).await;
    // The former negotiation stays, and candidates belong to it again.
    assert_eq!(server.peers().len(), 1);
    let candidate = "candidate:1 1 udp 1 192.0.2.1 9 typ host";
    let trickle =
        json!({ "candidate": { "candidate": candidate, "sdpMid": "0", "sdpMLineIndex": 0 } });
    client.on_handle("trickle", trickle).await;
    assert_eq!(server.requested().candidates.len(), 1);
}
