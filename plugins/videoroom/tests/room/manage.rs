//! Making, changing, listing and saving rooms.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_core::media::{KeyframeInterval, SourceRef, TrackRef};
use portunus_core::record::Recorder;
use portunus_core::testing::{TestClient, TestServer, jsep, signed_token};
use portunus_core::{CoreConfig, Mid};
use portunus_videoroom::{ConfiguredRoom, VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

use crate::world::{AV, PACKAGE, ROOM, World, ask, code, sync};

fn room(members: Value) -> ConfiguredRoom {
    let members = members.as_object().unwrap().clone();
    let string_ids = members["room"].is_string();
    ConfiguredRoom::read(&members, string_ids).unwrap()
}

async fn list(world: &World, members: Value) -> Vec<Value> {
    let mut client = world.attach().await;
    let mut request = json!({ "request": "list" });
    crate::world::merge(&mut request, members);
    let reply = sync(&mut client, request).await;
    assert_eq!(reply["videoroom"], "success", "{reply}");
    reply["list"].as_array().unwrap().clone()
}

#[tokio::test]
async fn rooms_are_made_changed_and_ended() {
    let world = World::empty(VideoRoomConfig::default());
    let mut client = world.attach().await;
    let created = sync(&mut client, json!({ "request": "CREATE", "secret": "s" })).await;
    assert_eq!(
        (&created["videoroom"], &created["permanent"]),
        (&json!("created"), &json!(false))
    );
    let id = created["room"].as_u64().unwrap();
    let exists = json!({ "request": "exists", "room": id });
    let known = json!({ "videoroom": "success", "room": id, "exists": true });
    assert_eq!(sync(&mut client, exists.clone()).await, known);
    assert_eq!(
        code(&sync(&mut client, json!({ "request": "create", "room": id })).await),
        427
    );
    let edit = json!({ "request": "edit", "room": id, "secret": "s", "new_description": "New",
        "new_pin": "p", "new_bitrate": 100_000, "new_publishers": 9, "new_secret": "t" });
    let edited = json!({ "videoroom": "edited", "room": id, "permanent": false });
    assert_eq!(sync(&mut client, edit).await, edited);
    let entry = &list(&world, json!({})).await[0];
    let changed = [
        &entry["description"],
        &entry["pin_required"],
        &entry["bitrate"],
        &entry["max_publishers"],
    ];
    assert_eq!(
        changed,
        [&json!("New"), &json!(true), &json!(100_000), &json!(9)]
    );
    let destroy = |secret: &str| json!({ "request": "destroy", "room": id, "secret": secret });
    assert_eq!(code(&sync(&mut client, destroy("s")).await), 433);
    assert_eq!(
        sync(&mut client, destroy("t")).await["videoroom"],
        "destroyed"
    );
    assert_eq!(sync(&mut client, exists).await["exists"], false);
}

#[tokio::test]
async fn lists_say_what_rooms_are_like() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    assert_eq!(
        list(&world, json!({})).await,
        [json!({
            "room": ROOM, "description": "Room 1234", "pin_required": false, "is_private": false,
            "max_publishers": 3, "bitrate": 0, "fir_freq": 0, "require_pvtid": false,
            "require_e2ee": false, "dummy_publisher": false, "notify_joining": false,
            "audiocodec": "opus", "videocodec": "vp8", "opus_fec": true, "record": false,
            "lock_record": false, "num_participants": 1, "audiolevel_ext": true,
            "audiolevel_event": false, "videoorient_ext": true, "playoutdelay_ext": true,
            "transport_wide_cc_ext": true,
        })]
    );
}

#[tokio::test]
async fn the_admin_key_makes_rooms_and_sees_private_ones() {
    let config = VideoRoomConfig {
        admin_key: Some("k".into()),
        rooms: vec![
            room(json!({ "room": 1, "is_private": true })),
            room(json!({ "room": 2, "description": "Two" })),
        ],
        ..VideoRoomConfig::default()
    };
    let world = World::empty(config);
    assert_eq!(list(&world, json!({})).await.len(), 1);
    let all = list(&world, json!({ "admin_key": "k" })).await;
    assert_eq!(
        (&all[0]["room"], &all[1]["description"]),
        (&json!(1), &json!("Two"))
    );
    let mut client = world.attach().await;
    let create = |key: Value| json!({ "request": "create", "room": 3, "admin_key": key });
    assert_eq!(
        code(&sync(&mut client, json!({ "request": "create" })).await),
        429
    );
    assert_eq!(code(&sync(&mut client, create(json!("x"))).await), 433);
    assert_eq!(code(&sync(&mut client, create(json!(1))).await), 430);
    assert_eq!(sync(&mut client, create(json!("k"))).await["room"], 3);
    let wrong = json!({ "request": "list", "admin_key": "x" });
    assert_eq!(code(&sync(&mut client, wrong).await), 433);
}

#[tokio::test]
async fn permanent_rooms_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = || VideoRoomConfig {
        save: Some(folder.path().join("rooms.toml")),
        rooms: vec![
            room(json!({ "room": 1 })),
            room(json!({ "room": 2, "pin": "old" })),
        ],
        ..VideoRoomConfig::default()
    };
    let world = World::empty(config());
    let mut client = world.attach().await;
    for (request, answer) in [
        (
            json!({ "request": "create", "room": 3, "secret": "s\"\n", "audiocodec": "pcma" }),
            "created",
        ),
        (
            json!({ "request": "edit", "room": 2, "new_pin": "new" }),
            "edited",
        ),
        (json!({ "request": "destroy", "room": 1 }), "destroyed"),
    ] {
        let mut request = request;
        request["permanent"] = true.into();
        let reply = sync(&mut client, request).await;
        assert_eq!(
            (&reply["videoroom"], &reply["permanent"]),
            (&json!(answer), &json!(true))
        );
    }
    sync(&mut client, json!({ "request": "create", "room": 4 })).await;
    let world = World::empty(config());
    let mut rooms = list(&world, json!({})).await;
    rooms.sort_by_key(|room| room["room"].as_u64());
    let ids: Vec<_> = rooms
        .iter()
        .map(|room| room["room"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(rooms[1]["audiocodec"], "pcma");
    let mut client = world.attach().await;
    let join =
        |pin: &str| json!({ "request": "join", "room": 2, "ptype": "publisher", "pin": pin });
    assert_eq!(code(&ask(&mut client, join("old")).await), 433);
    assert_eq!(ask(&mut client, join("new")).await["videoroom"], "joined");
    let destroy = json!({ "request": "destroy", "room": 3, "secret": "s\"\n", "permanent": true });
    assert_eq!(sync(&mut client, destroy).await["permanent"], true);
}

#[tokio::test]
async fn a_room_that_cannot_be_saved_is_there_all_the_same() {
    let config = VideoRoomConfig {
        save: Some("/nowhere/rooms.toml".into()),
        ..VideoRoomConfig::default()
    };
    let world = World::empty(config);
    let mut client = world.attach().await;
    let create = json!({ "request": "create", "room": 1, "permanent": true });
    let created = json!({ "videoroom": "created", "room": 1, "permanent": false });
    assert_eq!(sync(&mut client, create).await, created);
    assert_eq!(list(&world, json!({})).await.len(), 1);
    // The same holds for a change.
    let edit =
        json!({ "request": "edit", "room": 1, "new_description": "Hall", "permanent": true });
    let edited = json!({ "videoroom": "edited", "room": 1, "permanent": false });
    assert_eq!(sync(&mut client, edit).await, edited);
    assert_eq!(list(&world, json!({})).await[0]["description"], "Hall");
}

#[tokio::test]
async fn edited_switches_take_effect() {
    let world = World::new(json!({ "secret": "s" })).await;
    let al = world.publisher(1, &AV).await;
    let mut client = world.attach().await;
    let edit = json!({ "request": "edit", "room": ROOM, "secret": "s", "new_is_private": true,
                       "new_require_pvtid": true, "new_lock_record": true });
    assert_eq!(sync(&mut client, edit).await["videoroom"], "edited");
    assert!(list(&world, json!({})).await.is_empty());
    let mut join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber", "feed": 1 });
    assert_eq!(code(&ask(&mut client, join.clone()).await), 433);
    let state = world.state(&al.client).await;
    join["private_id"] = state["private_id"].clone();
    assert_eq!(ask(&mut client, join).await["videoroom"], "attached");
    let edit = json!({ "request": "edit", "room": ROOM, "secret": "s", "new_is_private": false });
    sync(&mut client, edit).await;
    let room = &list(&world, json!({})).await[0];
    for (name, value) in [
        ("require_pvtid", true),
        ("lock_record", true),
        ("is_private", false),
    ] {
        assert_eq!(room[name], value, "{name}");
    }
}

#[tokio::test]
async fn ids_can_be_text() {
    let config = VideoRoomConfig {
        string_ids: true,
        rooms: vec![room(json!({ "room": "hall" }))],
        ..VideoRoomConfig::default()
    };
    let world = World::empty(config);
    let mut client = world.attach().await;
    assert_eq!(
        code(&sync(&mut client, json!({ "request": "create", "room": 1 })).await),
        430
    );
    let created = sync(&mut client, json!({ "request": "create" })).await;
    assert_eq!(created["room"].as_str().unwrap().len(), 36);
    let join = json!({ "request": "join", "room": "hall", "ptype": "publisher", "id": "al" });
    let joined = ask(&mut client, join).await;
    assert_eq!(
        (&joined["room"], &joined["id"]),
        (&json!("hall"), &json!("al"))
    );
}

#[tokio::test]
async fn tokens_let_participants_in() {
    let world = World::new(json!({ "allowed": ["a"] })).await;
    let mut admin = world.attach().await;
    let mut allowed = async |action: &str, tokens: Value| {
        let request =
            json!({ "request": "allowed", "room": ROOM, "action": action, "allowed": tokens });
        sync(&mut admin, request).await
    };
    assert_eq!(code(&world.join(json!({})).await.1), 433);
    assert_eq!(code(&world.join(json!({ "token": "b" })).await.1), 433);
    let added = allowed("add", json!(["b", "b", "c"])).await;
    let known = json!({ "videoroom": "success", "room": ROOM, "allowed": ["a", "b", "c"] });
    assert_eq!(added, known);
    assert_eq!(
        world.join(json!({ "token": "b" })).await.1["videoroom"],
        "joined"
    );
    assert_eq!(
        allowed("remove", json!(["b", "x"])).await["allowed"],
        json!(["a", "c"])
    );
    assert_eq!(code(&world.join(json!({ "token": "b" })).await.1), 433);
    let disabled = json!({ "videoroom": "success", "room": ROOM });
    assert_eq!(allowed("disable", json!([])).await, disabled);
    assert_eq!(world.join(json!({})).await.1["videoroom"], "joined");
    assert_eq!(
        allowed("enable", json!([])).await["allowed"],
        json!(["a", "c"])
    );
    assert_eq!(code(&world.join(json!({})).await.1), 433);
    assert_eq!(code(&allowed("dance", json!([])).await), 430);
}

#[tokio::test]
async fn participants_are_listed() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let (mut bo, _) = world.join(json!({ "id": 2, "display": "Bo" })).await;
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let reply = sync(&mut bo, list).await;
    assert_eq!(
        (&reply["videoroom"], &reply["room"]),
        (&json!("participants"), &json!(ROOM))
    );
    let mut people = reply["participants"].as_array().unwrap().clone();
    people.sort_by_key(|person| person["id"].as_u64());
    assert_eq!(
        people,
        [
            json!({ "id": 1, "publisher": true, "talking": false }),
            json!({ "id": 2, "display": "Bo", "publisher": false }),
        ]
    );
}

#[tokio::test]
async fn keyframes_are_asked_for_now_and_then() {
    let world = World::new(json!({ "fir_freq": 5 })).await;
    let mut al = world.publisher(1, &AV).await;
    let mut offer = jsep("offer", "bobo", &AV);
    offer["e2ee"] = true.into();
    let bo = world.publisher_with(json!({ "id": 2 }), offer).await;
    let announced = al.client.event().await;
    assert_eq!(announced["publishers"][0]["id"], 2);
    let video = |peer| {
        let mid = Mid::new("1").unwrap();
        SourceRef::Track(TrackRef { peer, mid })
    };
    let every = |seconds, opaque| KeyframeInterval {
        every: std::time::Duration::from_secs(seconds),
        opaque,
    };
    // Keyframes cannot be recognized with end-to-end encryption.
    let both = |seconds| {
        [
            (video(al.peer), every(seconds, false)),
            (video(bo.peer), every(seconds, true)),
        ]
    };
    let asked = || {
        let mut intervals = world.requested().intervals;
        intervals.sort_by_key(|(_, interval)| interval.opaque);
        intervals
    };
    assert_eq!(asked(), both(5));
    let mut client = world.attach().await;
    let edit = |seconds: u64| json!({ "request": "edit", "room": ROOM, "new_fir_freq": seconds });
    sync(&mut client, edit(7)).await;
    assert_eq!(asked(), both(7));
    // A publisher that does not send gets no request.
    let mute = |send: bool| json!({ "request": "configure", "video": send });
    ask(&mut al.client, mute(false)).await;
    assert_eq!(asked(), both(7)[1..]);
    ask(&mut al.client, mute(true)).await;
    assert_eq!(asked(), both(7));
    sync(&mut client, edit(0)).await;
    assert_eq!(asked(), []);
}

#[tokio::test]
async fn a_key_that_nobody_configured_is_not_looked_at() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let list = |key: Value| json!({ "request": "list", "admin_key": key });
    for key in [json!("any"), json!(7), Value::Null] {
        let answer = sync(&mut client, list(key)).await;
        assert_eq!(answer["videoroom"], "success", "{answer}");
    }
    let keyed = World::empty(VideoRoomConfig {
        admin_key: Some("k".into()),
        ..VideoRoomConfig::default()
    });
    let mut client = keyed.attach().await;
    for (key, expected) in [(json!("any"), 433), (json!(7), 430)] {
        assert_eq!(code(&sync(&mut client, list(key)).await), expected);
    }
}

#[test]
fn a_configured_room_takes_what_create_takes_of_janus() {
    let section = |threads: Value| {
        let section = json!({ "room": 1, "threads": threads });
        ConfiguredRoom::read(section.as_object().unwrap(), false)
    };
    assert!(section(json!(2)).is_ok());
    assert_eq!(section(json!("x")).unwrap_err().key, "threads");
}

/// The key of signed tokens.
const SIGNS: &str = "shared";

fn signing() -> CoreConfig {
    CoreConfig {
        token_auth: true,
        token_auth_secret: Some(SIGNS.into()),
        ..CoreConfig::default()
    }
}

/// Room 5, which asks for signed tokens.
fn signed_room(core: CoreConfig) -> TestServer {
    let rooms = VideoRoomConfig {
        rooms: vec![room(
            json!({ "room": 5, "signed_tokens": true, "notify_joining": true }),
        )],
        ..VideoRoomConfig::default()
    };
    TestServer::with(core, |media| {
        vec![Arc::new(
            VideoRoom::new(rooms, media.clone(), Recorder::default()).unwrap(),
        )]
    })
}

/// A client with a token for the API.
struct Signed {
    client: TestClient,
    api: String,
}

impl Signed {
    async fn attach(server: &TestServer) -> Self {
        let mut client = server.connect();
        let api = signed_token(&format!("{},janus,{PACKAGE}", u32::MAX), SIGNS);
        let create = json!({ "janus": "create", "transaction": "c", "token": api });
        client.session = client.ask(create).await["data"]["id"].as_u64().unwrap();
        let attach = json!({ "janus": "attach", "transaction": "a", "token": api,
            "session_id": client.session, "plugin": PACKAGE });
        client.handle = client.ask(attach).await["data"]["id"].as_u64().unwrap();
        Self { client, api }
    }

    /// A request that is answered at once.
    async fn request(&mut self, body: Value) -> Value {
        let members = json!({ "token": self.api, "body": body });
        let reply = self.client.on_handle("message", members).await;
        reply["plugindata"]["data"].clone()
    }

    async fn join(&mut self, ptype: &str, token: &str) -> Value {
        let body =
            json!({ "request": "join", "room": 5, "ptype": ptype, "feed": 9, "token": token });
        let members = json!({ "token": self.api, "body": body });
        assert_eq!(
            self.client.on_handle("message", members).await["janus"],
            "ack"
        );
        self.client.event().await
    }
}

#[tokio::test]
async fn signed_tokens_let_in_whoever_shows_them() {
    let own = signed_token(&format!("{},{PACKAGE},room=5", u32::MAX), SIGNS);
    let others = signed_token(&format!("{},{PACKAGE},room=6", u32::MAX), SIGNS);
    let server = signed_room(signing());
    let mut client = Signed::attach(&server).await;
    assert_eq!(code(&client.join("publisher", &others).await), 433);
    let joined = client.join("publisher", &own).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
    // Without signed tokens in the server, the room requires none.
    let server = signed_room(CoreConfig::default());
    let mut client = Signed::attach(&server).await;
    let joined = client.join("publisher", &others).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
}

#[tokio::test]
async fn a_room_of_signed_tokens_gets_its_first_secret_from_who_may_enter() {
    let own = signed_token(&format!("{},{PACKAGE},room=5", u32::MAX), SIGNS);
    let others = signed_token(&format!("{},{PACKAGE},room=6", u32::MAX), SIGNS);
    let server = signed_room(signing());
    let mut client = Signed::attach(&server).await;
    for token in [json!(""), json!(others)] {
        let edit = json!({ "request": "edit", "room": 5, "new_secret": "s", "token": token });
        assert_eq!(code(&client.request(edit).await), 433);
    }
    // All else may be changed, and with the secret that as well.
    let edit = json!({ "request": "edit", "room": 5, "new_description": "Hall" });
    assert_eq!(client.request(edit).await["videoroom"], "edited");
    let edit = json!({ "request": "edit", "room": 5, "new_secret": "s", "token": own });
    assert_eq!(client.request(edit).await["videoroom"], "edited");
    let edit = json!({ "request": "edit", "room": 5, "secret": "s", "new_secret": "t" });
    assert_eq!(client.request(edit).await["videoroom"], "edited");
}

#[tokio::test]
async fn a_signed_token_lets_nobody_in_when_its_time_is_over() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let until = |end: u64| signed_token(&format!("{end},{PACKAGE},room=5"), SIGNS);
    let (over, valid) = (until(now.as_secs() - 1), until(now.as_secs() + 600));
    let server = signed_room(signing());
    let mut late = Signed::attach(&server).await;
    let mut early = Signed::attach(&server).await;
    for ptype in ["publisher", "subscriber"] {
        assert_eq!(code(&late.join(ptype, &over).await), 433, "{ptype}");
    }
    let joined = early.join("publisher", &valid).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
    // A refused client is not in the room, and may come with a new token.
    assert_eq!(joined["attendees"], json!([]), "{joined}");
    assert_eq!(code(&late.join("subscriber", &valid).await), 428);
    let joined = late.join("publisher", &valid).await;
    assert_eq!(joined["videoroom"], "joined", "{joined}");
}
