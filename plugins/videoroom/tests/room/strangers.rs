//! Rooms of strangers: limits of their number, their end, and wrong secrets.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::testing::{TestClient, TestServer};
use portunus_core::{CoreConfig, Plugin, Reply, Requester};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, ask, code, merge, sync};

const HOUR: Duration = Duration::from_secs(3_600);

fn limited(max_per_client: usize, max_from_clients: usize) -> VideoRoomConfig {
    VideoRoomConfig {
        max_per_client,
        max_from_clients,
        unused_timeout: HOUR,
        ..VideoRoomConfig::default()
    }
}

/// Starts a server whose sessions do not expire.
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

    // The operator has no limits, and its rooms do not count.
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

/// The recorder of the room chooses the folder.
#[tokio::test]
async fn naming_a_recording_is_no_recording() {
    let world = World::empty(VideoRoomConfig::default());
    let mut stranger = stranger(&world, 1).await;
    for (room, more) in [
        (1, json!({ "rec_dir": "theirs" })),
        (
            2,
            json!({ "rec_dir": "theirs", "record": false, "record_format": "webm" }),
        ),
    ] {
        let mut create = create(room);
        merge(&mut create, more);
        let created = sync(&mut stranger, create).await;
        assert_eq!(created["videoroom"], "created", "{created}");
    }
    let recorded = json!({ "request": "create", "room": 3, "rec_dir": "theirs", "record": true });
    assert_eq!(code(&sync(&mut stranger, recorded).await), 433);
    let moved = json!({ "request": "edit", "room": 1, "new_rec_dir": "theirs" });
    assert_eq!(code(&sync(&mut stranger, moved).await), 433);

    let mut operator = world.attach().await;
    let own = json!({ "request": "create", "room": 4, "rec_dir": "ours" });
    sync(&mut operator, own).await;
    let list = sync(&mut operator, json!({ "request": "list" })).await;
    let list = list["list"].as_array().unwrap().iter();
    let dirs: Vec<_> = list
        .map(|room| (room["room"].clone(), room["rec_dir"].clone()))
        .collect();
    let ours = [json!(null), json!(null), json!("ours")];
    let expected: Vec<_> = [1, 2, 4]
        .into_iter()
        .map(|id| json!(id))
        .zip(ours)
        .collect();
    assert_eq!(dirs, expected);

    let join = json!({
        "request": "joinandconfigure", "ptype": "publisher", "room": 1, "record": false, "filename": "x",
    });
    let joined = ask(&mut stranger, join).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
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

    // It ends like a destroyed room: a later join does not find it.
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

/// Returns whether a refusal is due to too many wrong secrets.
fn waits(refused: &Value) -> bool {
    assert_eq!(code(refused), 433, "{refused}");
    let text = refused["error"].as_str().unwrap();
    text.contains("try again in") && text.contains("max_wrong")
}

/// A server where clients may show five wrong ones, with rooms of an operator.
async fn guarded(rooms: &[Value]) -> World {
    let world = World::empty(VideoRoomConfig {
        max_wrong: 5,
        ..VideoRoomConfig::default()
    });
    let mut operator = world.attach().await;
    for room in rooms {
        let mut create = room.clone();
        create["request"] = json!("create");
        let created = sync(&mut operator, create).await;
        assert_eq!(created["videoroom"], "created", "{created}");
    }
    world
}

fn join(room: u64, shown: Value) -> Value {
    let mut join = json!({ "request": "join", "ptype": "publisher", "room": room });
    crate::world::merge(&mut join, shown);
    join
}

#[tokio::test]
async fn nobody_finds_a_pin_or_a_secret_by_trying() {
    let rooms = [
        json!({ "room": 1, "pin": "0042", "secret": "s" }),
        json!({ "room": 2, "pin": "p" }),
    ];
    let world = guarded(&rooms).await;
    for n in 0..50 {
        let mut client = stranger(&world, 1).await;
        let pin = json!({ "pin": format!("{n:04}") });
        assert_eq!(waits(&ask(&mut client, join(1, pin)).await), n >= 5, "{n}");
    }
    // The same holds for another request, and for another member.
    let mut client = stranger(&world, 1).await;
    let watch = json!({ "request": "watch", "room": 1, "pin": "0042" });
    assert!(waits(&ask(&mut client, watch).await));
    for name in ["edit", "destroy", "kick", "moderate", "allowed"] {
        let manage = json!({ "request": name, "room": 1, "secret": "s" });
        assert!(waits(&sync(&mut client, manage).await), "{name}");
    }
    // Other rooms are open. Other clients and administrators do not have to wait.
    let other = ask(&mut client, join(2, json!({ "pin": "p" }))).await;
    assert_eq!(other["videoroom"], "joined", "{other}");
    let right = join(1, json!({ "pin": "0042" }));
    let mut other = stranger(&world, 2).await;
    assert_eq!(ask(&mut other, right.clone()).await["videoroom"], "joined");
    let edit = json!({ "request": "edit", "room": 1, "secret": "s" });
    let edited = sync(&mut world.attach().await, edit).await;
    assert_eq!(edited["videoroom"], "edited", "{edited}");
}

#[tokio::test]
async fn a_secret_is_not_found_by_joining_with_it() {
    let rooms = [
        json!({ "room": 1, "pin": "p", "secret": "s" }),
        json!({ "room": 2, "allowed": ["t"], "secret": "s" }),
        json!({ "room": 3, "require_pvtid": true, "secret": "s" }),
    ];
    let world = guarded(&rooms).await;
    let mut client = stranger(&world, 1).await;
    for n in 0..8 {
        let secret = json!({ "secret": format!("s{n}") });
        let without_pin = ask(&mut client, join(1, secret.clone())).await;
        assert_eq!(without_pin["error_code"], if n < 5 { 429 } else { 433 });
        assert_eq!(
            n >= 5,
            without_pin["error"].to_string().contains("try again")
        );
        assert_eq!(
            waits(&ask(&mut client, join(2, secret.clone())).await),
            n >= 5
        );
        let mut subscribe = join(3, secret);
        subscribe["ptype"] = json!("subscriber");
        subscribe["streams"] = json!([{ "feed": 1 }]);
        assert_eq!(waits(&ask(&mut client, subscribe).await), n >= 5, "{n}");
    }
}

#[tokio::test]
async fn what_is_right_is_no_guess_whatever_else_is_shown() {
    let rooms = [json!({ "room": 1, "pin": "p", "secret": "s", "publishers": 0 })];
    let world = guarded(&rooms).await;
    // A client of WHIP shows its token as every member. Each has another one of the list.
    for n in 0..10 {
        let mut client = stranger(&world, 1).await;
        let shown = json!({ "pin": "p", "token": format!("t{n}"), "secret": format!("t{n}") });
        let joined = ask(&mut client, join(1, shown)).await;
        assert_eq!(joined["videoroom"], "joined", "{joined}");
    }
    // A repeated wrong secret is not counted, in any member.
    let mut client = stranger(&world, 1).await;
    let old = join(1, json!({ "pin": "old", "token": "old", "secret": "old" }));
    for _ in 0..10 {
        assert!(!waits(&ask(&mut client, old.clone()).await));
    }
    let right = join(1, json!({ "pin": "p" }));
    assert_eq!(ask(&mut client, right).await["videoroom"], "joined");
}

#[tokio::test]
async fn a_secret_is_not_found_by_recording_with_it() {
    let rooms = [json!({ "room": 1, "secret": "s", "lock_record": true })];
    let world = guarded(&rooms).await;
    let mut client = stranger(&world, 1).await;
    assert_eq!(
        ask(&mut client, join(1, json!({}))).await["videoroom"],
        "joined"
    );
    for n in 0..8 {
        let secret = format!("s{n}");
        let configure = json!({ "request": "configure", "record": false, "secret": secret });
        let answer = ask(&mut client, configure).await;
        assert_eq!(answer["configured"] == "ok", n < 5, "{n}: {answer}");
    }
}

#[tokio::test]
async fn nobody_finds_an_admin_key_by_trying() {
    let world = World::empty(VideoRoomConfig {
        max_wrong: 5,
        admin_key: Some("key".to_owned()),
        ..VideoRoomConfig::default()
    });
    let mut client = stranger(&world, 1).await;
    for n in 0..5 {
        let list = json!({ "request": "list", "admin_key": format!("k{n}") });
        assert!(!waits(&sync(&mut client, list).await));
    }
    let mut with_key = create(1);
    with_key["admin_key"] = json!("key");
    assert!(waits(&sync(&mut client, with_key.clone()).await));
    let created = sync(&mut world.attach().await, with_key).await;
    assert_eq!(created["videoroom"], "created");
}
