//! PeerConnections: negotiation and what the media plane reports.

use std::time::Duration;

use portunus_core::media::{CloseReason, DataMessage, DataPayload, Event};
use portunus_core::testing::{Line, TestClient, jsep};
use portunus_core::{CoreConfig, Mid, ServerFacts};
use serde_json::{Value, json};

use crate::world::{PROBE, World};

const LINES: [Line; 3] = [Line::Audio, Line::Simulcast, Line::Data];

async fn connected(world: &World) -> TestClient {
    let mut client = world.server.attach(PROBE).await;
    client
        .message(
            json!({ "do": "answer" }),
            Some(jsep("offer", "abcd", &LINES)),
        )
        .await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, json!({ "answered": true }));
    assert_eq!(answer.unwrap()["type"], "answer");
    client
}

#[tokio::test]
async fn an_offer_is_answered() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let mut offer = jsep("offer", "abcd", &LINES);
    offer["e2ee"] = true.into();
    offer["svc"] = json!([{ "mindex": 1, "svc": "L3T3" }]);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let (_, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap();
    assert_eq!(answer["e2ee"], true);
    let peers = world.server.peers();
    let opaque = world.server.requested().opaque;
    assert_eq!(opaque, peers.into_iter().collect());
    let sdp = answer["sdp"].as_str().unwrap();
    assert!(
        sdp.contains("a=group:BUNDLE 0 1 2") && sdp.contains("a=setup:passive"),
        "{sdp}"
    );
    let noted = world.plugin.log().join("\n");
    assert!(
        noted.contains("Offer update=false restart=false e2ee=true"),
        "{noted}"
    );
    assert!(noted.contains(r#"simulcast=[["l", "m", "h"]]"#), "{noted}");
    assert!(noted.contains(r#"svc=[("1", "L3T3")]"#), "{noted}");
    assert_eq!(world.server.peers().len(), 1);
}

#[tokio::test]
async fn the_offer_may_say_in_which_order_its_rids_are() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let mut offer = jsep("offer", "abcd", &LINES);
    offer["rid_order"] = "lmh".into();
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let noted = world.plugin.log().join("\n");
    assert!(noted.contains(r#"simulcast=[["h", "m", "l"]]"#), "{noted}");
}

#[tokio::test]
async fn a_later_offer_updates_and_may_restart_ice() {
    let world = World::new();
    let mut client = connected(&world).await;
    let ufrag = |answer: &Value| {
        let sdp = answer["sdp"].as_str().unwrap();
        sdp.lines()
            .find(|line| line.starts_with("a=ice-ufrag"))
            .unwrap()
            .to_owned()
    };
    let offer = jsep("offer", "abcd", &LINES);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let (_, first) = client.event_with_jsep().await;
    let offer = jsep("offer", "efgh", &LINES);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let (_, second) = client.event_with_jsep().await;
    assert_ne!(ufrag(&first.unwrap()), ufrag(&second.unwrap()));
    let noted = world.plugin.log();
    assert!(noted[1].contains("update=true restart=false"), "{noted:?}");
    assert!(noted[2].contains("update=true restart=true"), "{noted:?}");
    assert_eq!(world.server.peers().len(), 1);
}

#[tokio::test]
async fn an_offer_that_was_never_answered_makes_way_for_the_next() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    client
        .message(json!({ "do": "keep" }), Some(jsep("offer", "abcd", &LINES)))
        .await;
    let first = world.server.peers();
    client
        .message(
            json!({ "do": "answer" }),
            Some(jsep("offer", "efgh", &LINES)),
        )
        .await;
    assert!(client.event_with_jsep().await.1.is_some());
    let second = world.server.peers();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    client.expect_silence().await;
}

#[tokio::test]
async fn an_offer_that_waits_outlasts_one_that_cannot_be_read() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let offer = jsep("offer", "abcd", &LINES);
    client.message(json!({ "do": "keep" }), Some(offer)).await;
    let first = world.server.peers();
    let mut without_credentials = jsep("offer", "efgh", &LINES);
    let sdp = without_credentials["sdp"].as_str().unwrap();
    without_credentials["sdp"] = json!(sdp.replace("a=ice-ufrag", "a=x-ufrag"));
    for offer in [
        json!({ "type": "offer", "sdp": "v=1" }),
        without_credentials,
    ] {
        let message = json!({ "body": { "do": "answer" }, "jsep": offer });
        let refused = client.on_handle("message", message).await;
        assert_eq!(refused["error"]["code"], 465, "{refused}");
        assert_eq!(world.server.peers(), first);
    }
    client.expect_silence().await;
}

#[tokio::test]
async fn an_offer_that_nobody_answers_ends_with_its_request() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    for (what, verb) in [
        ("nothing", "ack"),
        ("refuse", "error"),
        ("succeed", "success"),
    ] {
        let offer = jsep("offer", "abcd", &LINES);
        let message = json!({ "body": { "do": what }, "jsep": offer });
        let reply = client.on_handle("message", message).await;
        assert_eq!(reply["janus"], verb, "{reply}");
        assert!(world.server.peers().is_empty(), "{what}");
    }
    client.expect_silence().await;
    // Of a PeerConnection that is there only the change is forgotten.
    let mut client = connected(&world).await;
    let first = world.server.peers();
    for what in ["nothing", "refuse", "answer"] {
        let offer = jsep("offer", "efgh", &LINES);
        let message = json!({ "body": { "do": what }, "jsep": offer });
        client.on_handle("message", message).await;
    }
    assert!(client.event_with_jsep().await.1.is_some());
    assert_eq!(world.server.peers(), first);
}

#[tokio::test]
async fn an_offer_that_another_has_replaced_takes_nothing_with_it() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let offer = |ufrag| Some(jsep("offer", ufrag, &LINES));
    client.message(json!({ "do": "keep" }), offer("abcd")).await;
    let first = world.server.peers();
    client.message(json!({ "do": "keep" }), offer("efgh")).await;
    let second = world.server.peers();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    client.message(json!({ "do": "keep" }), None).await;
    assert!(world.server.peers().is_empty());
}

#[tokio::test]
async fn an_answer_without_an_offer_is_refused() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let answer = jsep("answer", "abcd", &LINES);
    let members = json!({ "body": {}, "jsep": answer });
    let reply = client.on_handle("message", members.clone()).await;
    let refused = json!({ "code": 469, "reason": "Unexpected ANSWER (did we offer?)" });
    assert_eq!(reply["error"], refused);
    let mut client = connected(&world).await;
    assert_eq!(client.on_handle("message", members).await["error"], refused);
}

#[tokio::test]
async fn a_plugin_may_offer() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    client.message(json!({ "do": "offer" }), None).await;
    let (_, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap();
    assert_eq!(offer["type"], "offer");
    assert!(offer["sdp"].as_str().unwrap().contains("a=setup:actpass"));
    client
        .message(json!({}), Some(jsep("answer", "abcd", &[Line::Audio])))
        .await;
    assert!(world.plugin.log()[0].starts_with("Answer"));
    assert_eq!(world.server.peers().len(), 1);
}

#[tokio::test]
async fn bad_sdp_is_refused_and_leaves_nothing_behind() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let good = jsep("offer", "abcd", &LINES)["sdp"]
        .as_str()
        .unwrap()
        .to_owned();
    for (from, to) in [
        ("v=0", "w=0"),
        ("m=audio", "m=smell"),
        ("a=ice-ufrag:abcd\r\n", ""),
        ("a=fingerprint:sha-256", "a=fingerprint:md5"),
        ("a=mid:0", "a=mid:0 1"),
        ("a=msid:s a", "a=msid:s"),
        ("s=-", "-"),
    ] {
        let offer = json!({ "type": "offer", "sdp": good.replace(from, to) });
        let reply = client
            .on_handle("message", json!({ "body": {}, "jsep": offer }))
            .await;
        assert_eq!(reply["error"]["code"], 465, "{from}: {reply}");
    }
    assert_eq!(world.server.peers().len(), 0);
    client.expect_silence().await;
}

#[tokio::test]
async fn clients_that_are_told_of_no_silence_hear_of_each_medium_once() {
    let world = World::knowing(ServerFacts {
        no_media_ms: 0,
        ..ServerFacts::default()
    });
    let mut client = connected(&world).await;
    let peer = world.server.peers()[0];
    let media = |substream, receiving| Event::Media {
        mid: Mid::new("1").unwrap(),
        audio: false,
        receiving,
        substream: Some(substream),
    };
    for substream in [0, 1] {
        for receiving in [true, false, true, false] {
            world.server.happen(peer, media(substream, receiving)).await;
        }
        let told = client.next().await;
        assert_eq!(told["janus"], "media", "{told}");
        assert_eq!(
            (&told["substream"], &told["receiving"]),
            (&json!(substream), &json!(true))
        );
        client.expect_silence().await;
    }
    // The plugin gets all events.
    let log = world.plugin.log();
    let told = |receiving| {
        let part = format!("receiving: {receiving}");
        log.iter().filter(|line| line.contains(&part)).count()
    };
    assert_eq!((told(true), told(false)), (4, 4), "{log:?}");
}

#[tokio::test]
async fn lines_with_transports_of_their_own_are_refused_with_what_to_do() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let sdp = jsep("offer", "abcd", &LINES)["sdp"]
        .as_str()
        .unwrap()
        .to_owned();
    let lines = sdp.split_inclusive("\r\n");
    let ungrouped: String = lines.filter(|line| !line.starts_with("a=group")).collect();
    let (first, second) = ungrouped.rsplit_once("m=").unwrap();
    let apart = format!("{first}m={}", second.replace("abcd", "efgh"));
    let offer = json!({ "type": "offer", "sdp": apart });
    let reply = client
        .on_handle("message", json!({ "body": {}, "jsep": offer }))
        .await;
    assert_eq!(reply["error"]["code"], 465, "{reply}");
    let reason = reply["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("max-bundle"), "{reason}");
    assert_eq!(world.server.peers().len(), 0);
    client.expect_silence().await;
}

#[tokio::test]
async fn the_media_planes_reports_become_events() {
    let world = World::new();
    let mut client = connected(&world).await;
    let peer = world.server.peers()[0];
    let mid = Mid::new("1").unwrap();
    let common = json!({ "session_id": client.session, "sender": client.handle });
    let media = |receiving| Event::Media {
        mid,
        audio: false,
        receiving,
        substream: Some(2),
    };
    for (event, expected) in [
        (
            Event::Connected {
                srtp_profile: "SRTP_AEAD_AES_128_GCM",
            },
            json!({ "janus": "webrtcup" }),
        ),
        (
            media(true),
            json!({
                "janus": "media", "mid": "1", "type": "video", "substream": 2, "receiving": true,
            }),
        ),
        (
            media(false),
            json!({
                "janus": "media", "mid": "1", "type": "video", "substream": 2, "receiving": false,
            }),
        ),
        (
            // The client's uplink is the server's downlink.
            Event::SlowLink {
                mid,
                audio: true,
                uplink: true,
                lost: 9,
            },
            json!({
                "janus": "slowlink", "mid": "1", "media": "audio", "uplink": false, "lost": 9,
            }),
        ),
    ] {
        let mut expected = expected;
        expected
            .as_object_mut()
            .unwrap()
            .extend(common.as_object().unwrap().clone());
        world.server.happen(peer, event).await;
        assert_eq!(client.next().await, expected);
    }
    assert_eq!(world.gateway.counters().snapshot().peer_connections, 1);
    let message = DataMessage {
        label: "l".to_owned(),
        protocol: String::new(),
        payload: DataPayload::Text("hi".to_owned()),
    };
    world.server.happen(peer, Event::Data(message)).await;
    world.server.happen(peer, Event::Remb { bitrate: 5 }).await;
    client.expect_silence().await;
    let noted = world.plugin.log().join("\n");
    for word in ["Up", "Media {", "SlowLink {", "Data(", "Remb(5)"] {
        assert!(noted.contains(word), "{word} in {noted}");
    }
}

#[tokio::test]
async fn a_hangup_closes_the_peer_connection() {
    let world = World::new();
    let mut client = connected(&world).await;
    let peer = world.server.peers()[0];
    world
        .server
        .happen(peer, Event::Connected { srtp_profile: "x" })
        .await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    assert_eq!(
        client.on_handle("hangup", json!({})).await["janus"],
        "success"
    );
    assert_eq!(
        client.next().await,
        json!({
            "janus": "hangup", "session_id": client.session, "sender": client.handle,
            "reason": "Janus API",
        })
    );
    assert_eq!(world.plugin.log().last().unwrap(), r#"Hangup("Janus API")"#);
    assert_eq!(world.gateway.counters().snapshot().peer_connections, 0);
    assert!(world.server.peers().is_empty());
    // Late events of the old peer are ignored.
    world
        .server
        .happen(peer, Event::Closed(CloseReason::Requested))
        .await;
    client.expect_silence().await;
    // The handle can be used again.
    client
        .message(
            json!({ "do": "answer" }),
            Some(jsep("offer", "abcd", &LINES)),
        )
        .await;
    assert!(client.event_with_jsep().await.1.is_some());
}

#[tokio::test]
async fn a_lost_peer_connection_is_reported_with_its_reason() {
    for (reason, text) in [
        (CloseReason::IceFailed(Box::default()), "ICE failed"),
        (CloseReason::ConsentLost(Box::default()), "ICE failed"),
        (
            CloseReason::DtlsFailed("wrong fingerprint".to_owned()),
            "DTLS failed",
        ),
        (CloseReason::DtlsAlert, "DTLS alert"),
    ] {
        let world = World::new();
        let mut client = connected(&world).await;
        world
            .server
            .happen(world.server.peers()[0], Event::Closed(reason))
            .await;
        let event = client.next().await;
        assert_eq!(
            (&event["janus"], &event["reason"]),
            (&json!("hangup"), &json!(text))
        );
        let is_explained = event["cause"].is_string() && event["text"].is_string();
        assert_eq!(is_explained, text == "ICE failed", "{event}");
        let counters = world.gateway.counters().snapshot();
        assert_eq!(counters.ice_failures, u64::from(text == "ICE failed"));
        assert_eq!(counters.dtls_failures, u64::from(text == "DTLS failed"));
    }
}

#[tokio::test]
async fn a_plugin_that_closes_is_not_told() {
    let world = World::new();
    let mut client = connected(&world).await;
    client.message(json!({ "do": "close" }), None).await;
    assert_eq!(client.next().await["reason"], "Close PC");
    assert!(!world.plugin.log().join("\n").contains("Hangup"));
}

#[tokio::test]
async fn detaching_closes_the_peer_connection_without_a_hangup_event() {
    let world = World::new();
    let mut client = connected(&world).await;
    assert_eq!(
        client.on_handle("detach", json!({})).await["janus"],
        "success"
    );
    assert_eq!(client.next().await["janus"], "detached");
    client.expect_silence().await;
    assert!(world.server.peers().is_empty());
    assert!(
        world
            .plugin
            .log()
            .ends_with(&[r#"Hangup("Detach")"#.to_owned(), "detach".to_owned()])
    );
}

#[tokio::test]
async fn a_shutdown_hangs_up() {
    let world = World::new();
    let mut client = connected(&world).await;
    world.gateway.shutdown().await;
    assert_eq!(client.next().await["reason"], "Server shutdown");
    assert_eq!(client.next().await["janus"], "detached");
    assert!(world.server.peers().is_empty());
}

#[tokio::test]
async fn in_full_trickle_candidates_follow_the_description() {
    let world = World::with(CoreConfig {
        full_trickle: true,
        ..CoreConfig::default()
    });
    let mut client = connected(&world).await;
    // The media plane of tests has no candidates of its own.
    assert_eq!(
        client.next().await,
        json!({
            "janus": "trickle", "session_id": client.session, "sender": client.handle,
            "candidate": { "completed": true },
        })
    );
    client
        .message(
            json!({ "do": "answer" }),
            Some(jsep("offer", "abcd", &LINES)),
        )
        .await;
    client.event().await;
    client.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_times_out_closes_its_peer_connections() {
    let world = World::new();
    let mut client = connected(&world).await;
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(client.next().await["janus"], "timeout");
    client.expect_silence().await;
    assert!(world.server.peers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn candidates_wait_for_the_negotiation_but_not_for_ever() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let candidate = |mid: &str, text: &str| json!({ "sdpMid": mid, "candidate": text });
    let trickle = json!({ "candidate": candidate("0", "candidate:stale") });
    assert_eq!(client.on_handle("trickle", trickle).await["janus"], "ack");
    tokio::time::sleep(Duration::from_secs(46)).await;
    for early in [
        json!({ "candidate": candidate("0", "candidate:early") }),
        json!({ "candidate": candidate("1", "candidate:bundled") }),
        json!({ "candidate": { "sdpMLineIndex": 2, "candidate": "candidate:bundled too" } }),
        json!({ "candidate": candidate("0", "") }),
        json!({ "candidate": candidate("0", "nonsense") }),
    ] {
        assert_eq!(client.on_handle("trickle", early).await["janus"], "ack");
    }
    client
        .message(
            json!({ "do": "answer" }),
            Some(jsep("offer", "abcd", &LINES)),
        )
        .await;
    client.event().await;
    let late = json!({ "candidates": [candidate("0", "candidate:late")] });
    assert_eq!(client.on_handle("trickle", late).await["janus"], "ack");
    let peer = world.server.peers()[0];
    let added = ["candidate:early", "candidate:late"].map(|text| (peer, text.to_owned()));
    assert_eq!(world.server.requested().candidates, added);
}

/// Janus and browsers take them all.
#[tokio::test]
async fn candidates_are_taken_in_every_form_that_clients_write() {
    let world = World::new();
    let mut client = connected(&world).await;
    let bare = "1 1 UDP 1 192.0.2.1 4000 typ host";
    let sent = [
        json!({ "candidate": { "sdpMid": "0", "candidate": bare } }),
        json!({ "candidate": { "sdpMLineIndex": 0, "candidate": format!("a=candidate:{bare}\r\n") } }),
        json!({ "candidate": { "sdpMid": "audio", "sdpMLineIndex": 0, "candidate": format!("candidate:{bare}") } }),
        json!({ "candidate": { "candidate": "" } }),
        json!({ "candidate": { "candidate": "", "sdpMid": null, "sdpMLineIndex": null } }),
        json!({ "candidate": { "candidate": "a=end-of-candidates", "sdpMid": "0" } }),
        json!({ "candidate": { "completed": true } }),
        json!({ "candidate": null }),
        json!({ "candidates": [
            { "sdpMid": "0", "sdpMLineIndex": null, "candidate": format!("a={bare}") },
            { "sdpMid": "1", "candidate": "2 1 UDP 1 192.0.2.2 4000 typ host" },
            null,
        ] }),
    ];
    for trickled in sent {
        let reply = client.on_handle("trickle", trickled.clone()).await;
        assert_eq!(reply["janus"], "ack", "{trickled}");
    }
    let peer = world.server.peers()[0];
    let added = vec![(peer, format!("candidate:{bare}")); 4];
    assert_eq!(world.server.requested().candidates, added);
}

#[tokio::test]
async fn an_offer_without_mids_is_answered_and_its_candidates_are_taken() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let mut offer = jsep("offer", "abcd", &[Line::Audio]);
    let sdp = offer["sdp"].as_str().unwrap();
    let lines = sdp.split_inclusive("\r\n");
    let sdp: String = lines
        .filter(|line| !line.starts_with("a=mid:") && !line.starts_with("a=group:"))
        .collect();
    offer["sdp"] = sdp.into();
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let (_, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap();
    let sdp = answer["sdp"].as_str().unwrap();
    assert!(sdp.contains("a=mid:0\r\n"), "{sdp}");
    let text = "candidate:1 1 udp 1 192.0.2.1 4000 typ host";
    let candidate = json!({ "sdpMid": "audio", "sdpMLineIndex": 0, "candidate": text });
    let trickle = json!({ "candidate": candidate });
    assert_eq!(client.on_handle("trickle", trickle).await["janus"], "ack");
    let peer = world.server.peers()[0];
    let added = [(peer, text.to_owned())];
    assert_eq!(world.server.requested().candidates, added);
}
