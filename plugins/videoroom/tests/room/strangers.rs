//! Rooms that strangers make: how many, and how long they are there.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::testing::{TestClient, TestServer};
use portunus_core::{CoreConfig, Plugin, Reply, Requester};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, ask, code, sync};

const HOUR: Duration = Duration::from_secs(3_600);

fn limited(max_per_client: usize, max_from_clients: usize) -> VideoRoomConfig {
    VideoRoomConfig {
        max_per_client,
        max_from_clients,
        unused_timeout: HOUR,
        ..VideoRoomConfig::default()
    }
}

/// A server whose sessions last however long their clients are silent.
fn lasting(config: VideoRoomConfig) -> World {
    let core = CoreConfig {
        session_timeout: 0,
        ..CoreConfig::default()
    };
    let recorder = Recorder::default();
    let plugins = |media: &MediaPlane| -> Vec<Arc<dyn Plugin>> {
        let plugin = VideoRoom::new(config, media.clone(), recorder.clone());
        vec![Arc::new(plugin.unwrap())]
    };
    World {
        server: TestServer::recording_with(recorder.clone(), core, plugins),
        recorder,
    }
}

async fn stranger(world: &World, last: u8) -> TestClient {
    let requester = Requester::at(Ipv4Addr::new(192, 0, 2, last).into(), false);
    world.server.attach_from(requester, PACKAGE).await
}

fn create(room: u64) -> Value {
    json!({ "request": "create", "room": room })
}

async fn rooms(client: &mut TestClient) -> Vec<u64> {
    let list = sync(client, json!({ "request": "list" })).await;
    let list = list["list"].as_array().unwrap().iter();
    list.map(|room| room["room"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn strangers_make_so_many_rooms_and_are_told_of_the_limit() {
    let world = World::empty(limited(2, 3));
    let mut one = stranger(&world, 1).await;
    let mut two = stranger(&world, 2).await;
    let mut three = stranger(&world, 3).await;
    for room in [1, 2] {
        assert_eq!(sync(&mut one, create(room)).await["videoroom"], "created");
    }
    let refused = sync(&mut one, create(3)).await;
    assert_eq!(code(&refused), 433);
    let text = refused["error"].as_str().unwrap();
    assert!(
        text.contains('2') && text.contains("max_per_client"),
        "{text}"
    );
    assert_eq!(sync(&mut two, create(4)).await["videoroom"], "created");
    let refused = sync(&mut three, create(5)).await;
    assert_eq!(code(&refused), 433);
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains("max_from_clients"), "{text}");

    // Whoever runs the server has no limits, and its rooms take nobody's place.
    let mut operator = world.attach().await;
    for room in 10..20 {
        assert_eq!(
            sync(&mut operator, create(room)).await["videoroom"],
            "created"
        );
    }
    let destroy = json!({ "request": "destroy", "room": 1 });
    sync(&mut one, destroy).await;
    assert_eq!(sync(&mut three, create(5)).await["videoroom"], "created");
}

#[tokio::test]
async fn an_admin_key_that_is_shown_leaves_no_stranger() {
    let mut config = limited(0, 0);
    config.admin_key = Some("key".to_owned());
    let world = World::empty(config);
    let mut client = stranger(&world, 1).await;
    assert_eq!(code(&sync(&mut client, create(1)).await), 429);
    let mut with_key = create(1);
    with_key["admin_key"] = json!("key");
    assert_eq!(sync(&mut client, with_key).await["videoroom"], "created");
}

#[tokio::test(start_paused = true)]
async fn a_room_of_a_stranger_ends_once_nobody_was_in_it_for_the_time() {
    let world = lasting(limited(5, 5));
    let mut maker = stranger(&world, 1).await;
    for room in [1, 2] {
        sync(&mut maker, create(room)).await;
    }
    let mut with_dummy = create(3);
    with_dummy["dummy_publisher"] = json!(true);
    sync(&mut maker, with_dummy).await;
    let mut operator = world.attach().await;
    sync(&mut operator, create(4)).await;
    let mut guest = stranger(&world, 2).await;
    let join = json!({ "request": "join", "ptype": "publisher", "room": 2 });
    assert_eq!(ask(&mut guest, join.clone()).await["videoroom"], "joined");

    tokio::time::sleep(HOUR - Duration::from_secs(120)).await;
    assert_eq!(rooms(&mut operator).await, [1, 2, 3, 4]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(rooms(&mut operator).await, [2, 4]);
    assert_eq!(
        code(
            &sync(
                &mut maker,
                json!({ "request": "listparticipants", "room": 1 })
            )
            .await
        ),
        426
    );

    // It ends as a destroyed one does: for whoever joins later it is not there.
    let leave = json!({ "request": "leave" });
    ask(&mut guest, leave).await;
    tokio::time::sleep(HOUR + Duration::from_secs(120)).await;
    assert_eq!(rooms(&mut operator).await, [4]);
    let mut late = stranger(&world, 2).await;
    assert_eq!(code(&ask(&mut late, join).await), 426);
}

#[tokio::test]
async fn what_comes_from_administrators_is_not_limited() {
    let (media, ..) = MediaPlane::detached();
    let plugin = VideoRoom::new(limited(0, 0), media, Recorder::default()).unwrap();
    let Some(Reply::Success(reply)) = plugin.admin(create(1)) else {
        panic!("no reply at once");
    };
    assert_eq!(reply["videoroom"], "created", "{reply}");
}
