//! Every error code, and nonsense in every member.

use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, sync};

#[tokio::test]
async fn requests_that_are_answered_at_once() {
    let world = World::new(json!({ "secret": "s" })).await;
    let _al = world.publisher(1, &AV).await;
    let mut client = world.attach().await;
    let room = |request: &str| json!({ "request": request, "room": ROOM, "secret": "s" });
    let with = |request: &str, members: Value| {
        let mut body = room(request);
        crate::world::merge(&mut body, members);
        body
    };
    for (body, expected) in [
        (json!({}), 429),
        (json!({ "request": 1 }), 430),
        (json!({ "request": "dance" }), 423),
        (json!({ "request": "create", "room": ROOM }), 427),
        (json!({ "request": "create", "room": -1 }), 430),
        (json!({ "request": "create", "room": "x" }), 430),
        (json!({ "request": "create", "videocodec": "mpeg4" }), 430),
        (json!({ "request": "create", "permanent": true }), 499),
        (json!({ "request": "create", "record": 1 }), 430),
        (
            json!({ "request": "create", "dummy_publisher": true, "dummy_streams": [{}] }),
            429,
        ),
        (json!({ "request": "create", "allowed": [1] }), 430),
        (json!({ "request": "create", "allowed": "x" }), 430),
        (json!({ "request": "edit" }), 429),
        (json!({ "request": "edit", "room": 9 }), 426),
        (json!({ "request": "edit", "room": ROOM }), 429),
        (json!({ "request": "edit", "room": ROOM, "secret": 1 }), 430),
        (
            json!({ "request": "edit", "room": ROOM, "secret": "x" }),
            433,
        ),
        (with("edit", json!({ "new_publishers": "x" })), 430),
        (with("edit", json!({ "permanent": true })), 499),
        (json!({ "request": "destroy", "room": 9 }), 426),
        (json!({ "request": "destroy", "room": ROOM }), 429),
        (with("destroy", json!({ "permanent": true })), 499),
        (json!({ "request": "exists" }), 429),
        (json!({ "request": "exists", "room": null }), 430),
        (json!({ "request": "allowed", "room": ROOM }), 429),
        (room("allowed"), 429),
        (with("allowed", json!({ "action": "x" })), 430),
        (room("kick"), 429),
        (with("kick", json!({ "id": "x" })), 430),
        (with("kick", json!({ "id": 9 })), 428),
        (room("moderate"), 429),
        (with("moderate", json!({ "id": 1, "mid": "0" })), 429),
        (
            with("moderate", json!({ "id": 9, "mid": "0", "mute": true })),
            428,
        ),
        (
            with("moderate", json!({ "id": 1, "mid": "9", "mute": true })),
            428,
        ),
        (
            with("moderate", json!({ "id": 1, "mid": 0, "mute": true })),
            430,
        ),
        (json!({ "request": "enable_recording" }), 429),
        (room("enable_recording"), 429),
        (with("enable_recording", json!({ "record": 1 })), 430),
        (json!({ "request": "listparticipants" }), 429),
        (json!({ "request": "listparticipants", "room": 9 }), 426),
        (room("rtp_forward"), 429),
        (json!({ "request": "rtp_forward", "room": 9 }), 426),
        (
            with(
                "stop_rtp_forward",
                json!({ "publisher_id": 1, "stream_id": 5 }),
            ),
            428,
        ),
        (with("stop_rtp_forward", json!({ "publisher_id": 1 })), 429),
        (json!({ "request": "listforwarders", "room": ROOM }), 429),
        (room("add_remote_publisher"), 429),
        (with("update_remote_publisher", json!({ "id": 9 })), 428),
        (with("remove_remote_publisher", json!({ "id": 9 })), 428),
        (room("publish_remotely"), 429),
        (
            with(
                "unpublish_remotely",
                json!({ "publisher_id": 1, "remote_id": "r" }),
            ),
            428,
        ),
        (with("listremotes", json!({ "publisher_id": 9 })), 428),
    ] {
        let answer = sync(&mut client, body.clone()).await;
        assert_eq!(code(&answer), expected, "{body}: {answer}");
    }
    let none = json!({ "videoroom": "success", "record": false });
    let recording = with("enable_recording", json!({ "record": false }));
    assert_eq!(sync(&mut client, recording).await, none);
    let forwarders = json!({ "videoroom": "forwarders", "room": ROOM, "publishers": [] });
    assert_eq!(sync(&mut client, room("listforwarders")).await, forwarders);
    let remotes = json!({ "videoroom": "success", "room": ROOM, "id": 1, "list": [] });
    let list = with("listremotes", json!({ "publisher_id": 1 }));
    assert_eq!(sync(&mut client, list).await, remotes);
}

#[tokio::test]
async fn joining() {
    let world = World::new(json!({ "pin": "p" })).await;
    let _al = world
        .publisher_with(json!({ "id": 1, "pin": "p" }), jsep("offer", "alal", &AV))
        .await;
    let (_bo, _) = world.join(json!({ "id": 2, "pin": "p" })).await;
    let mut client = world.attach().await;
    let join = |members: Value| {
        let mut body = json!({ "request": "join", "room": ROOM, "pin": "p", "ptype": "publisher" });
        crate::world::merge(&mut body, members);
        body
    };
    let subscribe = |members: Value| {
        let mut body = join(members);
        body["ptype"] = "subscriber".into();
        body
    };
    for (body, expected) in [
        (json!({ "request": "configure" }), 424),
        (json!({ "request": "start" }), 424),
        (json!({ "request": "join" }), 429),
        (join(json!({ "room": "x" })), 430),
        (join(json!({ "room": 9 })), 426),
        (join(json!({ "room": 0 })), 426),
        (
            json!({ "request": "join", "room": ROOM, "ptype": "publisher" }),
            429,
        ),
        (join(json!({ "pin": "x" })), 433),
        (join(json!({ "pin": 1 })), 430),
        (join(json!({ "ptype": "listener" })), 430),
        (join(json!({ "ptype": 1 })), 430),
        (join(json!({ "id": "x" })), 430),
        (join(json!({ "id": 1 })), 436),
        (join(json!({ "display": 1 })), 430),
        (join(json!({ "metadata": "x" })), 430),
        (join(json!({ "token": 1 })), 430),
        (subscribe(json!({})), 429),
        (subscribe(json!({ "streams": [] })), 430),
        (subscribe(json!({ "streams": {} })), 430),
        (subscribe(json!({ "streams": [1] })), 430),
        (subscribe(json!({ "streams": [{}] })), 429),
        (subscribe(json!({ "streams": [{ "feed": 9 }] })), 428),
        (subscribe(json!({ "streams": [{ "feed": 2 }] })), 428),
        (
            subscribe(json!({ "streams": [{ "feed": 1, "mid": "9" }] })),
            428,
        ),
        (
            subscribe(json!({ "streams": [{ "feed": 1, "mid": 0 }] })),
            430,
        ),
        (
            subscribe(json!({ "streams": [{ "feed": 1, "substream": 3 }] })),
            430,
        ),
        (
            subscribe(json!({ "streams": [{ "feed": 1, "temporal_layer": -1 }] })),
            430,
        ),
        (
            subscribe(json!({ "streams": [{ "feed": 1, "fallback": -1 }] })),
            430,
        ),
        (subscribe(json!({ "feed": 9 })), 428),
        (
            subscribe(json!({ "feed": 1, "offer_audio": false, "offer_video": false })),
            437,
        ),
        (subscribe(json!({ "feed": 1, "private_id": "x" })), 430),
    ] {
        let answer = ask(&mut client, body.clone()).await;
        assert_eq!(code(&answer), expected, "{body}: {answer}");
    }
    let offer = jsep("offer", "mine", &[Line::Audio]);
    client
        .message(subscribe(json!({ "feed": 1 })), Some(offer))
        .await;
    assert_eq!(code(&client.event().await), 423);
    // These mistakes do not affect a correct subscription.
    let attached = ask(&mut client, subscribe(json!({ "feed": 1 }))).await;
    assert_eq!(attached["videoroom"], "attached");
    assert_eq!(code(&ask(&mut client, join(json!({}))).await), 425);
}

#[tokio::test]
async fn requests_of_participants() {
    let world = World::new(json!({ "publishers": 1, "videocodec": "vp8,vp9" })).await;
    let mut al = world.publisher(1, &AV).await;
    for (body, expected) in [
        (
            json!({ "request": "join", "room": ROOM, "ptype": "publisher" }),
            425,
        ),
        (json!({ "request": "start" }), 423),
        (json!({ "request": "pause" }), 423),
        (json!({ "request": "switch" }), 423),
        (json!({ "request": "subscribe", "streams": [] }), 423),
        (json!({ "request": "publish" }), 434),
        (json!({ "request": "configure", "bitrate": -1 }), 430),
        (
            json!({ "request": "configure", "record": true, "filename": "../x" }),
            430,
        ),
        (json!({ "request": "configure", "filename": 1 }), 430),
        (
            json!({ "request": "configure", "streams": [{ "send": true }, { "mid": "0" }] }),
            430,
        ),
        (
            json!({ "request": "configure", "streams": [{ "mid": "9" }] }),
            428,
        ),
        (
            json!({ "request": "configure", "mid": "9", "send": true }),
            428,
        ),
        (
            json!({ "request": "configure", "descriptions": [{ "mid": "0" }] }),
            429,
        ),
        (
            json!({ "request": "configure", "audio_level_average": "x" }),
            430,
        ),
    ] {
        let answer = ask(&mut al.client, body.clone()).await;
        assert_eq!(code(&answer), expected, "{body}: {answer}");
    }
    let (mut bo, _) = world.join(json!({ "id": 2 })).await;
    let configure = json!({ "request": "configure" });
    assert_eq!(ask(&mut bo, configure.clone()).await["configured"], "ok");
    assert_eq!(
        code(&ask(&mut bo, json!({ "request": "unpublish" })).await),
        435
    );
    bo.message(configure.clone(), Some(jsep("offer", "bobo", &AV)))
        .await;
    assert_eq!(code(&bo.event().await), 432);
    let members = json!({ "body": configure, "jsep": jsep("answer", "bobo", &AV) });
    // The core has no offer for this answer.
    let refused = bo.on_handle("message", members).await;
    assert_eq!(refused["error"]["code"], 469, "{refused}");
    // A participant leaves, so there is room.
    ask(&mut al.client, json!({ "request": "leave" })).await;
    assert_eq!(bo.event().await["unpublished"], 1);
    assert_eq!(bo.event().await["leaving"], 1);
    bo.message(configure, Some(jsep("offer", "bob2", &AV)))
        .await;
    assert_eq!(bo.event().await["configured"], "ok");
}

#[tokio::test]
async fn requests_of_subscribers() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let list = |request: &str, streams: Value| json!({ "request": request, "streams": streams });
    for (body, expected) in [
        (json!({ "request": "publish" }), 423),
        (json!({ "request": "unpublish" }), 423),
        (
            json!({ "request": "join", "room": ROOM, "ptype": "subscriber" }),
            425,
        ),
        (json!({ "request": "subscribe" }), 429),
        (list("subscribe", json!([])), 430),
        (list("subscribe", json!([{ "feed": 9 }])), 428),
        (list("subscribe", json!([{ "feed": 1, "mid": "9" }])), 428),
        (json!({ "request": "unsubscribe" }), 429),
        (list("unsubscribe", json!([])), 430),
        (list("unsubscribe", json!([{}])), 429),
        (list("unsubscribe", json!([{ "sub_mid": 1 }])), 430),
        (json!({ "request": "update" }), 429),
        (json!({ "request": "update", "subscribe": [] }), 430),
        (json!({ "request": "switch" }), 429),
        (list("switch", json!([])), 430),
        (list("switch", json!([{ "feed": 1, "mid": "0" }])), 429),
        (
            list("switch", json!([{ "feed": 9, "mid": "0", "sub_mid": "0" }])),
            428,
        ),
        (
            list("switch", json!([{ "feed": 1, "mid": "9", "sub_mid": "0" }])),
            428,
        ),
        (json!({ "request": "switch", "feed": 9 }), 428),
        (list("configure", json!([{ "mid": "9" }])), 428),
        (
            list("configure", json!([{ "send": true }, { "send": true }])),
            430,
        ),
        (json!({ "request": "configure", "substream": 3 }), 430),
        (json!({ "request": "configure", "video": "x" }), 430),
    ] {
        let answer = ask(&mut viewer.client, body.clone()).await;
        assert_eq!(code(&answer), expected, "{body}: {answer}");
    }
    assert_eq!(world.routes(&viewer).len(), 2);
}

#[tokio::test]
async fn lists_without_end_are_refused_before_they_cost_anything() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let list = |entry: Value, count: usize| vec![entry; count];
    let unknown = list(json!({ "feed": 9, "mid": "9", "sub_mid": "9" }), 2_001);
    for (request, member) in [
        ("subscribe", "streams"),
        ("unsubscribe", "streams"),
        ("update", "subscribe"),
        ("switch", "streams"),
        ("configure", "streams"),
    ] {
        let body = json!({ "request": request, member: unknown });
        let answer = ask(&mut viewer.client, body).await;
        assert_eq!(code(&answer), 430, "{request}: {answer}");
    }
    // A short list may come to many streams.
    let all = json!({ "request": "subscribe", "streams": list(json!({ "feed": 1 }), 1_001) });
    assert_eq!(code(&ask(&mut viewer.client, all).await), 499);
    let state = world.state(&viewer.client).await;
    assert_eq!(state["streams"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn administrators_manage_rooms_and_nothing_else() {
    use portunus_core::{Plugin, Reply};
    let plugin = portunus_videoroom::VideoRoom::new(
        Default::default(),
        portunus_core::media::MediaPlane::detached().0,
        Default::default(),
    )
    .unwrap();
    let ask = |request: Value| match plugin.admin(request) {
        Some(Reply::Success(reply)) => reply,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ask(json!({ "request": "create", "room": 1 }))["videoroom"],
        "created"
    );
    assert_eq!(code(&ask(json!({ "request": "join", "room": 1 }))), 423);
    assert_eq!(code(&ask(json!({}))), 429);
    assert_eq!(code(&ask(json!(3))), 422);
}

#[tokio::test]
async fn nonsense_in_every_member_is_answered() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let nonsense = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([null]),
        json!({}),
        json!([{ "feed": {}, "mid": [] }]),
    ];
    let members = [
        "room",
        "id",
        "secret",
        "display",
        "metadata",
        "bitrate",
        "record",
        "filename",
        "streams",
        "descriptions",
        "mid",
        "send",
        "keyframe",
        "min_delay",
        "max_delay",
        "substream",
        "temporal",
        "fallback",
        "feed",
        "subscribe",
        "unsubscribe",
        "restart",
        "update",
        "audio",
    ];
    let requests = [
        "configure",
        "start",
        "pause",
        "subscribe",
        "unsubscribe",
        "update",
        "switch",
        "publish",
    ];
    for request in requests {
        for member in members {
            for value in &nonsense {
                let body = json!({ "request": request, "mid": "0", member: value });
                for client in [&mut al.client, &mut viewer.client] {
                    send(client, body.clone()).await;
                }
            }
        }
    }
    for (request, done, client) in [
        ("configure", "configured", &mut al.client),
        ("pause", "paused", &mut viewer.client),
    ] {
        send(client, json!({ "request": request })).await;
        while client.next().await["plugindata"]["data"][done] != "ok" {}
    }
}

/// Sends a request and reads up to its acknowledgement.
async fn send(client: &mut TestClient, body: Value) {
    let mut message = client.on_handle("message", json!({ "body": body })).await;
    while message["janus"] != "ack" {
        assert_ne!(message["janus"], "error", "{body}: {message}");
        message = client.next().await;
    }
}
