//! The limits of strangers.

use std::net::Ipv4Addr;
use std::time::Duration;

use portunus_core::testing::TestClient;
use portunus_core::{Plugin, Reply, Requester};
use portunus_textroom::{TextRoom, TextRoomConfig};
use serde_json::{Value, json};

use crate::world::{PACKAGE, ROOM, World, code};

const HOUR: Duration = Duration::from_secs(3_600);

fn limited(max_per_client: usize, max_from_clients: usize) -> TextRoomConfig {
    TextRoomConfig {
        max_per_client,
        max_from_clients,
        unused_timeout: HOUR,
        ..TextRoomConfig::default()
    }
}

fn at(last: u8) -> Requester {
    Requester::at(Ipv4Addr::new(192, 0, 2, last).into(), false)
}

async fn stranger(world: &World, last: u8) -> TestClient {
    world.server.attach_from(at(last), PACKAGE).await
}

fn create(room: u64) -> Value {
    json!({ "request": "create", "room": room })
}

async fn rooms(client: &mut TestClient) -> Vec<u64> {
    let list = client.request(json!({ "request": "list" })).await;
    let list = list["list"].as_array().unwrap().iter();
    list.map(|room| room["room"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn strangers_make_so_many_rooms_and_are_told_of_the_limit() {
    let world = World::empty(limited(2, 3));
    let mut one = stranger(&world, 1).await;
    for room in [1, 2] {
        assert_eq!(one.request(create(room)).await["textroom"], "created");
    }
    let refused = one.request(create(3)).await;
    assert_eq!(code(&refused), 419);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("max_per_client"),
        "{refused}"
    );
    // A data channel is subject to the same limit.
    let mut guest = world.guest_from(at(1)).await;
    assert_eq!(
        code(&guest.ask(&world, "create", json!({ "room": 3 })).await.0),
        419
    );
    let mut two = stranger(&world, 2).await;
    assert_eq!(two.request(create(4)).await["textroom"], "created");
    let refused = two.request(create(5)).await;
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("max_from_clients"),
        "{refused}"
    );
    let mut operator = world.attach().await;
    assert_eq!(operator.request(create(5)).await["textroom"], "created");
}

#[tokio::test]
async fn nobody_finds_a_pin_or_a_secret_by_trying() {
    let world = World::empty(TextRoomConfig {
        max_wrong: 5,
        ..TextRoomConfig::default()
    });
    world.create(json!({ "pin": "0042", "secret": "s" })).await;
    let mut guest = world.guest_from(at(1)).await;
    for n in 0..50 {
        let join = json!({ "username": "al", "pin": format!("{n:04}") });
        let refused = guest.join(&world, join).await;
        assert_eq!(code(&refused), 419);
        let waits = refused["error"].as_str().unwrap().contains("try again in");
        assert_eq!(waits, n >= 5, "{n}: {refused}");
    }
    // The API is subject to the same limit.
    let mut one = stranger(&world, 1).await;
    let edit = json!({ "request": "edit", "room": ROOM, "secret": "s" });
    assert_eq!(code(&one.request(edit.clone()).await), 419);
    // Others are not affected.
    let mut two = stranger(&world, 2).await;
    assert_eq!(two.request(edit).await["textroom"], "edited");
    let mut guest = world.guest_from(at(2)).await;
    let join = json!({ "username": "bo", "pin": "0042" });
    assert_eq!(guest.join(&world, join).await["textroom"], "success");
}

#[tokio::test]
async fn strangers_have_nothing_posted_and_make_nothing_permanent() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::empty(TextRoomConfig {
        save: Some(folder.path().join("rooms.toml")),
        ..TextRoomConfig::default()
    });
    world.create(json!({})).await;
    let mut one = stranger(&world, 1).await;
    let mut guest = world.guest_from(at(1)).await;
    for (request, members) in [
        ("create", json!({ "room": 5, "permanent": true })),
        ("create", json!({ "room": 5, "post": "http://192.0.2.1/" })),
        (
            "edit",
            json!({ "room": ROOM, "new_post": "http://192.0.2.1/" }),
        ),
        ("edit", json!({ "room": ROOM, "permanent": true })),
        ("destroy", json!({ "room": ROOM, "permanent": true })),
    ] {
        let mut body = members.clone();
        body["request"] = json!(request);
        let refused = one.request(body).await;
        assert_eq!(code(&refused), 419, "{request} {members}");
        let text = refused["error"].as_str().unwrap();
        assert!(text.contains("a token with the right to"), "{text}");
        assert_eq!(
            code(&guest.ask(&world, request, members).await.0),
            419,
            "{request}"
        );
    }
}

#[tokio::test]
async fn an_admin_key_opens_all_of_it_on_a_data_channel_too() {
    let world = World::empty(TextRoomConfig {
        admin_key: Some("key".to_owned()),
        ..limited(0, 0)
    });
    let mut guest = world.guest_from(at(1)).await;
    let create = |key: &str| json!({ "admin_key": key, "post": "http://192.0.2.1/" });
    assert_eq!(
        code(&guest.ask(&world, "create", create("guess")).await.0),
        419
    );
    let (created, _) = guest.ask(&world, "create", create("key")).await;
    assert_eq!(created["textroom"], "success", "{created}");
}

#[tokio::test(start_paused = true)]
async fn a_room_of_a_stranger_ends_once_nobody_was_in_it_for_the_time() {
    let world = World::empty(limited(5, 5));
    let mut maker = stranger(&world, 1).await;
    for room in [1, 2] {
        maker.request(create(room)).await;
    }
    let mut operator = world.attach().await;
    operator.request(create(4)).await;
    let mut guest = world.guest().await;
    guest
        .ask(&world, "join", json!({ "room": 2, "username": "al" }))
        .await;
    tokio::time::sleep(HOUR - Duration::from_secs(120)).await;
    assert_eq!(rooms(&mut operator).await, [1, 2, 4]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(rooms(&mut operator).await, [2, 4]);
    guest.ask(&world, "leave", json!({ "room": 2 })).await;
    tokio::time::sleep(HOUR + Duration::from_secs(120)).await;
    assert_eq!(rooms(&mut operator).await, [4]);
    let late = guest
        .ask(&world, "join", json!({ "room": 2, "username": "al" }))
        .await
        .0;
    assert_eq!(code(&late), 417);
}

#[tokio::test]
async fn what_comes_from_administrators_is_not_limited() {
    let plugin = TextRoom::new(limited(0, 0)).unwrap();
    let mut request = create(1);
    request["transaction"] = json!("t");
    let Some(Reply::Success(reply)) = plugin.admin(request) else {
        panic!("no reply at once");
    };
    assert_eq!(reply["textroom"], "created", "{reply}");
}
