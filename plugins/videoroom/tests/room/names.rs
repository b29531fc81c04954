//! Ids that are texts, in all messages.

use portunus_core::testing::{Line, TestClient, jsep};
use portunus_videoroom::VideoRoomConfig;
use serde_json::{Value, json};

use crate::world::{AV, World, answer_to, ask, code, merge, sync};

async fn world() -> World {
    let world = World::empty(VideoRoomConfig {
        string_ids: true,
        ..VideoRoomConfig::default()
    });
    let create = json!({ "request": "create", "room": "hall" });
    let created = sync(&mut world.attach().await, create).await;
    assert_eq!(created["room"], "hall", "{created}");
    world
}

fn in_hall(request: &str, members: Value) -> Value {
    let mut body = json!({ "request": request, "room": "hall" });
    merge(&mut body, members);
    body
}

async fn publisher(world: &World, id: &str, lines: &[Line]) -> TestClient {
    let mut client = world.attach().await;
    let join = in_hall(
        "joinandconfigure",
        json!({ "ptype": "publisher", "id": id }),
    );
    client
        .message(join, Some(jsep("offer", "pub1", lines)))
        .await;
    let joined = client.event().await;
    assert_eq!(joined["id"], id, "{joined}");
    world.up(*world.server.peers().last().unwrap()).await;
    assert_eq!(client.next().await["janus"], "webrtcup");
    client
}

/// Receives all of these publishers.
async fn viewer(world: &World, feeds: &[&str]) -> TestClient {
    let mut client = world.attach().await;
    let streams: Vec<_> = feeds.iter().map(|feed| json!({ "feed": feed })).collect();
    let join = in_hall("join", json!({ "ptype": "subscriber", "streams": streams }));
    client.message(join, None).await;
    let (attached, offer) = client.event_with_jsep().await;
    assert_eq!(attached["videoroom"], "attached", "{attached}");
    let answer = answer_to(offer.unwrap()["sdp"].as_str().unwrap());
    client
        .message(json!({ "request": "start" }), Some(answer))
        .await;
    assert_eq!(client.event().await["started"], "ok");
    client
}

#[tokio::test]
async fn text_names_who_is_switched_to_moderated_and_kicked() {
    let world = world().await;
    let mut al = publisher(&world, "al", &AV).await;
    let mut bo = publisher(&world, "bo", &AV).await;
    assert_eq!(al.event().await["publishers"][0]["id"], "bo");
    let mut cy = viewer(&world, &["al"]).await;
    let switch = json!({ "request": "switch",
                         "streams": [{ "feed": "bo", "mid": "1", "sub_mid": "1" }] });
    let switched = ask(&mut cy, switch).await;
    assert_eq!(switched["changes"], 1, "{switched}");
    assert_eq!(switched["streams"][1]["feed_id"], "bo");
    let switched = ask(&mut cy, json!({ "request": "switch", "feed": "bo" })).await;
    assert_eq!(
        (&switched["changes"], &switched["id"]),
        (&json!(1), &json!("bo"))
    );
    let number = json!({ "request": "switch", "feed": 7 });
    assert_eq!(code(&ask(&mut cy, number).await), 430);

    let mut admin = world.attach().await;
    let mute = |id: Value| in_hall("moderate", json!({ "id": id, "mid": "0", "mute": true }));
    assert_eq!(code(&sync(&mut admin, mute(json!(1))).await), 430);
    sync(&mut admin, mute(json!("bo"))).await;
    for client in [&mut al, &mut bo] {
        let event = client.event().await;
        assert_eq!(
            (&event["room"], &event["id"]),
            (&json!("hall"), &json!("bo"))
        );
    }
    sync(&mut admin, in_hall("kick", json!({ "id": "bo" }))).await;
    assert_eq!(al.event().await["kicked"], "bo");
}

#[tokio::test]
async fn text_names_publishers_of_other_servers() {
    let world = world().await;
    let mut al = publisher(&world, "al", &AV).await;
    let mut admin = world.attach().await;
    let streams = json!([{ "type": "video", "mid": "0", "mindex": 0, "codec": "vp8" }]);
    let add = |id: Value| {
        in_hall(
            "add_remote_publisher",
            json!({ "id": id, "streams": streams }),
        )
    };
    assert_eq!(code(&sync(&mut admin, add(json!(9))).await), 430);
    assert_eq!(sync(&mut admin, add(json!("afar"))).await["id"], "afar");
    assert_eq!(al.event().await["publishers"][0]["id"], "afar");
    let publish = in_hall(
        "publish_remotely",
        json!({ "publisher_id": "al", "remote_id": "b", "host": "127.0.0.1", "port": 6_000 }),
    );
    assert_eq!(sync(&mut admin, publish).await["id"], "al");
    let listed = sync(
        &mut admin,
        in_hall("listremotes", json!({ "publisher_id": "al" })),
    )
    .await;
    assert_eq!(listed["list"][0]["remote_id"], "b", "{listed}");
    let removed = sync(
        &mut admin,
        in_hall("remove_remote_publisher", json!({ "id": "afar" })),
    )
    .await;
    assert_eq!(removed["videoroom"], "success");
    assert_eq!(al.event().await["leaving"], "afar");
}

#[tokio::test]
async fn channels_are_called_after_publishers_whose_ids_may_be_long() {
    let world = world().await;
    let longest = "é".repeat(512);
    let _al = publisher(&world, &longest, &[Line::Data]).await;
    let _viewer = viewer(&world, &[&longest]).await;
    let routes = world.requested().routes;
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].options.label.as_deref(), Some(longest.as_str()));
    // No channel could be called so.
    let long = format!("{longest}x");
    let join = in_hall("join", json!({ "ptype": "publisher", "id": long }));
    let mut client = world.attach().await;
    assert_eq!(code(&ask(&mut client, join).await), 430);
    let streams = json!([{ "type": "data", "mid": "0", "mindex": 0 }]);
    let add = in_hall(
        "add_remote_publisher",
        json!({ "id": long, "streams": streams }),
    );
    assert_eq!(code(&sync(&mut client, add).await), 430);
}
