//! The media of a call, and its settings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use std::time::Duration;

use portunus_core::Mid;
use portunus_core::media::{
    DataMessage, DataPayload, Event, Layer, LayerReason, PeerId, Reason, RouteOptions, SourceRef,
    TrackRef,
};
use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};
use support::{Call, LINES, PACKAGE, ask, result, server, state, user};

/// The reason for a layer in these tests.
const BOUND: LayerReason = LayerReason::Chosen(Reason::ClientBound);

fn track(peer: PeerId, mid: &str) -> SourceRef {
    let mid = Mid::new(mid).unwrap();
    TrackRef { peer, mid }.into()
}

#[tokio::test]
async fn a_call_passes_descriptions_and_links_both_sides() {
    let mut call = Call::new(&LINES).await;
    let (al, bo) = call.peers();
    let routes = call.server.requested().routes;
    let ends: Vec<_> = routes
        .iter()
        .map(|route| (route.from.track().unwrap(), route.to.peer))
        .map(|(from, to)| (from.peer, to, from.mid.to_string()))
        .collect();
    assert_eq!(ends.len(), 4);
    for (from, to) in [(al, bo), (bo, al)] {
        for mid in ["0", "1"] {
            assert!(ends.contains(&(from, to, mid.to_owned())), "{ends:?}");
        }
    }
    assert!(
        routes
            .iter()
            .all(|route| route.options == RouteOptions::default())
    );
    assert!(
        call.offer.contains("a=rtpmap:98 VP9/90000"),
        "{}",
        call.offer
    );
    assert!(
        call.answer.contains("a=rtpmap:96 VP8/90000"),
        "{}",
        call.answer
    );
    let state = state(&call.server, &call.al).await;
    assert_eq!(
        (&state["state"], &state["peer"]),
        (&json!("incall"), &json!("bo"))
    );
    assert_eq!(
        (&state["audio_codec"], &state["video_codec"]),
        (&json!("opus"), &json!("vp8"))
    );
    call.al.expect_silence().await;
    call.bo.expect_silence().await;
}

#[tokio::test]
async fn settings_are_the_senders_gate_and_the_receivers_layers() {
    let mut call = Call::new(&[Line::Audio, Line::Simulcast]).await;
    let (al, bo) = call.peers();
    let set = |fields: Value| {
        let mut body = json!({ "request": "set" });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        body
    };
    let done = result(json!({ "event": "set" }));
    let changes = json!({ "audio": false, "bitrate": 64_000, "substream": 0 });
    assert_eq!(ask(&mut call.al, set(changes), None).await, done);
    let changes = json!({ "substream": 1, "temporal": 0, "fallback": 9 });
    assert_eq!(ask(&mut call.bo, set(changes), None).await, done);
    let options = |from, mid: &str| {
        let routes = call.server.requested().routes;
        let found = routes
            .into_iter()
            .find(|route| route.from == track(from, mid));
        found.unwrap().options
    };
    assert!(!options(al, "0").enabled && options(bo, "0").enabled);
    let simulcast = RouteOptions {
        substream: 1,
        temporal: 0,
        fallback: Duration::from_micros(9),
        ..RouteOptions::default()
    };
    assert_eq!(options(al, "1"), simulcast);
    assert_eq!(options(bo, "1"), RouteOptions::default());
    assert_eq!(call.server.requested().bitrates, [(al, Some(64_000))]);
}

#[tokio::test]
async fn only_the_caller_sends_layers_and_the_callee_is_told_of_them() {
    let mut call = Call::new(&[Line::Audio, Line::Simulcast]).await;
    assert!(!call.offer.contains("rid"), "{}", call.offer);
    assert!(
        call.answer.contains("a=simulcast:recv h;m;l"),
        "{}",
        call.answer
    );
    let (al, bo) = call.peers();
    let routes = call.server.requested().routes;
    let to_bo = routes
        .iter()
        .find(|route| route.from == track(al, "1"))
        .unwrap();
    let layer = Layer {
        substream: Some(2),
        temporal: Some(1),
        ..Layer::default()
    };
    call.server
        .happen(
            bo,
            Event::Layer {
                route: to_bo.id,
                layer,
                reason: BOUND,
            },
        )
        .await;
    let told = |name: &str, layer: u8| {
        result(json!({ "event": "simulcast", "videocodec": "vp8", name: layer }))
    };
    for (name, layer) in [("substream", 2), ("temporal", 1)] {
        let mut why = told(name, layer);
        why["result"]["reason"] = "client-bound".into();
        assert_eq!(call.bo.event().await, why);
    }
    let same = json!({ "request": "set", "substream": 2 });
    assert_eq!(ask(&mut call.bo, same, None).await, told("substream", 2));
    assert_eq!(call.bo.event().await["result"]["event"], "set");
    call.al.expect_silence().await;
    let state = state(&call.server, &call.bo).await;
    assert_eq!(
        (&state["simulcast-peer"], &state["substream"]),
        (&json!(true), &json!(2))
    );
}

#[tokio::test]
async fn either_side_may_renegotiate() {
    let mut call = Call::new(&[Line::Audio]).await;
    assert_eq!(call.server.requested().routes.len(), 2);
    let lines = [Line::Audio, Line::Video];
    let set = || json!({ "request": "set" });
    let done = result(json!({ "event": "set" }));
    let update = result(json!({ "event": "update" }));
    let offer = jsep("offer", "bobo", &lines);
    assert_eq!(ask(&mut call.bo, set(), Some(offer)).await, done);
    let (event, offer) = call.al.event_with_jsep().await;
    assert_eq!(
        (event, &offer.unwrap()["type"]),
        (update.clone(), &json!("offer"))
    );
    let answer = jsep("answer", "alal", &lines);
    assert_eq!(ask(&mut call.al, set(), Some(answer)).await, done);
    let (event, answer) = call.bo.event_with_jsep().await;
    assert_eq!(
        (event, &answer.unwrap()["type"]),
        (update, &json!("answer"))
    );
    assert_eq!(call.server.requested().routes.len(), 4);
    assert_eq!(call.server.peers().len(), 2);
    assert_eq!(state(&call.server, &call.al).await["video_codec"], "vp8");
}

#[tokio::test]
async fn settings_may_come_before_a_name_and_a_call() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    for body in [
        json!({ "request": "set" }),
        json!({ "request": "Set", "audio": false }),
    ] {
        assert_eq!(
            ask(&mut client, body, None).await,
            result(json!({ "event": "set" }))
        );
    }
}

#[tokio::test]
async fn data_is_relayed_once_the_other_side_is_ready() {
    let mut call = Call::new(&LINES).await;
    let (al, bo) = call.peers();
    let message = |text: &str| DataMessage {
        label: "chat".to_owned(),
        protocol: "p".to_owned(),
        payload: DataPayload::Text(text.to_owned()),
    };
    call.server.happen(al, Event::Data(message("lost"))).await;
    call.al.expect_silence().await;
    let channel = Event::DataChannel {
        label: "chat".to_owned(),
        protocol: String::new(),
    };
    call.server.happen(bo, channel).await;
    call.bo.expect_silence().await;
    for text in ["hello", ""] {
        call.server.happen(al, Event::Data(message(text))).await;
    }
    call.al.expect_silence().await;
    assert_eq!(call.server.requested().data, [(bo, message("hello"))]);
}

#[tokio::test]
async fn missing_packets_of_a_user_are_a_slow_link() {
    let mut call = Call::new(&LINES).await;
    let (al, _) = call.peers();
    let lost = |audio, uplink| {
        let mid = Mid::new(if audio { "0" } else { "1" }).unwrap();
        Event::SlowLink {
            mid,
            audio,
            uplink,
            lost: 5,
        }
    };
    call.server.happen(al, lost(false, true)).await;
    let slow = json!({ "event": "slow_link", "media": "video", "current-bitrate": 0 });
    assert_eq!(call.al.event().await, result(slow));
    assert_eq!(call.al.next().await["janus"], "slowlink");
    call.server.happen(al, lost(true, false)).await;
    assert_eq!(call.al.next().await["janus"], "slowlink");
    call.al.expect_silence().await;
}

#[tokio::test]
async fn end_to_end_encryption_is_passed_on() {
    let server = server();
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    let encrypted = |kind: &str| {
        let mut jsep = jsep(kind, kind, &LINES);
        jsep["e2ee"] = true.into();
        jsep
    };
    let call = json!({ "request": "call", "username": "bo" });
    ask(&mut al, call, Some(encrypted("offer"))).await;
    assert_eq!(bo.event_with_jsep().await.1.unwrap()["e2ee"], true);
    ask(
        &mut bo,
        json!({ "request": "accept" }),
        Some(encrypted("answer")),
    )
    .await;
    assert_eq!(al.event_with_jsep().await.1.unwrap()["e2ee"], true);
    assert_eq!(state(&server, &al).await["e2ee"], true);
}
