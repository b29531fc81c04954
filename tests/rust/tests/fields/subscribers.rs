//! Video rooms: subscribers.

use portunus_rtp::ExtensionKind;
use portunus_tests::shape::{Shape, is, list, object};
use portunus_tests::{Server, Watcher};
use serde_json::{Value, json};

use crate::participants::{PACKAGE, create, event, notice, publisher, server, told};
use crate::world::{Layers, Member, layers_told, poor_link_told, sdp, until};

/// Returns some members of a subscriber's m-line with stream `mid` of publisher 1.
fn line(index: u8, kind: &'static str, codec: &'static str, ready: bool) -> Shape {
    object([
        ("type", is(kind)),
        ("active", is(true)),
        ("mindex", is(index)),
        ("mid", is(index.to_string())),
        ("ready", is(ready)),
        ("send", is(true)),
        ("feed_id", is(1)),
        ("feed_mid", is(index.to_string())),
        ("codec", is(codec)),
    ])
}

fn data(ready: bool) -> Shape {
    object([
        ("type", is("data")),
        ("active", is(true)),
        ("mindex", is(2)),
        ("mid", is("2")),
        ("ready", is(ready)),
        ("send", is(true)),
        ("sources", is(1)),
        ("source_ids", list([is(1)])),
    ])
}

fn simulcast(now: (i8, i8), target: (u8, u8)) -> Shape {
    object([
        ("substream", is(now.0)),
        ("substream-target", is(target.0)),
        ("temporal-layer", is(now.1)),
        ("temporal-layer-target", is(target.1)),
        ("fallback", is(250_000)),
    ])
}

fn svc(now: (i8, i8), target: (u8, u8)) -> Shape {
    object([
        ("spatial-layer", is(now.0)),
        ("target-spatial-layer", is(target.0)),
        ("temporal-layer", is(now.1)),
        ("target-temporal-layer", is(target.1)),
    ])
}

fn with_reason(layers: Shape) -> Shape {
    // An addition to Janus.
    layers.and([("reason", Shape::Text)])
}

/// Returns the event of another layer, with a reason unless it belongs to an answer.
fn layer(name: &'static str, layer: u8) -> Shape {
    event([("mid", is("1")), (name, is(layer)), ("reason", Shape::Text)])
}

fn offer() -> Shape {
    object([("type", is("offer")), ("sdp", Shape::Begins("v=0"))])
}

/// Subscribes to all of publisher 1. Returns the plugin's message.
async fn subscribe(server: &Server, members: Value) -> (Member, Value) {
    let mut viewer = Member::answering(server, PACKAGE).await;
    viewer.peer.extensions = vec![ExtensionKind::Mid];
    let mut join =
        json!({ "request": "join", "room": 7, "ptype": "subscriber", "streams": [{ "feed": 1 }] });
    let all = join.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    let attached = viewer.ask(join).await;
    offer().check(&attached["jsep"]);
    (viewer, attached)
}

/// Answers the offer in `message`.
async fn start(viewer: &mut Member, message: &Value) {
    let answer = viewer.peer.answer(sdp(message));
    let start = json!({ "request": "start" });
    viewer
        .caller
        .message(start, Some(("answer", &answer)))
        .await;
    viewer.expect(&event([("started", is("ok"))])).await;
}

async fn unsubscribed(watcher: &mut Watcher, viewer: &Member, mids: &[&str]) {
    for mid in mids {
        let shape = notice("unsubscribed", [("feed", is(1)), ("mid", is(*mid))]);
        told(watcher, viewer, &shape).await;
    }
}

#[tokio::test]
async fn a_subscription_to_simulcast_is_told_from_its_start_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut admin = Member::answering(&server, PACKAGE).await;
    create(&mut admin, &mut watcher, json!({ "audiolevel_ext": false })).await;
    let mut al = publisher(&server, &mut watcher, 1, Layers::Simulcast).await;
    let private_id = server.state(&al.caller).await["private_id"].clone();
    let with = json!({ "private_id": private_id, "streams": [{ "feed": 1, "mid": "0", "crossrefid": "x" },
                       { "feed": 1, "mid": "1" }, { "feed": 1, "mid": "2" }] });
    let (mut viewer, attached) = subscribe(&server, with).await;
    let lines = |ready: bool, layers: Shape| {
        list([
            line(0, "audio", "opus", ready).and([("crossrefid", is("x"))]),
            line(1, "video", "vp8", ready).and([("simulcast", layers)]),
            data(ready),
        ])
    };
    let nothing = simulcast((-1, -1), (2, 2));
    let shape = object([
        ("videoroom", is("attached")),
        ("room", is(7)),
        ("streams", lines(false, nothing.clone())),
    ]);
    shape.check(&attached["plugindata"]["data"]);
    let members = [
        ("streams", lines(false, nothing.clone())),
        ("private_id", is(private_id.clone())),
    ];
    told(&mut watcher, &viewer, &notice("subscribing", members)).await;
    let state = |answered: bool, paused: bool, streams: Shape| {
        object([
            ("type", is("subscriber")),
            ("room", is(7)),
            ("private_id", is(private_id.clone())),
            ("answered", is(answered)),
            ("pending_offer", is(false)),
            ("pending_restart", is(false)),
            ("paused", is(paused)),
            ("streams", streams),
            ("hangingup", is(0)),
            ("destroyed", is(0)),
        ])
    };
    let shape = state(false, false, lines(false, nothing));
    shape.check(&server.state(&viewer.caller).await);
    start(&mut viewer, &attached).await;
    viewer.connect().await;
    told(&mut watcher, &viewer, &notice("subscribed", [])).await;

    let sent = Layers::Simulcast;
    layers_told(&mut al, sent, &mut viewer, &layer("substream", 2)).await;
    layers_told(&mut al, sent, &mut viewer, &layer("temporal", 2)).await;
    let configure = json!({ "request": "configure", "mid": "1", "substream": 1, "temporal": 1 });
    viewer.caller.message(configure.clone(), None).await;
    viewer.expect(&event([("configured", is("ok"))])).await;
    layers_told(&mut al, sent, &mut viewer, &layer("substream", 1)).await;
    let temporal = "/streams/1/simulcast/temporal-layer";
    until(async || {
        al.picture(sent).await;
        tokio::join!(al.turn(), viewer.turn());
        server.state(&viewer.caller).await.pointer(temporal) == Some(&json!(1))
    })
    .await;
    while viewer.caller.pending().is_some() {}
    viewer.caller.message(configure, None).await;
    for name in ["substream", "temporal"] {
        viewer.expect(&layer(name, 1)).await;
    }
    viewer.expect(&event([("configured", is("ok"))])).await;
    viewer
        .caller
        .message(json!({ "request": "pause" }), None)
        .await;
    viewer.expect(&event([("paused", is("ok"))])).await;
    let now = with_reason(simulcast((1, 1), (1, 1)));
    let shape = state(true, true, lines(true, now));
    shape.check(&server.state(&viewer.caller).await);
    viewer
        .caller
        .message(json!({ "request": "start" }), None)
        .await;
    viewer.expect(&event([("started", is("ok"))])).await;
    let subscribers = &server.state(&al.caller).await["streams"][1]["subscribers"];
    assert_eq!(subscribers, 1);

    let slow = object([("videoroom", is("slow_link"))]);
    poor_link_told(&mut al, &mut viewer, &slow).await;

    // Two streams are removed and added again. Meanwhile, an offer waits for its answer.
    let unsubscribe = json!({ "request": "unsubscribe", "streams": [{ "sub_mid": "0" }, { "feed": 1, "mid": "2" }] });
    viewer.caller.message(unsubscribe, None).await;
    let updated = viewer
        .caller
        .until("/plugindata/data/videoroom", "updated")
        .await;
    offer().check(&updated["jsep"]);
    let inactive = |index: u8, kind: &'static str| {
        object([
            ("type", is(kind)),
            ("active", is(false)),
            ("mindex", is(index)),
            ("mid", is(index.to_string())),
            ("ready", is(false)),
            ("send", is(true)),
        ])
    };
    inactive(0, "audio")
        .and([("crossrefid", is("x"))])
        .check(&updated["plugindata"]["data"]["streams"][0]);
    inactive(2, "data").check(&updated["plugindata"]["data"]["streams"][2]);
    unsubscribed(&mut watcher, &viewer, &["0", "2"]).await;
    let data = watcher.told(PACKAGE, Some(&viewer.caller)).await;
    let streams = data["streams"].clone();
    let members = [
        ("streams", is(streams.clone())),
        ("private_id", is(private_id.clone())),
    ];
    notice("updated", members).check(&data);
    assert_eq!(streams, updated["plugindata"]["data"]["streams"]);

    let again = json!({ "request": "subscribe", "streams": [{ "feed": 1, "mid": "0" }] });
    viewer.caller.message(again.clone(), None).await;
    viewer
        .expect(&object([("videoroom", is("updating")), ("room", is(7))]))
        .await;
    start(&mut viewer, &updated).await;
    let updated = viewer.next().await;
    let streams = Shape::Is(updated["plugindata"]["data"]["streams"].clone());
    let shape = object([
        ("videoroom", is("updated")),
        ("room", is(7)),
        ("streams", streams),
    ]);
    shape.check(&updated["plugindata"]["data"]);
    assert!(updated.get("transaction").is_none(), "{updated}");
    watcher.told(PACKAGE, Some(&viewer.caller)).await;
    start(&mut viewer, &updated).await;
    let nothing = json!({ "request": "unsubscribe", "streams": [{ "feed": 99 }] });
    viewer.caller.message(nothing, None).await;
    viewer
        .expect(&object([("videoroom", is("updated")), ("room", is(7))]))
        .await;

    // The publisher leaves, so the rest is removed by an offer.
    al.caller
        .message(json!({ "request": "unpublish" }), None)
        .await;
    let updated = viewer.next().await;
    assert_eq!(updated["plugindata"]["data"]["videoroom"], "updated");
    unsubscribed(&mut watcher, &viewer, &["0", "1"]).await;
    let data = watcher.told(PACKAGE, Some(&viewer.caller)).await;
    assert_eq!(data["event"], "updated");
    viewer
        .caller
        .message(json!({ "request": "leave" }), None)
        .await;
    viewer.expect(&event([("left", is("ok"))])).await;
    viewer.caller.until("/janus", "hangup").await;
    assert_eq!(
        server.state(&viewer.caller).await,
        json!({ "type": "none" })
    );
}

#[tokio::test]
async fn svc_switches_and_the_older_forms_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut watcher) = server(&folder).await;
    let mut admin = Member::answering(&server, PACKAGE).await;
    let options = json!({ "videocodec": "vp9", "audiolevel_ext": false });
    create(&mut admin, &mut watcher, options).await;
    let mut al = publisher(&server, &mut watcher, 1, Layers::Svc).await;
    let _bo = publisher(&server, &mut watcher, 2, Layers::Svc).await;

    let name = json!({ "request": "configure", "display": "Al", "metadata": { "m": 1 },
                       "descriptions": [{ "mid": "1", "description": "face" }] });
    al.caller.message(name, None).await;
    al.caller.until("/plugindata/data/configured", "ok").await;

    // In the old form: only the publisher.
    let legacy = json!({ "request": "join", "room": 7, "ptype": "subscriber", "feed": 1, "offer_data": false });
    let mut viewer = Member::answering(&server, PACKAGE).await;
    viewer.peer.extensions = vec![ExtensionKind::Mid];
    let attached = viewer.ask(legacy).await;
    let metadata = || is(json!({ "m": 1 }));
    let named = |line: Shape| line.and([("feed_display", is("Al")), ("feed_metadata", metadata())]);
    let video = |ready: bool, layers: Shape| {
        named(line(1, "video", "vp9", ready)).and([
            ("feed_description", is("face")),
            ("vp9-profile", is("0")),
            ("svc", layers),
        ])
    };
    let lines = |ready: bool, layers: Shape| {
        list([named(line(0, "audio", "opus", ready)), video(ready, layers)])
    };
    let nothing = svc((-1, -1), (2, 2));
    let shape = object([
        ("videoroom", is("attached")),
        ("room", is(7)),
        ("streams", lines(false, nothing.clone())),
        ("id", is(1)),
        ("display", is("Al")),
        ("metadata", metadata()),
        ("warning", is("deprecated_api")),
    ]);
    shape.check(&attached["plugindata"]["data"]);
    let members = [("streams", lines(false, nothing)), ("private_id", is(0))];
    told(&mut watcher, &viewer, &notice("subscribing", members)).await;
    start(&mut viewer, &attached).await;
    viewer.connect().await;
    told(&mut watcher, &viewer, &notice("subscribed", [])).await;

    let sent = Layers::Svc;
    let temporal = layer("temporal_layer", 2);
    let said = layers_told(&mut al, sent, &mut viewer, &temporal).await;
    let spatial = said.iter().any(|data| data["spatial_layer"].is_u64());
    assert!(spatial, "{said:?}");
    let configure = json!({ "request": "configure", "streams": [{ "mid": "1", "spatial_layer": 0, "temporal_layer": 0,
                            "min_delay": 5, "max_delay": 20 }] });
    viewer.caller.message(configure.clone(), None).await;
    viewer
        .caller
        .until("/plugindata/data/configured", "ok")
        .await;
    let is_lowest = |state: &Value| {
        let svc = &state["streams"][1]["svc"];
        (svc["spatial-layer"] == 0) && (svc["temporal-layer"] == 0)
    };
    until(async || {
        al.picture(sent).await;
        tokio::join!(al.turn(), viewer.turn());
        is_lowest(&server.state(&viewer.caller).await)
    })
    .await;
    while viewer.caller.pending().is_some() {}
    viewer.caller.message(configure, None).await;
    for name in ["spatial_layer", "temporal_layer"] {
        viewer.expect(&layer(name, 0)).await;
    }
    viewer.expect(&event([("configured", is("ok"))])).await;
    let delay = object([("min-delay", is(5)), ("max-delay", is(20))]);
    let now = with_reason(svc((0, 0), (0, 0)));
    let shape = video(true, now).and([("playout-delay", delay)]);
    shape.check(&server.state(&viewer.caller).await["streams"][1]);

    let switch =
        json!({ "request": "switch", "streams": [{ "feed": 2, "mid": "1", "sub_mid": "1" }] });
    viewer.caller.message(switch, None).await;
    let switched = viewer.data().await;
    let streams = is(switched["streams"].clone());
    let shape = event([
        ("switched", is("ok")),
        ("changes", is(1)),
        ("streams", streams.clone()),
    ]);
    shape.check(&switched);
    assert_eq!(switched["streams"][1]["feed_id"], 2);
    told(&mut watcher, &viewer, &notice("switched", [])).await;
    let switch = json!({ "request": "switch", "feed": 1 });
    viewer.caller.message(switch, None).await;
    let switched = viewer.data().await;
    let shape = event([
        ("switched", is("ok")),
        ("changes", is(1)),
        ("streams", is(switched["streams"].clone())),
        ("id", is(1)),
        ("display", is("Al")),
    ]);
    shape.check(&switched);
    told(&mut watcher, &viewer, &notice("switched", [])).await;

    // An offer with new credentials, on request.
    let restart = json!({ "request": "configure", "restart": true });
    viewer.caller.message(restart, None).await;
    let configured = viewer.next().await;
    event([("configured", is("ok"))]).check(&configured["plugindata"]["data"]);
    offer().check(&configured["jsep"]);
}
