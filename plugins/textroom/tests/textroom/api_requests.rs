//! Requests of members by the Janus API, with `textroom` besides `request`.

use std::net::Ipv4Addr;

use portunus_core::Requester;
use portunus_core::testing::TestClient;
use portunus_textroom::TextRoomConfig;
use serde_json::{Value, json};

use crate::world::{PACKAGE, ROOM, World, code, merge, timeless};

/// Sends a request as Janus expects it: `request` is one that manages rooms, and `textroom` is the
/// actual one.
async fn ask(client: &mut TestClient, textroom: &str, members: Value) -> Value {
    let mut body = json!({ "request": "list", "textroom": textroom, "room": ROOM });
    merge(&mut body, members);
    client.request(body).await
}

#[tokio::test]
async fn a_member_without_a_data_channel_joins_writes_and_leaves() {
    let world = World::new(json!({})).await;
    let mut al = world.member("al").await;
    al.skip(&world).await;
    let mut bo = world.attach().await;
    let answer = ask(
        &mut bo,
        "join",
        json!({ "username": "bo", "display": "Bo" }),
    )
    .await;
    let participants = json!([{ "username": "al" }]);
    let joined = json!({ "textroom": "success", "participants": participants });
    assert_eq!(answer, joined);
    let joined = json!({ "textroom": "join", "room": ROOM, "username": "bo", "display": "Bo" });
    assert_eq!(al.next(&world).await, joined);

    // Names of requests ignore case. The API answers each request, whatever `ack` is.
    let said = json!({ "text": "hi", "ack": false });
    let answer = ask(&mut bo, "MESSAGE", said).await;
    assert_eq!(answer, json!({ "textroom": "success" }));
    let said = json!({ "textroom": "message", "room": ROOM, "from": "bo", "text": "hi" });
    assert_eq!(timeless(al.next(&world).await), said);
    let answer = ask(
        &mut bo,
        "message",
        json!({ "text": "psst", "tos": ["al", "cy"] }),
    )
    .await;
    assert_eq!(
        answer,
        json!({ "textroom": "success", "sent": { "al": true, "cy": false } })
    );
    assert_eq!(al.next(&world).await["whisper"], true);

    let answer = ask(&mut bo, "leave", json!({})).await;
    assert_eq!(answer, json!({ "textroom": "success" }));
    let left = json!({ "textroom": "leave", "room": ROOM, "username": "bo" });
    assert_eq!(al.next(&world).await, left);
    assert_eq!(code(&ask(&mut bo, "leave", json!({})).await), 422);
}

#[tokio::test]
async fn a_member_without_a_data_channel_leaves_with_its_handle() {
    let world = World::new(json!({})).await;
    let mut al = world.member("al").await;
    al.skip(&world).await;
    let mut bo = world.attach().await;
    ask(&mut bo, "join", json!({ "username": "bo" })).await;
    assert_eq!(al.next(&world).await["textroom"], "join");
    let state = world.state(&bo).await;
    assert_eq!(state["rooms"], json!([{ "room": ROOM, "username": "bo" }]));
    bo.on_handle("detach", json!({})).await;
    let left = json!({ "textroom": "leave", "room": ROOM, "username": "bo" });
    assert_eq!(al.next(&world).await, left);
}

#[tokio::test]
async fn who_joins_by_the_api_reads_on_the_data_channel() {
    let world = World::new(json!({ "history": 3 })).await;
    let mut al = world.member("al").await;
    al.say(&world, "before").await;
    let client = world.attach().await;
    let mut bo = world.connect(client).await;
    let answer = ask(&mut bo.client, "join", json!({ "username": "bo" })).await;
    assert_eq!(answer["participants"], json!([{ "username": "al" }]));
    assert_eq!(bo.next(&world).await["text"], "before");
    assert_eq!(bo.next(&world).await["textroom"], "join");
    // The answer went by the API.
    bo.expect_silence(&world).await;
}

#[tokio::test]
async fn what_textroom_says_goes_before_what_request_says() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let listed = ask(&mut client, "listparticipants", json!({})).await;
    assert_eq!(listed["participants"], json!([]), "{listed}");
    let body = json!({ "request": "destroy", "textroom": "exists", "room": ROOM });
    assert_eq!(client.request(body.clone()).await["exists"], true);
    assert_eq!(client.request(body).await["exists"], true);
}

#[tokio::test]
async fn what_textroom_may_not_say_is_refused_as_on_a_data_channel() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for (textroom, expected, text) in [
        (json!("Dance"), 415, "Unsupported request Dance"),
        (json!("setup"), 415, "Unsupported request setup"),
        (
            json!(1),
            414,
            "Invalid element type (textroom should be a string)",
        ),
    ] {
        let body = json!({ "request": "list", "textroom": textroom });
        let answer = client.request(body).await;
        assert_eq!(code(&answer), expected, "{answer}");
        assert_eq!(answer["error"], text);
    }
    let long = json!({ "username": "u".repeat(300) });
    assert_eq!(code(&ask(&mut client, "join", long).await), 414);
    // `request` still has to be one that manages rooms.
    let body = json!({ "request": "join", "textroom": "join", "room": ROOM, "username": "al" });
    assert_eq!(
        client.request(body).await["error"],
        "Unknown request 'join'"
    );
}

#[tokio::test]
async fn textroom_is_no_way_around_rights_and_limits() {
    let world = World::empty(TextRoomConfig {
        message_burst: 2,
        message_rate: 1,
        ..TextRoomConfig::default()
    });
    world.create(json!({ "pin": "1234" })).await;
    let stranger = Requester::at(Ipv4Addr::new(192, 0, 2, 1).into(), false);
    let mut client = world.server.attach_from(stranger, PACKAGE).await;
    let answer = ask(
        &mut client,
        "create",
        json!({ "room": 7, "permanent": true }),
    )
    .await;
    assert_eq!(code(&answer), 419, "{answer}");
    let join = |pin| json!({ "username": "al", "pin": pin });
    assert_eq!(code(&ask(&mut client, "join", join("1")).await), 419);
    assert_eq!(
        ask(&mut client, "join", join("1234")).await["textroom"],
        "success"
    );
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(ask(&mut client, "message", json!({ "text": "hi" })).await);
    }
    assert_eq!(answers[1]["textroom"], "success");
    assert_eq!(code(&answers[2]), 499, "{answers:?}");
}
