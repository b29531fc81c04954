//! Limits of rates and of messages.

use std::time::Duration;

use portunus_core::media::DataPayload;
use portunus_textroom::TextRoomConfig;
use serde_json::{Value, json};

use crate::world::{Guest, ROOM, World, code};

fn limited() -> TextRoomConfig {
    TextRoomConfig {
        message_rate: 10,
        message_burst: 20,
        byte_rate: 1_000,
        byte_burst: 4_000,
        max_message: 2_000,
        ..TextRoomConfig::default()
    }
}

/// Sends a message `count` times. Returns the number of refusals.
async fn flood(world: &World, guest: &mut Guest, text: &str, times: usize) -> usize {
    let mut refused = 0;
    for _ in 0..times {
        let answer = guest.say(world, text).await;
        if answer["textroom"] == "error" {
            assert_eq!(code(&answer), 499, "{answer}");
            refused += 1;
        }
    }
    refused
}

#[tokio::test(start_paused = true)]
async fn a_member_who_floods_gets_errors_and_others_hear_what_was_let_through() {
    let world = World::empty(limited());
    world.create(json!({})).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    // The join counts as one of twenty.
    assert_eq!(flood(&world, &mut al, "hi", 100).await, 81);
    for _ in 0..19 {
        assert_eq!(bo.next(&world).await["text"], "hi");
    }
    bo.expect_silence(&world).await;
    // Others are not affected.
    assert_eq!(bo.say(&world, "calm").await["textroom"], "success");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(flood(&world, &mut al, "hi", 20).await, 10);
    // Nor are requests by the API.
    let announce = json!({ "request": "announcement", "room": ROOM, "text": "x" });
    let answer = al.client.request(announce).await;
    assert_eq!(answer["textroom"], "success");
}

#[tokio::test(start_paused = true)]
async fn bytes_are_limited_too() {
    let world = World::empty(limited());
    world.create(json!({})).await;
    let mut al = world.member("al").await;
    tokio::time::advance(Duration::from_secs(10)).await;
    let text = "x".repeat(1_000);
    assert_eq!(flood(&world, &mut al, &text, 10).await, 7);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(flood(&world, &mut al, &text, 2).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_message_is_refused_with_what_may_be() {
    let world = World::empty(limited());
    world.create(json!({})).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    let answer = al.say(&world, &"x".repeat(1_950)).await;
    assert_eq!(code(&answer), 414);
    let text = answer["error"].as_str().unwrap();
    assert!(text.contains("2000"), "{text}");
    bo.expect_silence(&world).await;
    tokio::time::advance(Duration::from_secs(10)).await;
    // A message that is much too long is not parsed.
    let long = json!({ "textroom": "message", "transaction": "t", "room": ROOM,
                       "text": "x".repeat(200_000) });
    al.skip(&world).await;
    let answer = al.tell(&world, long).await;
    assert_eq!((code(&answer), &answer["transaction"]), (414, &Value::Null));
}

#[tokio::test]
async fn names_and_other_texts_have_an_end() {
    let world = World::new(json!({})).await;
    let mut al = world.guest().await;
    let name = "x".repeat(257);
    for members in [
        json!({ "username": name }),
        json!({ "username": "al", "display": name }),
        json!({ "username": "al", "token": "x".repeat(4_097) }),
    ] {
        assert_eq!(code(&al.join(&world, members).await), 414);
    }
    let create = json!({ "room": 5, "description": "x".repeat(4_097) });
    assert_eq!(code(&al.ask(&world, "create", create).await.0), 414);
    let joined = al.join(&world, json!({ "username": &name[1..] })).await;
    assert_eq!(joined["textroom"], "success");
    let said = al.say(&world, &"x".repeat(60_000)).await;
    assert_eq!(said["textroom"], "success");
}

#[tokio::test]
async fn an_answer_that_no_data_channel_takes_is_refused() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for room in 1..=80_u64 {
        let create = json!({ "request": "create", "room": room, "description": "x".repeat(4_000) });
        client.request(create).await;
    }
    let mut al = world.guest().await;
    let (answer, _) = al.ask(&world, "list", json!({})).await;
    assert_eq!(code(&answer), 499, "{answer}");
    let list = client.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"].as_array().unwrap().len(), 81);
}

#[tokio::test]
async fn what_is_remembered_fits_into_a_data_channel() {
    let world = World::empty(TextRoomConfig {
        byte_rate: 0,
        ..TextRoomConfig::default()
    });
    world.create(json!({ "history": 1_000 })).await;
    let mut al = world.member("al").await;
    for _ in 0..40 {
        al.say(&world, &"x".repeat(60_000)).await;
    }
    let mut bo = world.guest().await;
    let (_, before) = bo.ask(&world, "join", json!({ "username": "bo" })).await;
    let bytes: usize = before.iter().map(|message| message.to_string().len()).sum();
    assert!((400_000..600_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn what_is_refused_and_ignored_is_counted() {
    let world = World::empty(limited());
    world.create(json!({})).await;
    let mut al = world.member("al").await;
    for payload in [
        DataPayload::Binary(vec![1]),
        DataPayload::Text("{".to_owned()),
    ] {
        world.write(&al, payload).await;
    }
    flood(&world, &mut al, "hi", 30).await;
    let counters = world.server.gateway.plugin_counters();
    let value = |name: &str| {
        let mut counters = counters.iter();
        let found = counters.find(|(_, counter)| counter.name == name);
        found.unwrap().1.value
    };
    assert_eq!(value("ignored_messages"), 2);
    let (taken, refused) = (value("messages"), value("refused_too_fast"));
    // A slow machine has given time for some more.
    assert!(taken >= 18 && refused > 0, "{taken}, {refused}");
    assert_eq!(taken + refused, 30);
}
