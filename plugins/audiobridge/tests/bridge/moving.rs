//! Moving to another room.

use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, merge};

fn change(room: u64, members: Value) -> Value {
    let mut request = json!({ "request": "changeroom", "room": room });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn both_rooms_are_told_and_the_connection_stays() {
    let world = World::new(json!({})).await;
    world
        .create(json!({ "room": 7, "spatial_audio": true }))
        .await;
    let (mut ann, _) = world
        .talker(
            1,
            json!({ "display": "Ann", "muted": true, "quality": 7, "expected_loss": 3 }),
        )
        .await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let mut carl = world.attach().await;
    ask(&mut carl, json!({ "request": "join", "room": 7, "id": 3 })).await;

    let changed = ask(&mut ann, change(7, json!({ "id": 4 }))).await;
    let shown = json!({ "id": 3, "setup": false, "muted": false, "spatial_position": 50 });
    assert_eq!(
        changed,
        json!({ "audiobridge": "roomchanged", "room": 7, "id": 4, "participants": [shown] })
    );
    assert_eq!(
        bob.event().await,
        json!({ "audiobridge": "event", "room": ROOM, "leaving": 1 })
    );
    // Name and muting do not move along; that media flows is visible.
    let shown = json!({ "id": 4, "setup": true, "muted": false, "spatial_position": 50 });
    assert_eq!(
        carl.event().await,
        json!({ "audiobridge": "joined", "room": 7, "participants": [shown] })
    );
    let state = world.state(&ann).await;
    assert_eq!(
        (&state["room"], &state["expected-loss"]),
        (&json!(7), &json!(3))
    );
    ann.expect_silence().await;
    assert_eq!(world.participants().await.len(), 1);
}

#[tokio::test]
async fn whoever_is_refused_stays_where_it_is() {
    let world = World::new(json!({})).await;
    world
        .create(json!({ "room": 7, "pin": "p", "groups": ["a"] }))
        .await;
    let mut ann = world.join(1, json!({})).await;
    for (request, expected, text) in [
        (change(5, json!({})), 485, "No such room (5)"),
        (change(ROOM, json!({})), 491, "Already in this room"),
        (change(7, json!({})), 483, "Missing mandatory element (pin)"),
        (
            change(7, json!({ "pin": "x" })),
            489,
            "Unauthorized (wrong pin)",
        ),
        (
            change(7, json!({ "pin": "p" })),
            483,
            "Missing mandatory element (group)",
        ),
        (
            change(7, json!({ "pin": 1 })),
            484,
            "Invalid element type (pin should be a string)",
        ),
    ] {
        let refused = ask(&mut ann, request).await;
        assert_eq!(code(&refused), expected, "{refused}");
        assert_eq!(refused["error"], text);
    }
    assert_eq!(world.participants().await[0]["id"], 1);
    let moved = ask(&mut ann, change(7, json!({ "pin": "p", "group": "a" }))).await;
    assert_eq!(moved["audiobridge"], "roomchanged");
}
