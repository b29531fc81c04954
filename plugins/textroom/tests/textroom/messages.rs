//! Messages of members.

use portunus_core::JsonForm;
use portunus_core::media::DataPayload;
use portunus_textroom::TextRoomConfig;
use serde_json::{Value, json};

use crate::world::{ROOM, World, code, timeless};

#[tokio::test]
async fn joining_is_told_to_all_and_answered_with_the_others() {
    let world = World::new(json!({})).await;
    let mut al = world.guest().await;
    let join = json!({ "username": "al", "display": "Al" });
    let (answer, before) = al.ask(&world, "join", join).await;
    let joined = json!({ "textroom": "join", "room": ROOM, "username": "al", "display": "Al" });
    assert_eq!(before, [joined]);
    let nobody = json!({ "textroom": "success", "participants": [], "transaction": "join" });
    assert_eq!(answer, nobody);

    let mut bo = world.guest().await;
    let (answer, before) = bo.ask(&world, "join", json!({ "username": "bo" })).await;
    let joined = json!({ "textroom": "join", "room": ROOM, "username": "bo" });
    assert_eq!(before.as_slice(), std::slice::from_ref(&joined));
    let al_there = json!([{ "username": "al", "display": "Al" }]);
    assert_eq!(answer["participants"], al_there);
    assert_eq!(al.next(&world).await, joined);

    let (answer, before) = bo.ask(&world, "leave", json!({})).await;
    let left = json!({ "textroom": "leave", "room": ROOM, "username": "bo" });
    assert_eq!(
        answer,
        json!({ "textroom": "success", "transaction": "leave" })
    );
    assert_eq!(before.as_slice(), std::slice::from_ref(&left));
    assert_eq!(al.next(&world).await, left);
    // The name is free for others, and the same handle may come back.
    assert_eq!(
        bo.join(&world, json!({ "username": "cy" })).await["textroom"],
        "success"
    );
    let mut cy = world.guest().await;
    assert_eq!(
        cy.join(&world, json!({ "username": "bo" })).await["textroom"],
        "success"
    );
}

#[tokio::test]
async fn a_message_goes_to_all_and_comes_to_its_author_before_the_answer() {
    let world = World::new(json!({})).await;
    let mut al = world
        .member_with(json!({ "username": "al", "display": "Al" }))
        .await;
    let mut bo = world.member("bo").await;
    al.skip(&world).await;
    let (answer, before) = al.ask(&world, "message", json!({ "text": "hi" })).await;
    assert_eq!(
        answer,
        json!({ "textroom": "success", "transaction": "message" })
    );
    let said = json!({ "textroom": "message", "room": ROOM, "from": "al", "text": "hi" });
    assert_eq!(before.len(), 1);
    assert_eq!(timeless(before[0].clone()), said);
    assert_eq!(timeless(bo.next(&world).await), said);
    // Without an answer.
    let quiet = json!({ "textroom": "message", "transaction": "t", "room": ROOM, "text": "ho",
                        "ack": false });
    assert_eq!(al.tell(&world, quiet).await["text"], "ho");
    al.expect_silence(&world).await;
    // An error is answered nevertheless.
    let quiet = json!({ "textroom": "message", "transaction": "t", "room": 7, "text": "ho",
                        "ack": false });
    assert_eq!(code(&al.tell(&world, quiet).await), 417);
}

#[tokio::test]
async fn whispers_reach_whom_they_name() {
    let world = World::new(json!({ "history": 10 })).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    let mut cy = world.member("cy").await;
    for guest in [&mut al, &mut bo, &mut cy] {
        guest.skip(&world).await;
    }
    let whisper = json!({ "text": "psst", "to": "bo" });
    let (answer, before) = al.ask(&world, "message", whisper).await;
    let sent = json!({ "textroom": "success", "sent": { "bo": true }, "transaction": "message" });
    assert_eq!((answer, before), (sent, vec![]));
    let said = json!({ "textroom": "message", "room": ROOM, "from": "al", "text": "psst",
                       "whisper": true });
    assert_eq!(timeless(bo.next(&world).await), said);
    // Each name counts once, including the own one.
    let whisper = json!({ "text": "psst", "tos": ["bo", "zed", "bo", "al"] });
    let (answer, before) = al.ask(&world, "message", whisper).await;
    assert_eq!(
        answer["sent"],
        json!({ "bo": true, "zed": false, "al": true })
    );
    assert_eq!(timeless(before[0].clone()), said);
    assert_eq!(timeless(bo.next(&world).await), said);
    // An empty list is not all.
    let (answer, _) = al
        .ask(&world, "message", json!({ "text": "psst", "tos": [] }))
        .await;
    assert_eq!(answer["sent"], json!({}));
    for guest in [&mut bo, &mut cy] {
        guest.expect_silence(&world).await;
    }
    // Later members do not get them.
    let mut dee = world.guest().await;
    let (_, before) = dee.ask(&world, "join", json!({ "username": "dee" })).await;
    assert_eq!(before.len(), 1, "{before:?}");
}

#[tokio::test]
async fn whoever_comes_later_gets_the_last_messages_first() {
    let world = World::new(json!({ "history": 3 })).await;
    let mut al = world
        .member_with(json!({ "username": "al", "display": "Al" }))
        .await;
    for text in ["one", "two", "three"] {
        al.say(&world, text).await;
    }
    let announce = json!({ "request": "announcement", "room": ROOM, "text": "four" });
    let answer = world.attach().await.request(announce).await;
    assert_eq!(answer, json!({ "textroom": "success" }));
    let mut bo = world.guest().await;
    let (answer, before) = bo.ask(&world, "join", json!({ "username": "bo" })).await;
    assert_eq!(answer["textroom"], "success");
    let before: Vec<_> = before.into_iter().collect();
    assert_eq!(before.len(), 4, "{before:?}");
    for (message, text) in before.iter().zip(["two", "three"]) {
        let said = json!({ "textroom": "message", "room": ROOM, "from": "al", "text": text,
                           "display": "Al" });
        assert_eq!(timeless(message.clone()), said);
    }
    let announced = json!({ "textroom": "announcement", "room": ROOM, "text": "four" });
    assert_eq!(timeless(before[2].clone()), announced);
    assert_eq!(before[3]["textroom"], "join");
    let mut cy = world.guest().await;
    let join = json!({ "username": "cy", "history": false });
    let (_, before) = cy.ask(&world, "join", join).await;
    assert_eq!(before.len(), 1, "{before:?}");
}

#[tokio::test]
async fn somebody_who_is_kicked_is_told_and_is_out() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    al.skip(&world).await;
    let kick = json!({ "request": "kick", "room": ROOM, "secret": "s", "username": "bo" });
    let mut moderator = world.attach().await;
    let answer = moderator.request(kick.clone()).await;
    assert_eq!(answer, json!({ "textroom": "success" }));
    let kicked = json!({ "textroom": "kicked", "room": ROOM, "username": "bo" });
    for guest in [&mut al, &mut bo] {
        assert_eq!(guest.next(&world).await, kicked);
    }
    assert_eq!(code(&bo.say(&world, "hi").await), 422);
    assert_eq!(code(&moderator.request(kick).await), 423);
    assert_eq!(
        bo.join(&world, json!({ "username": "bo" })).await["textroom"],
        "success"
    );
    // A member may do it too.
    al.skip(&world).await;
    let kick = json!({ "secret": "s", "username": "bo" });
    let (answer, before) = al.ask(&world, "kick", kick).await;
    assert_eq!(
        answer,
        json!({ "textroom": "success", "transaction": "kick" })
    );
    assert_eq!(before, [kicked]);
}

#[tokio::test]
async fn the_end_of_a_room_is_told_twice_to_a_member_who_ends_it() {
    let world = World::new(json!({})).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    al.skip(&world).await;
    let (answer, before) = al.ask(&world, "destroy", json!({})).await;
    let ended = json!({ "textroom": "destroyed", "room": ROOM });
    assert_eq!(before, [ended.clone(), ended.clone()]);
    let expected = json!({ "textroom": "success", "room": ROOM, "permanent": false,
                           "transaction": "destroy" });
    assert_eq!(answer, expected);
    assert_eq!(bo.next(&world).await, ended);
    bo.expect_silence(&world).await;
    assert_eq!(code(&bo.say(&world, "hi").await), 417);

    // A client that ends a room by the API gets one message on its channel, and is not a member.
    world.create(json!({})).await;
    let mut cy = world.guest().await;
    let destroy = json!({ "request": "destroy", "room": ROOM });
    let answer = cy.client.request(destroy).await;
    assert_eq!(answer["textroom"], "destroyed");
    assert_eq!(cy.next(&world).await, ended);
    cy.expect_silence(&world).await;
    // A new room with the same id has no members.
    world.create(json!({})).await;
    assert_eq!(code(&bo.say(&world, "hi").await), 422);
    assert_eq!(
        bo.join(&world, json!({ "username": "bo" })).await["participants"],
        json!([])
    );
}

#[tokio::test]
async fn management_by_data_channel_answers_with_success() {
    let world = World::empty(TextRoomConfig::default());
    let mut al = world.guest().await;
    let (answer, _) = al
        .ask(&world, "create", json!({ "description": "Mine" }))
        .await;
    let expected = json!({ "textroom": "success", "room": ROOM, "permanent": false,
                           "transaction": "create" });
    assert_eq!(answer, expected);
    let (answer, _) = al.ask(&world, "edit", json!({ "new_pin": "p" })).await;
    assert_eq!(answer["textroom"], "success");
    let (answer, _) = al.ask(&world, "LIST", json!({})).await;
    let room = json!({ "room": ROOM, "description": "Mine", "pin_required": true,
                       "num_participants": 0, "history": 0 });
    assert_eq!(
        answer,
        json!({ "textroom": "success", "list": [room], "transaction": "LIST" })
    );
    let (answer, _) = al.ask(&world, "exists", json!({})).await;
    assert_eq!(answer["exists"], true);
}

#[tokio::test]
async fn what_makes_no_sense_on_a_data_channel() {
    let world = World::new(json!({})).await;
    let mut al = world.guest().await;
    // Neither answered nor minded.
    for payload in [
        DataPayload::Binary(b"{\"textroom\":\"list\",\"transaction\":\"t\"}".to_vec()),
        DataPayload::Text("{".to_owned()),
        DataPayload::Text(String::new()),
        DataPayload::Text("hello".to_owned()),
    ] {
        world.write(&al, payload).await;
    }
    al.expect_silence(&world).await;
    let refused =
        |code: u64, text: &str| json!({ "textroom": "error", "error_code": code, "error": text });
    let missing = |name: &str| refused(413, &format!("Missing mandatory element ({name})"));
    let wrong = |name: &str| {
        let text = format!("Invalid element type ({name} should be a string)");
        refused(414, &text)
    };
    for (message, expected) in [
        (json!({}), missing("textroom")),
        (json!([1]), missing("textroom")),
        (json!(null), missing("textroom")),
        (json!({ "transaction": "t" }), missing("textroom")),
        (json!({ "textroom": "list" }), missing("transaction")),
        (
            json!({ "textroom": 1, "transaction": "t" }),
            wrong("textroom"),
        ),
        (
            json!({ "textroom": "list", "transaction": 1 }),
            wrong("transaction"),
        ),
    ] {
        assert_eq!(
            al.tell(&world, message.clone()).await,
            expected,
            "{message}"
        );
    }
    let mut unsupported = refused(415, "Unsupported request SetUp");
    unsupported["transaction"] = json!("t");
    let setup = json!({ "textroom": "SetUp", "transaction": "t" });
    assert_eq!(al.tell(&world, setup).await, unsupported);
}

#[tokio::test]
async fn one_may_be_in_many_rooms() {
    let world = World::new(json!({})).await;
    world.create(json!({ "room": 5 })).await;
    let mut al = world.member("al").await;
    let mut bo = world.member("bo").await;
    al.ask(&world, "join", json!({ "room": 5, "username": "other" }))
        .await;
    let (_, before) = al
        .ask(&world, "message", json!({ "room": 5, "text": "hi" }))
        .await;
    assert_eq!(
        (&before[0]["room"], &before[0]["from"]),
        (&json!(5), &json!("other"))
    );
    bo.expect_silence(&world).await;
    let rooms = json!([{ "room": ROOM, "username": "al" }, { "room": 5, "username": "other" }]);
    assert_eq!(
        world.state(&al.client).await,
        json!({ "destroyed": 0, "rooms": rooms })
    );
    al.ask(&world, "leave", json!({})).await;
    assert_eq!(
        world.state(&al.client).await["rooms"],
        json!([{ "room": 5, "username": "other" }])
    );
}

#[tokio::test]
async fn the_white_space_of_messages_is_configured() {
    for (form, expected) in [
        (
            JsonForm::Compact,
            r#"{"textroom":"join","room":1234,"username":"al"}"#,
        ),
        (
            JsonForm::Plain,
            r#"{"textroom": "join", "room": 1234, "username": "al"}"#,
        ),
    ] {
        let world = World::empty(TextRoomConfig {
            json: form,
            ..TextRoomConfig::default()
        });
        world.create(json!({})).await;
        let _al = world.member("al").await;
        let sent = world.server.requested().data;
        assert_eq!(sent[0].1.payload, DataPayload::Text(expected.to_owned()));
    }
}

#[tokio::test]
async fn all_see_all_in_one_order() {
    let world = World::new(json!({})).await;
    let mut members = Vec::new();
    for name in ["al", "bo", "cy"] {
        members.push(world.member(name).await);
    }
    for member in &mut members {
        member.skip(&world).await;
    }
    for n in 0..60 {
        let message = json!({ "textroom": "message", "transaction": "t", "room": ROOM,
                              "text": n.to_string(), "ack": false });
        world
            .write(&members[n % 3], DataPayload::Text(message.to_string()))
            .await;
    }
    let mut orders: Vec<Vec<Value>> = Vec::new();
    for member in &mut members {
        let mut order = Vec::new();
        for _ in 0..60 {
            order.push(member.next(&world).await["text"].clone());
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
}
