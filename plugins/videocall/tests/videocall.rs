//! Calls between two users, through a gateway without a network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::{
    CloseReason, DataMessage, DataPayload, Event, Layer, LayerReason, PeerId, Reason, RouteOptions,
    SourceRef, TrackRef,
};
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, Mid, SessionId};
use portunus_videocall::VideoCall;
use serde_json::{Value, json};

/// Why a layer came in these tests.
const BOUND: LayerReason = LayerReason::Chosen(Reason::ClientBound);

const PACKAGE: &str = "janus.plugin.videocall";
const LINES: [Line; 3] = [Line::Audio, Line::Video, Line::Data];

fn server() -> TestServer {
    TestServer::new(CoreConfig::default(), vec![Arc::new(VideoCall::default())])
}

fn result(result: Value) -> Value {
    json!({ "videocall": "event", "result": result })
}

fn error(code: u16, text: &str) -> Value {
    json!({ "videocall": "event", "error_code": code, "error": text })
}

async fn ask(client: &mut TestClient, body: Value, jsep: Option<Value>) -> Value {
    client.message(body, jsep).await;
    client.event().await
}

async fn user(server: &TestServer, name: &str) -> TestClient {
    let mut client = server.attach(PACKAGE).await;
    let reply = ask(
        &mut client,
        json!({ "request": "register", "username": name }),
        None,
    )
    .await;
    assert_eq!(
        reply,
        result(json!({ "event": "registered", "username": name }))
    );
    client
}

async fn state(server: &TestServer, client: &TestClient) -> Value {
    let (session, handle) = (SessionId(client.session), HandleId(client.handle));
    server.gateway.query(session, handle).await.unwrap()
}

struct Call {
    server: TestServer,
    al: TestClient,
    bo: TestClient,
    /// The offer that bo got and the answer that al got.
    offer: String,
    answer: String,
}

impl Call {
    async fn new(lines: &[Line]) -> Self {
        let server = server();
        let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
        let call = json!({ "request": "call", "username": "bo" });
        let calling = ask(&mut al, call, Some(jsep("offer", "alal", lines))).await;
        assert_eq!(calling, result(json!({ "event": "calling" })));
        let (incoming, offer) = bo.event_with_jsep().await;
        assert_eq!(
            incoming,
            result(json!({ "event": "incomingcall", "username": "al" }))
        );
        let plain: Vec<Line> = lines
            .iter()
            .map(|line| {
                if *line == Line::Simulcast {
                    Line::Video
                } else {
                    *line
                }
            })
            .collect();
        let answer = jsep("answer", "bobo", &plain);
        let accepted = ask(&mut bo, json!({ "request": "accept" }), Some(answer)).await;
        assert_eq!(accepted, result(json!({ "event": "accepted" })));
        let (accepted, answer) = al.event_with_jsep().await;
        assert_eq!(
            accepted,
            result(json!({ "event": "accepted", "username": "bo" }))
        );
        let text = |jsep: Option<Value>, kind: &str| {
            let jsep = jsep.unwrap();
            assert_eq!(jsep["type"], kind);
            jsep["sdp"].as_str().unwrap().to_owned()
        };
        let (offer, answer) = (text(offer, "offer"), text(answer, "answer"));
        Call {
            server,
            al,
            bo,
            offer,
            answer,
        }
    }

    /// The PeerConnections of al and bo.
    fn peers(&self) -> (PeerId, PeerId) {
        let peers = self.server.peers();
        (peers[0], peers[1])
    }

    async fn expect_idle(&mut self) {
        self.al.expect_silence().await;
        self.bo.expect_silence().await;
        for client in [&self.al, &self.bo] {
            let state = state(&self.server, client).await;
            assert_eq!(
                (&state["state"], &state["incall"]),
                (&json!("idle"), &json!(0))
            );
        }
        assert!(self.server.peers().is_empty());
        assert!(self.server.requested().routes.is_empty());
    }
}

fn track(peer: PeerId, mid: &str) -> SourceRef {
    let mid = Mid::new(mid).unwrap();
    TrackRef { peer, mid }.into()
}

#[tokio::test]
async fn names_are_registered_once_and_freed_by_detach() {
    let server = server();
    let mut al = user(&server, "al").await;
    let mut other = server.attach(PACKAGE).await;
    let register = |name: &str| json!({ "request": "REGISTER", "username": name });
    assert_eq!(
        ask(&mut other, register("al"), None).await,
        error(476, "Username 'al' already taken")
    );
    assert_eq!(
        ask(&mut al, register("ally"), None).await,
        error(477, "Already registered (al)")
    );
    let list = json!({ "request": "list" });
    assert_eq!(
        ask(&mut other, list, None).await,
        result(json!({ "list": ["al"] }))
    );
    al.on_handle("detach", json!({})).await;
    assert_eq!(al.next().await["janus"], "detached");
    ask(&mut other, register("al"), None).await;
    assert_eq!(state(&server, &other).await["username"], "al");
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let server = server();
    let mut al = user(&server, "al").await;
    let _bo = user(&server, "bo").await;
    for (body, code, text) in [
        (json!({}), 475, "Missing mandatory element (request)"),
        (
            json!({ "request": 1 }),
            474,
            "Invalid element type (request should be a string)",
        ),
        (
            json!({ "request": "dance" }),
            472,
            "Unknown request (dance)",
        ),
        (
            json!({ "request": "register" }),
            475,
            "Missing mandatory element (username)",
        ),
        (
            json!({ "request": "register", "username": 1 }),
            474,
            "Invalid element type (username should be a string)",
        ),
        (
            json!({ "request": "call" }),
            475,
            "Missing mandatory element (username)",
        ),
        (
            json!({ "request": "call", "username": "al" }),
            479,
            "You can't call yourself... use the EchoTest for that",
        ),
        (
            json!({ "request": "call", "username": "cy" }),
            478,
            "Username 'cy' doesn't exist",
        ),
        (
            json!({ "request": "call", "username": "bo" }),
            482,
            "Missing SDP",
        ),
        (
            json!({ "request": "accept" }),
            481,
            "No incoming call to accept",
        ),
        (
            json!({ "request": "set", "audio": 1 }),
            474,
            "Invalid element type (audio should be a boolean)",
        ),
        (
            json!({ "request": "set", "bitrate": -1 }),
            474,
            "Invalid element type (bitrate should be a positive integer)",
        ),
        (
            json!({ "request": "set", "substream": "x" }),
            474,
            "Invalid value (substream should be 0, 1 or 2)",
        ),
        (
            json!({ "request": "set", "temporal": 3 }),
            474,
            "Invalid value (temporal should be 0, 1 or 2)",
        ),
        (
            json!({ "request": "set", "fallback": -1 }),
            474,
            "Invalid element type (fallback should be a positive integer)",
        ),
        (
            json!({ "request": "set", "restart": 1 }),
            474,
            "Invalid element type (restart should be a boolean)",
        ),
        (
            json!({ "request": "set", "record": true, "audio": false }),
            474,
            "Cannot record: recording is switched off (recording.enabled)",
        ),
    ] {
        assert_eq!(
            ask(&mut al, body.clone(), None).await,
            error(code, text),
            "{body}"
        );
    }
    let mut stranger = server.attach(PACKAGE).await;
    let call = json!({ "request": "call", "username": "al" });
    assert_eq!(
        ask(&mut stranger, call, None).await,
        error(473, "Register a username first")
    );
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
async fn a_busy_user_is_not_disturbed() {
    let call = Call::new(&LINES).await;
    let mut cy = user(&call.server, "cy").await;
    let offer = jsep("offer", "cycy", &LINES);
    let reply = ask(
        &mut cy,
        json!({ "request": "call", "username": "bo" }),
        Some(offer),
    )
    .await;
    let busy = json!({ "event": "hangup", "username": "cy", "reason": "User busy" });
    assert_eq!(reply, result(busy));
    assert_eq!(cy.next().await["reason"], "Close PC");
    assert_eq!(call.server.peers().len(), 2);
    let mut bo = call.bo;
    bo.expect_silence().await;
}

#[tokio::test]
async fn a_refused_call_closes_the_callers_peer_connection() {
    let server = server();
    let mut al = user(&server, "al").await;
    for (name, code) in [("al", 479), ("cy", 478)] {
        let offer = jsep("offer", "alal", &LINES);
        let call = json!({ "request": "call", "username": name });
        assert_eq!(ask(&mut al, call, Some(offer)).await["error_code"], code);
        assert_eq!(al.next().await["reason"], "Close PC");
        assert!(server.peers().is_empty());
    }
}

#[tokio::test]
async fn calling_during_a_call_ends_it() {
    let mut call = Call::new(&LINES).await;
    let again = json!({ "request": "call", "username": "bo" });
    assert_eq!(
        ask(&mut call.al, again, None).await,
        error(480, "Already in a call")
    );
    assert_eq!(call.al.next().await["reason"], "Close PC");
    assert_eq!(
        call.bo.event().await,
        result(json!({ "event": "hangup", "username": "al", "reason": "Remote WebRTC hangup" }))
    );
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    call.expect_idle().await;
}

#[tokio::test]
async fn either_side_may_hang_up() {
    for reason in [None, Some("bye")] {
        let mut call = Call::new(&LINES).await;
        let body = json!({ "request": "hangup", "reason": reason });
        let own = json!({ "event": "hangup", "username": "bo", "reason": "Explicit hangup" });
        assert_eq!(ask(&mut call.bo, body, None).await, result(own));
        assert_eq!(call.bo.next().await["janus"], "hangup");
        let reason = reason.unwrap_or("We did the hangup");
        let other = json!({ "event": "hangup", "username": "bo", "reason": reason });
        assert_eq!(call.al.event().await, result(other));
        assert_eq!(call.al.next().await["janus"], "hangup");
        call.expect_idle().await;
    }
}

#[tokio::test]
async fn a_call_can_be_rejected_and_another_made() {
    let server = server();
    let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
    for _ in 0..3 {
        let call = json!({ "request": "call", "username": "bo" });
        ask(&mut al, call, Some(jsep("offer", "alal", &LINES))).await;
        assert_eq!(bo.event().await["result"]["event"], "incomingcall");
        ask(&mut bo, json!({ "request": "hangup" }), None).await;
        assert_eq!(bo.next().await["janus"], "hangup");
        assert_eq!(al.event().await["result"]["event"], "hangup");
        assert_eq!(al.next().await["janus"], "hangup");
    }
    assert!(server.peers().is_empty());
}

#[tokio::test]
async fn a_hangup_without_a_call_is_fine() {
    let server = server();
    let mut client = server.attach(PACKAGE).await;
    let reply = ask(
        &mut client,
        json!({ "request": "hangup", "reason": 7 }),
        None,
    )
    .await;
    assert_eq!(
        reply,
        result(json!({ "event": "hangup", "reason": "Explicit hangup" }))
    );
    client.expect_silence().await;
}

#[tokio::test]
async fn losing_a_side_ends_the_call() {
    let mut call = Call::new(&LINES).await;
    let (al, _) = call.peers();
    let lost = CloseReason::IceFailed("no pair".to_owned());
    call.server.happen(al, Event::Closed(lost)).await;
    assert_eq!(call.al.next().await["reason"], "ICE failed");
    let hangup = json!({ "event": "hangup", "username": "al", "reason": "Remote WebRTC hangup" });
    assert_eq!(call.bo.event().await, result(hangup.clone()));
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    call.expect_idle().await;

    let mut call = Call::new(&LINES).await;
    call.al.on_handle("detach", json!({})).await;
    assert_eq!(call.al.next().await["janus"], "detached");
    assert_eq!(call.bo.event().await, result(hangup));
    assert_eq!(call.bo.next().await["reason"], "Close PC");
    assert!(call.server.peers().is_empty());
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
        spatial: None,
        temporal: Some(1),
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
