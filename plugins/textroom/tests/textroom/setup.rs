//! The PeerConnection.

use portunus_core::testing::{Line, jsep};
use serde_json::{Value, json};

use crate::world::{World, code};

/// Sends a request that is answered by an event.
async fn ask(
    client: &mut portunus_core::testing::TestClient,
    request: &str,
) -> (Value, Option<Value>) {
    client.message(json!({ "request": request }), None).await;
    client.event_with_jsep().await
}

/// The id and version of a description, and its user fragment.
fn session(jsep: &Option<Value>) -> (String, u64, String) {
    let sdp = jsep.as_ref().unwrap()["sdp"].as_str().unwrap();
    let value = |prefix: &str| {
        sdp.lines()
            .find_map(|line| line.strip_prefix(prefix))
            .unwrap()
    };
    let mut origin = value("o=").split(' ').skip(1);
    let id = origin.next().unwrap().to_owned();
    let version = origin.next().unwrap().parse().unwrap();
    (id, version, value("a=ice-ufrag:").to_owned())
}

#[tokio::test]
async fn the_server_offers_data_channels_alone() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let (event, offer) = ask(&mut client, "SetUp").await;
    assert_eq!(event, json!({ "textroom": "event", "result": "ok" }));
    let sdp = offer.unwrap()["sdp"].as_str().unwrap().to_owned();
    let media: Vec<_> = sdp.lines().filter(|line| line.starts_with("m=")).collect();
    assert_eq!(media.len(), 1, "{sdp}");
    assert!(media[0].starts_with("m=application "), "{sdp}");
    assert!(sdp.contains("a=sctp-port:5000"), "{sdp}");
}

#[tokio::test]
async fn a_restart_has_new_credentials_and_the_next_version() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let (refused, _) = ask(&mut client, "restart").await;
    assert_eq!(code(&refused), 416);
    assert_eq!(refused["error"], "PeerConnection not setup");
    let (_, offer) = ask(&mut client, "setup").await;
    let first = session(&offer);
    let answer = jsep("answer", "one1", &[Line::Data]);
    client
        .message(json!({ "request": "ack" }), Some(answer))
        .await;
    client.event().await;
    let (event, offer) = ask(&mut client, "restart").await;
    assert_eq!(event, json!({ "textroom": "event", "result": "ok" }));
    let second = session(&offer);
    assert_eq!((&second.0, second.1), (&first.0, first.1 + 1));
    assert_ne!(second.2, first.2);
    let answer = jsep("answer", "two2", &[Line::Data]);
    client
        .message(json!({ "request": "ack" }), Some(answer))
        .await;
    assert_eq!(client.event().await["result"], "ok");
}

#[tokio::test]
async fn a_handle_has_one_peer_connection_in_its_life() {
    let world = World::new(json!({})).await;
    let mut guest = world.guest().await;
    let (refused, offer) = ask(&mut guest.client, "setup").await;
    assert_eq!((code(&refused), offer), (416, None));
    assert_eq!(refused["error"], "PeerConnection already setup");
    assert_eq!(
        guest.client.on_handle("hangup", json!({})).await["janus"],
        "success"
    );
    assert_eq!(guest.client.next().await["janus"], "hangup");
    for (request, text) in [
        ("setup", "PeerConnection already setup"),
        ("restart", "PeerConnection not setup"),
    ] {
        let (refused, _) = ask(&mut guest.client, request).await;
        assert_eq!((code(&refused), &refused["error"]), (416, &json!(text)));
    }
}

#[tokio::test]
async fn offers_of_clients_are_not_used() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let offer = || Some(jsep("offer", "mine", &[Line::Audio, Line::Data]));
    client.message(json!({ "request": "ack" }), offer()).await;
    assert_eq!(code(&client.event().await), 414);
    client.message(json!({ "request": "setup" }), offer()).await;
    let (event, ours) = client.event_with_jsep().await;
    assert_eq!(event["result"], "ok");
    let ours = ours.unwrap();
    assert_eq!(ours["type"], "offer");
    assert!(!ours["sdp"].as_str().unwrap().contains("m=audio"), "{ours}");
    let answer = jsep("answer", "view", &[Line::Data]);
    client
        .message(json!({ "request": "ack" }), Some(answer))
        .await;
    assert_eq!(client.event().await["result"], "ok");
    // An answer with another request is ignored.
    let list = json!({ "body": { "request": "list" }, "jsep": offer() });
    let reply = client.on_handle("message", list).await;
    assert_eq!(
        reply["plugindata"]["data"]["textroom"], "success",
        "{reply}"
    );
    assert_eq!(ask(&mut client, "restart").await.0["result"], "ok");
}

#[tokio::test]
async fn whoever_loses_the_connection_or_detaches_leaves_all_rooms() {
    let world = World::new(json!({})).await;
    world.create(json!({ "room": 5 })).await;
    for how in ["hangup", "detach"] {
        let mut al = world.member("al").await;
        al.ask(&world, "join", json!({ "room": 5, "username": "al" }))
            .await;
        let mut bo = world.member("bo").await;
        bo.ask(&world, "join", json!({ "room": 5, "username": "bo" }))
            .await;
        al.client.on_handle(how, json!({})).await;
        for room in [1234, 5] {
            let left = json!({ "textroom": "leave", "room": room, "username": "al" });
            assert_eq!(bo.next(&world).await, left);
        }
        bo.expect_silence(&world).await;
        bo.client.on_handle("detach", json!({})).await;
    }
}
