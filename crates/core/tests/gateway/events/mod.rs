//! Events for subscribers, field by field.

mod statistics;

use std::time::Duration;

use portunus_core::events::{EventFilter, EventKind, EventMask, EventsConfig, Subscription};
use portunus_core::media::{
    Carrier, CloseReason, DtlsState, Event, IceState, MediaStats, MessageStats, PayloadStats,
    PeerId, PeerStats, ReportTimes, SelectedPair, StreamStats, Traffic,
};
use portunus_core::sdp::Kind;
use portunus_core::sdp::negotiated::Codec;
use portunus_core::testing::{Line, TestClient, jsep};
use portunus_core::{CoreConfig, Mid, Pt, ServerFacts, StoredToken};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{PROBE, World};
use statistics::figures;

const LINES: [Line; 2] = [Line::Audio, Line::Simulcast];

/// A subscriber that gets these kinds.
fn watch(world: &World, kinds: EventMask) -> Subscription {
    let filter = EventFilter {
        kinds,
        plugins: Vec::new(),
    };
    world.gateway.events().subscribe("test", filter, 10_000)
}

/// The events that wait, without their times and emitters.
fn told(events: &Subscription) -> Vec<Value> {
    let mut told = Vec::new();
    while let Some(event) = events.try_recv() {
        let mut event = events.to_json(&event);
        let members = event.as_object_mut().unwrap();
        assert!(members.remove("timestamp").unwrap().as_u64() > Some(1_000_000_000_000_000));
        assert!(members.remove("emitter").unwrap().is_string());
        told.push(event);
    }
    told
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn without(kind: EventKind) -> EventMask {
    let others = EventKind::ALL.into_iter().filter(|other| *other != kind);
    others.fold(EventMask::NONE, |mask, kind| mask.and(kind.into()))
}

/// An event of the handle of `client`.
fn of_handle(client: &TestClient, kind: EventKind, subtype: Option<u8>, event: Value) -> Value {
    let mut told = json!({ "type": kind.number() });
    if let Some(subtype) = subtype {
        told["subtype"] = subtype.into();
    }
    told["session_id"] = client.session.into();
    told["handle_id"] = client.handle.into();
    told["opaque_id"] = "mine".into();
    told["event"] = event;
    told
}

fn of_session(session: u64, event: Value) -> Value {
    json!({ "type": 1, "session_id": session, "event": event })
}

#[tokio::test]
async fn sessions_and_handles_come_and_go_in_order() {
    let world = World::new();
    let events = watch(&world, EventMask::ALL);
    let mut client = world.server.attach(PROBE).await;
    let transport = json!({
        "transport": "janus.transport.test", "id": client.client.event_id().to_string(),
    });
    let created = json!({ "name": "created", "transport": transport });
    let handle = |name: &str| json!({ "name": name, "plugin": PROBE, "opaque_id": "mine" });
    let expected = [
        of_session(client.session, created),
        of_handle(&client, EventKind::Handles, None, handle("attached")),
    ];
    assert_eq!(told(&events), expected);
    let destroy = json!({
        "janus": "destroy", "session_id": client.session, "transaction": "d",
    });
    client.ask(destroy).await;
    settle().await;
    let expected = [
        of_handle(&client, EventKind::Handles, None, handle("detached")),
        of_session(client.session, json!({ "name": "destroyed" })),
    ];
    assert_eq!(told(&events), expected);
}

#[tokio::test]
async fn a_handle_is_told_with_the_token_that_attached_it_if_that_is_good() {
    let world = World::with(CoreConfig {
        tokens: vec![StoredToken {
            token: "good".to_owned(),
            plugins: Vec::new(),
            rights: Vec::new(),
        }],
        ..CoreConfig::default()
    });
    let events = watch(&world, EventKind::Handles.into());
    let mut client = world.connect();
    let session = client.create().await;
    for token in ["good", "unknown"] {
        let attach = json!({
            "janus": "attach", "transaction": "a", "session_id": session, "plugin": PROBE,
            "token": token,
        });
        client.ask(attach).await;
    }
    let told = told(&events);
    let attached = json!({ "name": "attached", "plugin": PROBE, "token": "good" });
    assert_eq!(told[0]["event"], attached);
    assert_eq!(told[0].get("opaque_id"), None);
    let attached = json!({ "name": "attached", "plugin": PROBE });
    assert_eq!(told[1]["event"], attached);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_silent_times_out_behind_its_handles() {
    let world = World::new();
    let client = world.server.attach(PROBE).await;
    let kinds = EventMask::from(EventKind::Sessions).and(EventKind::Handles.into());
    let events = watch(&world, kinds);
    sleep(Duration::from_secs(62)).await;
    let told = told(&events);
    assert_eq!(told[0]["event"]["name"], "detached");
    assert_eq!(
        told[1],
        of_session(client.session, json!({ "name": "timeout" }))
    );
    assert_eq!(told.len(), 2);
}

#[tokio::test]
async fn all_is_told_when_the_server_ends() {
    let world = World::new();
    let client = world.server.attach(PROBE).await;
    let events = watch(&world, EventMask::ALL);
    world.gateway.publish_end(15);
    world.gateway.shutdown().await;
    settle().await;
    let told = told(&events);
    let end = json!({ "type": 256, "subtype": 2, "event": { "status": "shutdown", "signum": 15 } });
    assert_eq!(told[0], end);
    assert_eq!(told[1]["event"]["name"], "detached");
    assert_eq!(
        told[2],
        of_session(client.session, json!({ "name": "destroyed" }))
    );
}

#[tokio::test(start_paused = true)]
async fn the_server_tells_that_it_started_and_how_much_there_is() {
    let world = World::with(CoreConfig {
        server_name: "here".to_owned(),
        ..CoreConfig::default()
    });
    let events = watch(&world, EventKind::Core.into());
    world.gateway.publish_start();
    let started = told(&events);
    assert_eq!(started.len(), 1);
    assert_eq!(started[0]["subtype"], 1);
    assert_eq!(started[0]["event"]["status"], "started");
    assert_eq!(started[0]["event"]["info"], world.gateway.info(None));
    assert_eq!(started[0]["event"]["info"]["janus"], "server_info");
    let _client = world.server.attach(PROBE).await;
    sleep(Duration::from_millis(3_500)).await;
    let info = json!({ "sessions": 1, "handles": 1, "peerconnections": 0, "stats-period": 1 });
    let update = json!({
        "type": 256, "subtype": 1, "event": { "status": "update", "info": info },
    });
    assert_eq!(told(&events), [update.clone(), update.clone(), update]);
}

async fn connected(world: &World) -> (TestClient, PeerId) {
    let mut client = world.server.attach(PROBE).await;
    let offer = jsep("offer", "abcd", &LINES);
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    client.event_with_jsep().await;
    let peer = world.server.peers()[0];
    let srtp_profile = "SRTP_AEAD_AES_128_GCM";
    world
        .server
        .happen(peer, Event::Connected { srtp_profile })
        .await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    (client, peer)
}

#[tokio::test]
async fn a_negotiation_is_told_in_order() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let events = watch(&world, without(EventKind::Core));
    let candidate = "candidate:1 1 udp 2113937151 192.0.2.7 4000 typ host";
    let mut offer = jsep("offer", "abcd", &LINES);
    let sdp = offer["sdp"].as_str().unwrap();
    let sdp = sdp.replacen("a=mid:0", &format!("a={candidate}\r\na=mid:0"), 1);
    offer["sdp"] = sdp.clone().into();
    client.message(json!({ "do": "answer" }), Some(offer)).await;
    let (_, answer) = client.event_with_jsep().await;
    let trickled = json!({ "candidate": { "sdpMid": "0", "candidate": candidate } });
    client.on_handle("trickle", trickled).await;
    let remote = json!({ "owner": "remote", "jsep": { "type": "offer", "sdp": sdp } });
    let gathering = json!({ "ice": "gathering", "stream_id": 1, "component_id": 1 });
    let remote_candidate = json!({
        "remote-candidate": candidate.trim_start_matches("candidate:"),
        "stream_id": 1,
        "component_id": 1,
    });
    let local = json!({ "owner": "local", "jsep": answer.unwrap() });
    let (jsep, webrtc) = (EventKind::Jsep, EventKind::WebRtc);
    let expected = [
        of_handle(&client, jsep, None, remote),
        of_handle(&client, webrtc, Some(1), gathering),
        of_handle(&client, webrtc, Some(3), remote_candidate.clone()),
        of_handle(&client, jsep, None, local),
        of_handle(&client, webrtc, Some(3), remote_candidate),
    ];
    assert_eq!(told(&events), expected);
}

#[tokio::test]
async fn an_offer_of_ours_is_told_before_its_answer() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let events = watch(&world, without(EventKind::Core));
    client.message(json!({ "do": "offer" }), None).await;
    let (_, offer) = client.event_with_jsep().await;
    let answer = jsep("answer", "abcd", &[Line::Audio]);
    client.message(json!({}), Some(answer.clone())).await;
    let told = told(&events);
    let bodies: Vec<_> = told.iter().map(|event| &event["event"]).collect();
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[0]["ice"], "gathering");
    assert_eq!(
        bodies[1],
        &json!({ "owner": "local", "jsep": offer.unwrap() })
    );
    assert_eq!(bodies[2], &json!({ "owner": "remote", "jsep": answer }));
}

#[tokio::test]
async fn a_description_that_is_refused_is_not_told() {
    let world = World::new();
    let mut client = world.server.attach(PROBE).await;
    let events = watch(&world, without(EventKind::Core));
    let message = json!({ "body": {}, "jsep": { "type": "offer", "sdp": "v=1" } });
    let refused = client.on_handle("message", message).await;
    assert_eq!(refused["error"]["code"], 465);
    let answer = json!({ "body": {}, "jsep": jsep("answer", "abcd", &LINES) });
    let refused = client.on_handle("message", answer).await;
    assert_eq!(refused["error"]["code"], 469);
    assert_eq!(told(&events), Vec::<Value>::new());
}

#[tokio::test]
async fn what_becomes_of_a_peer_connection_is_told() {
    let world = World::new();
    let (mut client, peer) = connected(&world).await;
    let events = watch(&world, without(EventKind::Core));
    let pair = SelectedPair {
        is_relayed: false,
        local: "192.0.2.1:10000".parse().unwrap(),
        remote: "198.51.100.7:4000".parse().unwrap(),
        carrier: Carrier::Udp,
        remote_kind: "prflx",
    };
    let video = Mid::new("1").unwrap();
    for event in [
        Event::Ice(IceState::Connecting),
        Event::SelectedPair(pair),
        Event::Ice(IceState::Ready),
        Event::Dtls {
            state: DtlsState::Trying,
            retransmissions: 0,
        },
        Event::Dtls {
            state: DtlsState::Connected,
            retransmissions: 1,
        },
        Event::Connected { srtp_profile: "" },
        Event::Media {
            mid: video,
            audio: false,
            receiving: true,
            substream: Some(2),
        },
        Event::SlowLink {
            mid: video,
            audio: false,
            uplink: true,
            lost: 12,
        },
        Event::Closed(CloseReason::DtlsAlert),
    ] {
        world.server.happen(peer, event).await;
    }
    while client.next().await["janus"] != "hangup" {}
    let bodies: Vec<_> = told(&events)
        .into_iter()
        .map(|event| {
            let place = (event["type"].clone(), event["subtype"].clone());
            let whole = of_handle(
                &client,
                match place.0.as_u64() {
                    Some(16) => EventKind::WebRtc,
                    _ => EventKind::Media,
                },
                place.1.as_u64().map(|subtype| subtype as u8),
                event["event"].clone(),
            );
            assert_eq!(event, whole);
            (place.0, place.1, event["event"].clone())
        })
        .collect();
    let one = |kind: u16, subtype: u8, mut event: Value| {
        if kind == 16 && subtype < 6 {
            event["stream_id"] = 1.into();
            event["component_id"] = 1.into();
        }
        (json!(kind), json!(subtype), event)
    };
    let side = |address: &str, port: u16, kind: &str| json!({ "address": address, "port": port, "type": kind, "transport": "udp", "family": 4 });
    let candidates = json!({
        "local": side("192.0.2.1", 10_000, "host"), "remote": side("198.51.100.7", 4_000, "prflx"),
    });
    let text = "192.0.2.1:10000 [host,udp] <-> 198.51.100.7:4000 [prflx,udp]";
    let media = json!({ "media": "video", "mid": "1", "substream": 2, "receiving": true });
    let slow = json!({ "mid": "1", "media": "video", "slow_link": "downlink", "lost_lastsec": 12 });
    let hangup = json!({ "connection": "hangup", "reason": "DTLS alert" });
    let expected = [
        one(16, 1, json!({ "ice": "connecting" })),
        one(
            16,
            4,
            json!({ "selected-pair": text, "candidates": candidates }),
        ),
        one(16, 1, json!({ "ice": "ready" })),
        one(16, 5, json!({ "dtls": "trying", "retransmissions": 0 })),
        one(16, 5, json!({ "dtls": "connected", "retransmissions": 1 })),
        one(16, 6, json!({ "connection": "webrtcup" })),
        one(32, 1, media),
        one(32, 2, slow),
        one(16, 6, hangup),
    ];
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn whoever_closes_it_a_hangup_is_told_once_with_its_reason() {
    let world = World::new();
    for (verb, members, reason) in [
        ("hangup", json!({}), "Janus API"),
        ("message", json!({ "body": { "do": "close" } }), "Close PC"),
        ("detach", json!({}), "Detach"),
    ] {
        let (mut client, _) = connected(&world).await;
        let events = watch(&world, EventKind::WebRtc.into());
        client.on_handle(verb, members).await;
        settle().await;
        let hangup = json!({ "connection": "hangup", "reason": reason });
        let expected = of_handle(&client, EventKind::WebRtc, Some(6), hangup);
        assert_eq!(told(&events), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hangup_is_told_before_the_end_of_its_handle_however_late_its_last_figures_are() {
    let kinds = without(EventKind::Core);
    for (verb, on_handle) in [("detach", true), ("destroy", false)] {
        let world = World::new();
        let (mut client, peer) = connected(&world).await;
        let events = watch(&world, kinds);
        world.server.withhold_stats(peer);
        let close = json!({ "body": { "do": "close" } });
        client.on_handle("message", close).await;
        match on_handle {
            true => client.on_handle(verb, json!({})).await,
            false => {
                let end =
                    json!({ "janus": verb, "session_id": client.session, "transaction": "d" });
                client.ask(end).await
            }
        };
        sleep(Duration::from_secs(1)).await;
        let told = told(&events);
        let hangup = json!({ "connection": "hangup", "reason": "Close PC" });
        assert_eq!(told[0]["event"], hangup, "{told:?}");
        assert_eq!(told[1]["event"]["name"], "detached");
        assert_eq!(told.len(), if on_handle { 2 } else { 3 }, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_collected_that_nobody_wants() {
    let world = World::new();
    let events = watch(&world, without(EventKind::Media));
    let (mut client, peer) = connected(&world).await;
    world.server.pretend_stats(peer, figures());
    sleep(Duration::from_secs(10)).await;
    client.on_handle("hangup", json!({})).await;
    let media = |event: &Value| event["type"] == 32;
    assert!(!told(&events).iter().any(media));
    assert_eq!(world.server.requested().stats_asked, 0);
}

#[tokio::test]
async fn who_watches_too_slowly_changes_nothing_for_clients() {
    let world = World::new();
    let filter = EventFilter::ALL;
    let slow = world.gateway.events().subscribe("slow", filter, 1);
    let (mut client, peer) = connected(&world).await;
    for state in [IceState::Connecting, IceState::Connected].repeat(500) {
        world.server.happen(peer, Event::Ice(state)).await;
    }
    let reply = client.on_handle("message", json!({ "body": { "do": "succeed" } }));
    assert_eq!(reply.await["janus"], "success");
    settle().await;
    assert!(slow.dropped() > 900, "{}", slow.dropped());
    let counters = world.gateway.counters().snapshot();
    assert_eq!(counters.events_dropped, 0);
}
