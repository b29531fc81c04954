//! Everything that is refused, with its code.

use portunus_core::Networks;
use portunus_core::testing::{Line, jsep};
use portunus_streaming::StreamingConfig;
use serde_json::{Value, json};

use crate::world::{World, camera, create, refused};

#[tokio::test]
async fn requests_that_make_no_sense() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    for (code, body) in [
        (453, json!({})),
        (454, json!({ "request": 1 })),
        (452, json!({ "request": "dance" })),
        (453, json!({ "request": "info" })),
        (454, json!({ "request": "info", "id": "7" })),
        (455, json!({ "request": "info", "id": 8 })),
        (455, json!({ "request": "edit", "id": 8 })),
        (455, json!({ "request": "destroy", "id": 8 })),
        (455, json!({ "request": "enable", "id": 8 })),
        (455, json!({ "request": "disable", "id": 8 })),
        (455, json!({ "request": "kick_all", "id": 8 })),
        (
            455,
            json!({ "request": "recording", "id": 8, "action": "start" }),
        ),
        (
            454,
            json!({ "request": "edit", "id": 7, "new_description": 1 }),
        ),
        (
            470,
            json!({ "request": "edit", "id": 7, "permanent": true }),
        ),
        (
            470,
            json!({ "request": "destroy", "id": 7, "permanent": true }),
        ),
        (453, json!({ "request": "recording", "id": 7 })),
        (
            454,
            json!({ "request": "recording", "id": 7, "action": "dance" }),
        ),
        (
            452,
            json!({ "request": "recording", "id": 7, "action": "start" }),
        ),
        (
            459,
            json!({ "request": "recording", "id": 7, "action": "start",
                      "media": [{ "mid": "v", "filename": "/tmp/x" }] }),
        ),
        (
            459,
            json!({ "request": "recording", "id": 7, "action": "start", "video": "/tmp/x" }),
        ),
        (455, json!({ "request": "watch", "id": 8 })),
        (453, json!({ "request": "watch" })),
        (454, json!({ "request": "watch", "id": "7" })),
        (454, json!({ "request": "watch", "id": 7, "media": "v" })),
        (454, json!({ "request": "watch", "id": 7, "media": [1] })),
        (454, json!({ "request": "watch", "id": 7, "substream": 3 })),
        (
            452,
            json!({ "request": "watch", "id": 7, "media": ["none"] }),
        ),
        (
            452,
            json!({ "request": "watch", "id": 7, "offer_audio": false, "offer_video": false,
                      "offer_data": false }),
        ),
        (455, json!({ "request": "watch", "id": 7, "restart": true })),
        (455, json!({ "request": "start" })),
        (455, json!({ "request": "pause" })),
        (455, json!({ "request": "configure" })),
        (455, json!({ "request": "switch", "id": 7 })),
        (452, json!({ "request": "publish", "id": 7 })),
        (460, json!({ "request": "unpublish" })),
    ] {
        assert_eq!(refused(&mut client, body.clone()).await, code, "{body}");
    }
    let stop = json!({ "request": "recording", "id": 7, "action": "stop", "video": true });
    assert_eq!(client.request(stop).await, json!({ "streaming": "ok" }));
}

#[tokio::test]
async fn mountpoints_that_cannot_be() {
    let world = World::new().await;
    let mut client = world.client().await;
    let created = create(&mut client, camera(7)).await;
    let port = created["stream"]["ports"][0]["port"].clone();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = camera(9);
        change(&mut body);
        body
    };
    for (code, body) in [
        (456, camera(7)),
        (454, with(&|body| body["type"] = json!("rtmp"))),
        (453, json!({ "request": "create" })),
        (456, with(&|body| body["media"] = json!([]))),
        (456, with(&|body| body["media"][0]["port"] = port.clone())),
        (
            456,
            with(&|body| body["media"][0]["iface"] = json!("nosuch0")),
        ),
        (456, with(&|body| body["media"][0]["codec"] = json!("mp3"))),
        (
            456,
            with(&|body| {
                body["srtpsuite"] = json!(64);
                body["srtpcrypto"] = json!("WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN");
            }),
        ),
        (
            456,
            with(&|body| {
                body["media"][1]["codec"] = json!("h264");
                body["media"][1]["h264sps"] = json!("!");
            }),
        ),
        (470, with(&|body| body["permanent"] = json!(true))),
    ] {
        assert_eq!(refused(&mut client, body.clone()).await, code, "{body}");
    }
    // Each failure has left the id free, and no port in use.
    assert_eq!(world.server.requested().ingests.len(), 3);
    create(&mut client, camera(9)).await;
}

#[tokio::test]
async fn creating_needs_the_admin_key_if_there_is_one() {
    let world = World::with(StreamingConfig {
        admin_key: Some("key".into()),
        ..StreamingConfig::default()
    })
    .await;
    let mut client = world.client().await;
    let mut body = camera(7);
    assert_eq!(refused(&mut client, body.clone()).await, 453);
    body["admin_key"] = json!("no");
    assert_eq!(refused(&mut client, body.clone()).await, 457);
    body["admin_key"] = json!("key");
    create(&mut client, body).await;
}

#[tokio::test]
async fn servers_outside_of_the_networks_that_are_allowed_are_not_connected_to() {
    let world = World::with(StreamingConfig {
        outgoing: Networks(vec!["198.51.100.0/24".parse().unwrap()]),
        ..StreamingConfig::default()
    })
    .await;
    let mut client = world.client().await;
    for url in [
        "rtsp://127.0.0.1:1/a",
        "rtsp://localhost:1/a",
        "rtsp://[::1]:1/a",
    ] {
        for failcheck in [true, false] {
            let body = json!({ "request": "create", "type": "rtsp", "url": url, "video": true,
                               "rtsp_failcheck": failcheck });
            // Not even later.
            assert_eq!(refused(&mut client, body).await, 456, "{url}");
        }
    }
}

#[tokio::test]
async fn pins_and_descriptions_of_watchers_are_checked() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["pin"] = json!("1234");
    create(&mut client, body).await;
    let watch = |pin: Value| json!({ "request": "watch", "id": 7, "pin": pin });
    let without = json!({ "request": "watch", "id": 7 });
    assert_eq!(refused(&mut client, without).await, 453);
    assert_eq!(refused(&mut client, watch(json!("4321"))).await, 457);
    assert_eq!(refused(&mut client, watch(json!(1234))).await, 454);
    // A WHEP client whose offer fits nothing.
    let offer = jsep("offer", "abcd", &[Line::Audio, Line::Video]);
    let mut other = camera(8);
    other["media"] = json!([{ "type": "video", "mid": "v", "port": 0, "codec": "av1" }]);
    create(&mut client, other).await;
    let body = json!({ "request": "watch", "id": 8 });
    client.message(body, Some(offer)).await;
    assert_eq!(client.event().await["error_code"], 452);
}
