//! Rooms that are made, changed, listed and ended by the API.

use portunus_textroom::TextRoomConfig;
use serde_json::{Value, json};

use crate::world::{ROOM, World, code};

#[tokio::test]
async fn a_room_is_made_found_changed_and_ended() {
    let world = World::empty(TextRoomConfig::default());
    let mut client = world.attach().await;
    let create = json!({ "request": "create", "room": 7, "description": "Mine", "history": 5,
                         "secret": "s" });
    let created = json!({ "textroom": "created", "room": 7, "permanent": false });
    assert_eq!(client.request(create.clone()).await, created);
    assert_eq!(code(&client.request(create).await), 418);
    let exists = |room: u64| json!({ "request": "exists", "room": room });
    let found = json!({ "textroom": "success", "room": 7, "exists": true });
    assert_eq!(client.request(exists(7)).await, found);
    assert_eq!(client.request(exists(8)).await["exists"], false);

    let edit = json!({ "request": "edit", "room": 7, "secret": "s", "new_description": "Yours",
                       "new_secret": "t", "new_pin": "p" });
    let edited = json!({ "textroom": "edited", "room": 7, "permanent": false });
    assert_eq!(client.request(edit.clone()).await, edited);
    assert_eq!(code(&client.request(edit).await), 419);
    let room = json!({ "room": 7, "description": "Yours", "pin_required": true,
                       "num_participants": 0, "history": 5 });
    let list = json!({ "textroom": "success", "list": [room] });
    assert_eq!(client.request(json!({ "request": "list" })).await, list);
    // An empty text removes nothing.
    let edit = json!({ "request": "edit", "room": 7, "secret": "t", "new_description": "",
                       "new_secret": "", "new_pin": "", "new_post": "" });
    assert_eq!(client.request(edit).await, edited);
    assert_eq!(client.request(json!({ "request": "list" })).await, list);

    let destroy = json!({ "request": "destroy", "room": 7, "secret": "t" });
    let destroyed = json!({ "textroom": "destroyed", "room": 7, "permanent": false });
    assert_eq!(client.request(destroy.clone()).await, destroyed);
    assert_eq!(code(&client.request(destroy).await), 417);
    let none = json!({ "textroom": "success", "list": [] });
    assert_eq!(client.request(json!({ "request": "list" })).await, none);
}

#[tokio::test]
async fn a_room_gets_an_id_and_a_description_of_its_own() {
    let world = World::empty(TextRoomConfig::default());
    let mut client = world.attach().await;
    for members in [
        json!({}),
        json!({ "room": 0 }),
        json!({ "description": "" }),
    ] {
        let mut create = json!({ "request": "CREATE" });
        crate::world::merge(&mut create, members);
        let created = client.request(create).await;
        let room = created["room"].as_u64().unwrap();
        assert!(room > 0);
        let list = client.request(json!({ "request": "list" })).await;
        let rooms = list["list"].as_array().unwrap();
        let own = rooms.iter().find(|entry| entry["room"] == room).unwrap();
        assert_eq!(own["description"], format!("Room {room}"));
        assert_eq!(own["history"], 0);
    }
}

#[tokio::test]
async fn ids_are_text_where_the_configuration_says_so() {
    let world = World::empty(TextRoomConfig {
        string_ids: true,
        ..TextRoomConfig::default()
    });
    let mut client = world.attach().await;
    let created = client
        .request(json!({ "request": "create", "room": "lobby" }))
        .await;
    assert_eq!(created["room"], "lobby");
    let created = client.request(json!({ "request": "create" })).await;
    assert_eq!(created["room"].as_str().unwrap().len(), 36);
    assert_eq!(
        code(
            &client
                .request(json!({ "request": "exists", "room": 7 }))
                .await
        ),
        414
    );
    let mut guest = world.guest().await;
    let join = json!({ "room": "lobby", "username": "al" });
    let (_, before) = guest.ask(&world, "join", join).await;
    let joined = json!({ "textroom": "join", "room": "lobby", "username": "al" });
    assert_eq!(before, [joined]);
}

#[tokio::test]
async fn private_rooms_are_listed_for_who_has_the_admin_key() {
    let world = World::empty(TextRoomConfig {
        admin_key: Some("key".to_owned()),
        ..TextRoomConfig::default()
    });
    let mut client = world.attach().await;
    let create = |key: Option<&str>, room: u64| {
        let mut create = json!({ "request": "create", "room": room, "is_private": room == 1 });
        if let Some(key) = key {
            create["admin_key"] = json!(key);
        }
        create
    };
    assert_eq!(code(&client.request(create(None, 1)).await), 413);
    assert_eq!(code(&client.request(create(Some("guess"), 1)).await), 419);
    for room in [1, 2] {
        let created = client.request(create(Some("key"), room)).await;
        assert_eq!(created["textroom"], "created", "{created}");
    }
    let rooms = |list: &Value| {
        let list = list["list"].as_array().unwrap().iter();
        list.map(|room| room["room"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let list = |key: &str| json!({ "request": "list", "admin_key": key });
    assert_eq!(
        rooms(&client.request(json!({ "request": "list" })).await),
        [2]
    );
    assert_eq!(rooms(&client.request(list("")).await), [2]);
    assert_eq!(rooms(&client.request(list("key")).await), [1, 2]);
    let refused = client.request(list("guess")).await;
    assert_eq!(
        (code(&refused), &refused["error"]),
        (419, &json!("Unauthorized (wrong admin_key)"))
    );
    // It becomes visible.
    let edit = json!({ "request": "edit", "room": 1, "new_is_private": false });
    client.request(edit).await;
    assert_eq!(
        rooms(&client.request(json!({ "request": "list" })).await),
        [1, 2]
    );
}

#[tokio::test]
async fn members_are_listed_without_a_secret() {
    let world = World::new(json!({ "secret": "s", "pin": "p" })).await;
    let join = json!({ "username": "al", "display": "Al", "pin": "p" });
    let _al = world.member_with(join).await;
    let mut client = world.attach().await;
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let expected = json!({ "textroom": "success", "room": ROOM,
                           "participants": [{ "username": "al", "display": "Al" }] });
    assert_eq!(client.request(list).await, expected);
    let list = client.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["num_participants"], 1);
}

#[tokio::test]
async fn tokens_are_checked_from_the_moment_on_that_there_is_a_list() {
    let world = World::new(json!({ "allowed": [] })).await;
    let mut client = world.attach().await;
    let mut al = world.guest().await;
    let join = |token: &str| json!({ "username": "al", "token": token });
    let refused = al.join(&world, join("a")).await;
    assert_eq!(code(&refused), 419);
    assert_eq!(refused["error"], "Unauthorized (not in the allowed list)");
    assert_eq!(
        code(&al.join(&world, json!({ "username": "al" })).await),
        419
    );
    let allowed = |action: &str, tokens: Value| json!({ "request": "allowed", "room": ROOM, "action": action, "allowed": tokens });
    let answer = client.request(allowed("add", json!(["b", "a"]))).await;
    assert_eq!(
        answer,
        json!({ "textroom": "success", "room": ROOM, "allowed": ["a", "b"] })
    );
    assert_eq!(al.join(&world, join("a")).await["textroom"], "success");
    let answer = client.request(allowed("remove", json!(["b"]))).await;
    assert_eq!(answer["allowed"], json!(["a"]));
    let answer = client.request(allowed("disable", json!([]))).await;
    assert_eq!(answer, json!({ "textroom": "success", "room": ROOM }));
    let mut bo = world.guest().await;
    assert_eq!(
        bo.join(&world, json!({ "username": "bo" })).await["textroom"],
        "success"
    );
    let answer = client.request(allowed("enable", json!([]))).await;
    assert_eq!(answer["allowed"], json!(["a"]));
}

#[tokio::test]
async fn a_room_with_a_pin_opens_to_who_knows_it() {
    let world = World::new(json!({ "pin": "p" })).await;
    let mut al = world.guest().await;
    let missing = al.join(&world, json!({ "username": "al" })).await;
    assert_eq!(
        (code(&missing), &missing["error"]),
        (413, &json!("Missing mandatory element (pin)"))
    );
    let wrong = al
        .join(&world, json!({ "username": "al", "pin": "q" }))
        .await;
    assert_eq!(
        (code(&wrong), &wrong["error"]),
        (419, &json!("Unauthorized (wrong pin)"))
    );
    let joined = al
        .join(&world, json!({ "username": "al", "pin": "p" }))
        .await;
    assert_eq!(joined["textroom"], "success");
}
