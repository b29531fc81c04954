//! Creating, editing, destroying and listing rooms.

use std::time::Duration;

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::{Plugin, Reply};
use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, merge, offer};

async fn list(world: &World, members: Value) -> Value {
    let mut request = json!({ "request": "list" });
    merge(&mut request, members);
    world.attach().await.request(request).await
}

#[tokio::test]
async fn a_room_has_its_defaults() {
    let world = World::new(json!({})).await;
    let expected = json!({
        "room": ROOM, "description": "Room 1234", "sampling_rate": 16_000, "spatial_audio": false,
        "pin_required": false, "record": false, "muted": false, "num_participants": 0,
    });
    assert_eq!(
        list(&world, json!({})).await,
        json!({ "audiobridge": "success", "list": [expected] })
    );
    let exists = |room: u64| json!({ "request": "exists", "room": room });
    let mut client = world.attach().await;
    assert_eq!(
        client.request(exists(ROOM)).await,
        json!({ "audiobridge": "success", "room": ROOM, "exists": true })
    );
    assert_eq!(client.request(exists(5)).await["exists"], false);
}

#[tokio::test]
async fn a_room_has_what_it_was_made_with() {
    let options = json!({
        "description": "", "sampling": 48_000, "spatial_audio": true, "pin": "p", "groups": ["a", "a"],
        "default_expectedloss": 21, "default_bitrate": 499, "loudest": 0,
    });
    let world = World::new(options).await;
    let listed = list(&world, json!({})).await;
    let room = &listed["list"][0];
    assert_eq!(room["sampling_rate"], 48_000);
    assert_eq!(room["description"], "Room 1234");
    assert_eq!(
        (&room["spatial_audio"], &room["pin_required"]),
        (&json!(true), &json!(true))
    );
    // Invalid entries are left out.
    let client = world.join(1, json!({ "pin": "p", "group": "a" })).await;
    let state = world.state(&client).await;
    assert_eq!(
        (&state["expected-loss"], &state["opus-bitrate"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(state["group"], "a");
}

#[tokio::test]
async fn ids_are_random_where_none_is_asked_for() {
    let world = World::empty(AudioBridgeConfig::default());
    let mut client = world.attach().await;
    for members in [json!({}), json!({ "room": 0 })] {
        let mut request = json!({ "request": "create" });
        merge(&mut request, members);
        let created = client.request(request).await;
        assert!(created["room"].as_u64().unwrap() > 0, "{created}");
    }
    let world = World::empty(AudioBridgeConfig {
        string_ids: true,
        ..AudioBridgeConfig::default()
    });
    let mut client = world.attach().await;
    let created = client.request(json!({ "request": "create" })).await;
    assert_eq!(created["room"].as_str().unwrap().len(), 36);
    let refused = client
        .request(json!({ "request": "create", "room": 1 }))
        .await;
    assert_eq!(
        refused["error"],
        "Invalid element type (room should be a string)"
    );
    let room = created["room"].clone();
    let joined = ask(
        &mut client,
        json!({ "request": "join", "room": room, "id": "ann" }),
    )
    .await;
    assert_eq!(joined["id"], "ann");
}

#[tokio::test]
async fn private_rooms_are_for_those_with_the_key() {
    let world = World::empty(AudioBridgeConfig {
        admin_key: Some("k".to_owned()),
        ..AudioBridgeConfig::default()
    });
    let mut client = world.attach().await;
    let create = |key: Value| {
        let mut request = json!({ "request": "create", "room": ROOM, "is_private": true });
        merge(&mut request, key);
        request
    };
    assert_eq!(code(&client.request(create(json!({}))).await), 483);
    let wrong = client.request(create(json!({ "admin_key": "x" }))).await;
    assert_eq!(wrong["error"], "Unauthorized (wrong admin_key)");
    client.request(create(json!({ "admin_key": "k" }))).await;
    assert_eq!(list(&world, json!({})).await["list"], json!([]));
    for key in [json!(""), json!(5), json!(null)] {
        assert_eq!(
            list(&world, json!({ "admin_key": key })).await["list"],
            json!([])
        );
    }
    assert_eq!(code(&list(&world, json!({ "admin_key": "x" })).await), 489);
    let all = list(&world, json!({ "admin_key": "k" })).await;
    assert_eq!(all["list"][0]["room"], ROOM);
}

#[tokio::test]
async fn a_room_can_be_changed() {
    let world = World::new(json!({ "secret": "s", "pin": "p" })).await;
    let mut client = world.attach().await;
    let edit = |members: Value| {
        let mut request = json!({ "request": "edit", "room": ROOM });
        merge(&mut request, members);
        request
    };
    let edited = client
        .request(edit(json!({
            "secret": "s", "new_description": "hall", "new_secret": "t", "new_pin": "",
            "new_is_private": true,
        })))
        .await;
    let expected = json!({ "audiobridge": "edited", "room": ROOM, "permanent": false });
    assert_eq!(edited, expected);
    assert_eq!(list(&world, json!({})).await["list"], json!([]));
    let wrong = client.request(edit(json!({ "secret": "s" }))).await;
    assert_eq!(code(&wrong), 489);
    // The pin is removed, and the secret stays.
    world.join(1, json!({})).await;
    let edited = edit(json!({
        "secret": "t", "new_secret": "", "new_description": "", "new_is_private": false,
    }));
    client.request(edited).await;
    let room = list(&world, json!({})).await["list"][0].clone();
    assert_eq!(
        (&room["description"], &room["pin_required"]),
        (&json!("hall"), &json!(false))
    );
    assert_eq!(
        code(&client.request(edit(json!({ "secret": "s" }))).await),
        489
    );
}

#[tokio::test]
async fn the_end_of_a_room_is_told_to_all_who_are_in_it_and_they_can_join_again() {
    let world = World::new(json!({ "secret": "s" })).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    assert_eq!(ann.event().await["audiobridge"], "joined");
    let destroy = json!({ "request": "destroy", "room": ROOM, "secret": "s" });
    let destroyed = world.attach().await.request(destroy).await;
    let expected = json!({ "audiobridge": "destroyed", "room": ROOM, "permanent": false });
    assert_eq!(destroyed, expected);
    let told = json!({ "audiobridge": "destroyed", "room": ROOM });
    assert_eq!(ann.event().await, told);
    assert_eq!(ann.next().await["janus"], "hangup");
    assert_eq!(bob.event().await, told);
    ann.expect_silence().await;
    bob.expect_silence().await;
    assert_eq!(world.state(&ann).await["state"], "idle");
    world.create(json!({ "room": 7 })).await;
    let again = ask(&mut ann, json!({ "request": "join", "room": 7, "id": 1 })).await;
    assert_eq!(again["audiobridge"], "joined");
}

#[tokio::test]
async fn a_room_ends_though_those_who_were_in_it_stay_attached() {
    let world = World::new(json!({})).await;
    let _ann = world.talker(1, json!({})).await;
    let mut bob = world.attach().await;
    offer(&mut bob, json!({ "request": "listen", "room": ROOM })).await;
    assert_eq!(world.audio.totals().rooms, 1);
    let destroy = json!({ "request": "destroy", "room": ROOM });
    world.attach().await.request(destroy).await;
    let ended = async {
        while world.audio.totals().rooms > 0 {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, ended).await.unwrap();
}

#[tokio::test]
async fn the_list_of_tokens_is_checked_once_it_is_switched_on() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut client = world.attach().await;
    let allowed = |members: Value| {
        let mut request = json!({ "request": "allowed", "room": ROOM, "secret": "s" });
        merge(&mut request, members);
        request
    };
    let refused = client.request(allowed(json!({ "action": "x" }))).await;
    assert_eq!(
        (code(&refused), &refused["error"]),
        (484, &json!("Unsupported action 'x' (allowed)"))
    );
    let add = json!({ "action": "ADD", "allowed": ["a", "b"] });
    let added = client.request(allowed(add)).await;
    assert_eq!(
        added,
        json!({ "audiobridge": "success", "room": ROOM, "allowed": ["a", "b"] })
    );
    let wrong = allowed(json!({ "action": "add", "allowed": [1] }));
    let refused = client.request(wrong).await;
    let text = "Invalid element in the allowed array (not a string)";
    assert_eq!(refused["error"], text);
    // This alone switches nothing on.
    world.join(1, json!({})).await;
    client.request(allowed(json!({ "action": "enable" }))).await;
    let join = |token: &str| json!({ "request": "join", "room": ROOM, "token": token });
    assert_eq!(code(&ask(&mut client, join("c")).await), 489);
    assert_eq!(ask(&mut client, join("a")).await["audiobridge"], "joined");
    let removed = json!({ "action": "remove", "allowed": ["a"] });
    assert_eq!(
        client.request(allowed(removed)).await["allowed"],
        json!(["b"])
    );
    let disabled = client
        .request(allowed(json!({ "action": "disable" })))
        .await;
    assert_eq!(disabled, json!({ "audiobridge": "success", "room": ROOM }));
}

#[tokio::test]
async fn administrators_make_requests_that_are_answered_at_once() {
    let plugin = crate::world::plugin(AudioBridgeConfig::default());
    let ask = |request: Value| match plugin.admin(request) {
        Some(Reply::Success(reply)) => reply,
        other => panic!("{other:?}"),
    };
    let created = ask(json!({ "request": "Create", "room": 1, "is_private": true, "secret": "s" }));
    assert_eq!(created["audiobridge"], "created");
    assert_eq!(ask(json!({ "request": "list" }))["list"][0]["room"], 1);
    for request in ["join", "configure", "leave", "resetdecoder", "listen", "x"] {
        assert_eq!(code(&ask(json!({ "request": request, "room": 1 }))), 482);
    }
    let suspend = json!({ "request": "suspend", "room": 1, "id": 1 });
    assert_eq!(code(&ask(suspend)), 492);
    assert_eq!(code(&ask(json!({}))), 483);
    assert_eq!(code(&ask(json!(3))), 481);
}
