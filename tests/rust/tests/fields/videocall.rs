//! Calls between two users.

use portunus_rtp::ExtensionKind;
use portunus_sdp::Direction;
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Caller, Peer, Server, Watcher};
use portunus_videocall::VideoCall;
use serde_json::{Value, json};

use crate::world::{AUDIO, Layers, Member, VIDEO, layers_told, loss_told, recorder, sdp};

const PACKAGE: &str = "janus.plugin.videocall";

fn result<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    let result = object(members);
    object([("videocall", is("event")), ("result", result)])
}

fn hangup(username: &str, reason: &str) -> Shape {
    result([
        ("event", is("hangup")),
        ("username", is(username)),
        ("reason", is(reason)),
    ])
}

async fn told(watcher: &mut Watcher, caller: &Caller, shape: Shape) {
    shape.check(&watcher.told(PACKAGE, Some(caller)).await);
}

/// Returns a user with this name.
async fn user(server: &Server, watcher: &mut Watcher, name: &str, peer: Peer) -> Member {
    let mut member = Member::new(server.attach(PACKAGE).await, peer);
    let register = json!({ "request": "register", "username": name });
    let registered = member.ask(register).await;
    let shape = result([("event", is("registered")), ("username", is(name))]);
    shape.check(&registered["plugindata"]["data"]);
    let shape = object([("event", is("registered")), ("username", is(name))]);
    told(watcher, &member.caller, shape).await;
    member
}

/// Al calls Bo in simulcast, and both connect.
async fn call(server: &Server, watcher: &mut Watcher, e2ee: bool) -> (Member, Member) {
    let mut al = user(server, watcher, "al", Peer::offering().await).await;
    let mut bo = user(server, watcher, "bo", Peer::answering().await).await;
    bo.peer.extensions = vec![ExtensionKind::Mid];
    let mut offer = Layers::Simulcast.offer(&mut al.peer, Direction::SendRecv);
    if e2ee {
        offer["e2ee"] = json!(true);
    }
    let call = json!({ "request": "call", "username": "bo" });
    al.caller.message_with(call, offer).await;
    al.expect(&result([("event", is("calling"))])).await;
    told(watcher, &al.caller, object([("event", is("calling"))])).await;

    let incoming = bo.next().await;
    let shape = result([("event", is("incomingcall")), ("username", is("al"))]);
    shape.check(&incoming["plugindata"]["data"]);
    check_jsep(&incoming, "offer", e2ee);
    let answer = bo.peer.answer(sdp(&incoming));
    let mut answer = json!({ "type": "answer", "sdp": answer });
    if e2ee {
        answer["e2ee"] = json!(true);
    }
    bo.caller
        .message_with(json!({ "request": "accept" }), answer)
        .await;
    bo.expect(&result([("event", is("accepted"))])).await;
    told(watcher, &bo.caller, object([("event", is("accepted"))])).await;

    let accepted = al.next().await;
    let shape = result([("event", is("accepted")), ("username", is("bo"))]);
    shape.check(&accepted["plugindata"]["data"]);
    check_jsep(&accepted, "answer", e2ee);
    al.peer.accept(sdp(&accepted));
    tokio::join!(al.connect(), bo.connect());
    (al, bo)
}

fn check_jsep(event: &Value, kind: &str, e2ee: bool) {
    let shape = object([("type", is(kind)), ("sdp", Shape::Begins("v=0"))]);
    let shape = match e2ee {
        true => shape.and([("e2ee", is(true))]),
        false => shape,
    };
    shape.check(&event["jsep"]);
}

#[tokio::test]
async fn a_call_is_told_from_its_start_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = Server::watched::<VideoCall>((), recorder(&folder)).await;
    let (mut al, mut bo) = call(&server, &mut watcher, false).await;

    let layer = |name: &'static str, layer: u8| {
        result([
            ("event", is("simulcast")),
            ("videocodec", is("vp8")),
            (name, is(layer)),
            // An addition to Janus.
            ("reason", Shape::Text),
        ])
    };
    let simulcast = Layers::Simulcast;
    layers_told(&mut al, simulcast, &mut bo, &layer("substream", 2)).await;
    layers_told(&mut al, simulcast, &mut bo, &layer("temporal", 2)).await;
    let set = json!({ "request": "set", "substream": 0, "temporal": 0 });
    bo.caller.message(set.clone(), None).await;
    bo.expect(&result([("event", is("set"))])).await;
    let configured = |substream: i8, temporal: i8| {
        let simulcast = object([
            ("substream", is(substream)),
            ("temporal-layer", is(temporal)),
        ]);
        object([
            ("event", is("configured")),
            ("audio_active", is(true)),
            ("video_active", is(true)),
            ("bitrate", is(0)),
            ("simulcast", simulcast),
        ])
    };
    told(&mut watcher, &bo.caller, configured(2, 2)).await;
    layers_told(&mut al, simulcast, &mut bo, &layer("substream", 0)).await;
    // It may be the lowest one immediately.
    let state = server.state(&bo.caller).await;
    if state["temporal-layer"] != 0 {
        layers_told(&mut al, simulcast, &mut bo, &layer("temporal", 0)).await;
    }
    // Events about present packets precede the answer.
    bo.caller.message(set, None).await;
    for name in ["substream", "temporal"] {
        let there = [
            ("event", is("simulcast")),
            ("videocodec", is("vp8")),
            (name, is(0)),
        ];
        bo.expect(&result(there)).await;
    }
    bo.expect(&result([("event", is("set"))])).await;
    told(&mut watcher, &bo.caller, configured(0, 0)).await;

    let set = json!({ "request": "set", "audio": false, "bitrate": 300_000, "record": true,
                      "filename": "al" });
    let answer = al.ask(set).await;
    result([("event", is("set"))]).check(&answer["plugindata"]["data"]);
    let files = object([
        ("audio", is("al-audio.mjr")),
        ("video", is("al-video.mjr")),
        ("data", is("al-data.mjr")),
    ]);
    let configured = object([
        ("event", is("configured")),
        ("audio_active", is(false)),
        ("video_active", is(true)),
        ("bitrate", is(300_000)),
        ("recording", files.clone()),
    ]);
    told(&mut watcher, &al.caller, configured).await;

    // Al's side, and Bo's.
    let of_call = |peer: &str, audio: bool, bitrate: u64| {
        object([
            ("state", is("incall")),
            ("peer", is(peer)),
            ("audio_active", is(audio)),
            ("video_active", is(true)),
            ("audio_codec", is("opus")),
            ("video_codec", is("vp8")),
            ("bitrate", is(bitrate)),
            ("peer-bitrate", Shape::Count),
            ("slowlink_count", Shape::Count),
            ("incall", is(1)),
            ("hangingup", is(0)),
            ("destroyed", is(0)),
        ])
    };
    let state = of_call("bo", false, 300_000).and([
        ("username", is("al")),
        ("simulcast", is(true)),
        ("recording", files),
    ]);
    state.check(&server.state(&al.caller).await);
    let state = of_call("al", true, 0).and([
        ("username", is("bo")),
        ("simulcast-peer", is(true)),
        ("substream", is(0)),
        ("substream-target", is(0)),
        ("temporal-layer", is(0)),
        ("temporal-layer-target", is(0)),
        ("fallback", is(250_000)),
    ]);
    state.check(&server.state(&bo.caller).await);

    let slow = [("event", is("slow_link")), ("media", is("audio"))];
    loss_told(&mut bo, AUDIO, &result(slow)).await;
    let slow = [
        ("event", is("slow_link")),
        ("media", is("video")),
        ("current-bitrate", is(0)),
    ];
    loss_told(&mut bo, VIDEO, &result(slow)).await;

    // Al restarts ICE: both receive the other's description.
    let description = crate::world::description(simulcast.codec(), Direction::SendRecv);
    let offer =
        portunus_tests::layered::with_rids(&al.peer.restart(description), "1", &crate::world::RIDS);
    let set = json!({ "request": "set", "restart": true });
    al.caller
        .message(set.clone(), Some(("offer", &offer)))
        .await;
    al.caller
        .until("/plugindata/data/result/event", "set")
        .await;
    let update = bo
        .caller
        .until("/plugindata/data/result/event", "update")
        .await;
    result([("event", is("update"))]).check(&update["plugindata"]["data"]);
    check_jsep(&update, "offer", false);
    let answer = bo.peer.answer(sdp(&update));
    bo.caller.message(set, Some(("answer", &answer))).await;
    let update = al
        .caller
        .until("/plugindata/data/result/event", "update")
        .await;
    check_jsep(&update, "answer", false);
    watcher.told(PACKAGE, Some(&al.caller)).await;
    watcher.told(PACKAGE, Some(&bo.caller)).await;

    // Al is busy for a third user.
    let mut cy = user(&server, &mut watcher, "cy", Peer::offering().await).await;
    let listed = cy.ask(json!({ "request": "list" })).await;
    let names = &listed["plugindata"]["data"]["result"]["list"];
    result([("list", list([Shape::Text, Shape::Text, Shape::Text]))])
        .check(&listed["plugindata"]["data"]);
    for name in ["al", "bo", "cy"] {
        assert!(names.as_array().unwrap().contains(&json!(name)), "{names}");
    }
    let offer = Layers::Simulcast.offer(&mut cy.peer, Direction::SendRecv);
    let call = json!({ "request": "call", "username": "al" });
    cy.caller.message_with(call, offer).await;
    cy.expect(&hangup("cy", "User busy")).await;
    let busy = object([("event", is("hangup")), ("reason", is("User busy"))]);
    told(&mut watcher, &cy.caller, busy).await;

    let request = json!({ "request": "hangup", "reason": "dinner" });
    bo.caller.message(request, None).await;
    let event = "/plugindata/data/result/event";
    let own = bo.caller.until(event, "hangup").await;
    hangup("bo", "Explicit hangup").check(&own["plugindata"]["data"]);
    let other = al.caller.until(event, "hangup").await;
    hangup("bo", "dinner").check(&other["plugindata"]["data"]);
    for (member, reason) in [(&bo, "Explicit hangup"), (&al, "Remote hangup")] {
        let hangup = object([("event", is("hangup")), ("reason", is(reason))]);
        told(&mut watcher, &member.caller, hangup).await;
    }
    let idle = object([
        ("state", is("idle")),
        ("username", is("al")),
        ("incall", is(0)),
        ("hangingup", is(0)),
        ("destroyed", is(0)),
    ]);
    idle.check(&server.state(&al.caller).await);
    watcher.expect_silence();
}

#[tokio::test]
async fn a_connection_that_is_gone_is_told_and_encryption_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = Server::watched::<VideoCall>((), recorder(&folder)).await;
    let (mut al, mut bo) = call(&server, &mut watcher, true).await;
    assert_eq!(server.state(&al.caller).await["e2ee"], true);
    assert_eq!(server.state(&bo.caller).await["e2ee"], true);
    al.peer.connection.transport.close();
    al.turn().await;
    let gone = "Remote WebRTC hangup";
    bo.expect(&hangup("al", gone)).await;
    let shape = object([("event", is("hangup")), ("reason", is(gone))]);
    told(&mut watcher, &bo.caller, shape).await;
}
