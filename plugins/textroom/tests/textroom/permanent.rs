//! Rooms of the configuration, and permanent ones.

use portunus_textroom::{ConfiguredRoom, TextRoomConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{World, code};

fn config(folder: &TempDir) -> TextRoomConfig {
    let room = json!({ "room": 1, "description": "Hall", "history": 2 });
    TextRoomConfig {
        save: Some(folder.path().join("rooms.toml")),
        rooms: vec![ConfiguredRoom::read(room.as_object().unwrap(), false).unwrap()],
        ..TextRoomConfig::default()
    }
}

async fn listed(world: &World) -> Value {
    let mut client = world.attach().await;
    let mut list = client.request(json!({ "request": "list" })).await;
    let rooms = list["list"].as_array_mut().unwrap();
    rooms.sort_by_key(|room| room["room"].as_u64());
    rooms
        .iter()
        .map(|room| room["description"].clone())
        .collect()
}

#[tokio::test]
async fn what_is_permanent_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::empty(config(&folder));
    let mut client = world.attach().await;
    let create = json!({ "request": "create", "room": 7, "description": "Mine", "secret": "s",
                         "pin": "p", "history": 3, "permanent": true });
    let created = client.request(create).await;
    assert_eq!(
        created,
        json!({ "textroom": "created", "room": 7, "permanent": true })
    );
    client
        .request(json!({ "request": "create", "room": 8, "description": "Gone" }))
        .await;
    let edit = json!({ "request": "edit", "room": 1, "new_description": "The hall",
                       "permanent": true });
    let edited = client.request(edit).await;
    assert_eq!(
        edited,
        json!({ "textroom": "edited", "room": 1, "permanent": true })
    );
    // A room that ends without `permanent` is there after a restart.
    client
        .request(json!({ "request": "destroy", "room": 7, "secret": "s" }))
        .await;
    drop((client, world));

    let world = World::empty(config(&folder));
    assert_eq!(listed(&world).await, json!(["The hall", "Mine"]));
    let mut client = world.attach().await;
    let destroy = |secret: &str| json!({ "request": "destroy", "room": 7, "secret": secret, "permanent": true });
    assert_eq!(code(&client.request(destroy("t")).await), 419);
    let destroyed = client.request(destroy("s")).await;
    assert_eq!(
        destroyed,
        json!({ "textroom": "destroyed", "room": 7, "permanent": true })
    );
    client
        .request(json!({ "request": "destroy", "room": 1, "permanent": true }))
        .await;
    drop((client, world));
    let world = World::empty(config(&folder));
    assert_eq!(listed(&world).await, json!([]));
}

#[tokio::test]
async fn a_change_for_good_by_data_channel_is_answered_once_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::empty(config(&folder));
    let mut guest = world.guest().await;
    let create = json!({ "textroom": "create", "transaction": "t", "room": 7, "permanent": true });
    world
        .write(
            &guest,
            portunus_core::media::DataPayload::Text(create.to_string()),
        )
        .await;
    let answer = guest.next_in_time(&world).await;
    let expected = json!({ "textroom": "success", "room": 7, "permanent": true,
                           "transaction": "t" });
    assert_eq!(answer, expected);
    assert!(
        std::fs::read_to_string(folder.path().join("rooms.toml"))
            .unwrap()
            .contains("room = 7")
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_told_and_the_room_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let config = TextRoomConfig {
        save: Some(folder.path().join("none/rooms.toml")),
        ..TextRoomConfig::default()
    };
    let world = World::empty(config);
    let mut client = world.attach().await;
    let create = json!({ "request": "create", "room": 7, "permanent": true });
    let created = client.request(create).await;
    assert_eq!(
        created,
        json!({ "textroom": "created", "room": 7, "permanent": false })
    );
    let exists = client
        .request(json!({ "request": "exists", "room": 7 }))
        .await;
    assert_eq!(exists["exists"], true);
}
